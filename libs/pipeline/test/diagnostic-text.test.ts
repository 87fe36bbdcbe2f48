import { describe, expect, it } from 'vitest';
import { diagnosticLine, formatDiagnostics, parsePipeline } from '../src/index.ts';
import type { Diagnostic } from '../src/index.ts';

function diagnosticsOf(text: string): readonly Diagnostic[] {
  const result = parsePipeline(text);
  return result.ok ? [] : result.diagnostics;
}

describe('diagnostics', () => {
  const text = 'pipeline:\n  name: demo\nstages:\n  build:\n    run: make\n    aftr: [prepare]\n';

  it('one line has place, message and remedy', () => {
    expect(diagnosticsOf(text).map(diagnosticLine)).toEqual([
      "line 6, column 5: unknown key 'aftr' in stage 'build' (did you mean 'after'?)",
    ]);
  });

  it('an excerpt points at the place', () => {
    expect(formatDiagnostics(text, diagnosticsOf(text), '.pipeline.yaml')).toBe(
      [
        "error: unknown key 'aftr' in stage 'build'",
        ' --> .pipeline.yaml:6:5',
        '  |',
        '6 |     aftr: [prepare]',
        "  |     ^^^^ did you mean 'after'?",
        '',
        'error: 1 problem in .pipeline.yaml',
        '',
      ].join('\n'),
    );
  });

  it('each carries the path of its key', () => {
    expect(
      diagnosticsOf('pipeline: {name: p}\nstages:\n  a: {run: x, timeout: 1, env: {A: []}}\n').map(({ path }) => path),
    ).toEqual(['stages.a.timeout', 'stages.a.env.A']);
  });

  it('are coloured on demand only', () => {
    const escape = '\u001b[';
    expect(formatDiagnostics(text, diagnosticsOf(text), 'f')).not.toContain(escape);
    expect(formatDiagnostics(text, diagnosticsOf(text), 'f', { color: true })).toContain(`${escape}1;31m^^^^`);
  });

  it('never carry control characters from the file or its name to the terminal', () => {
    const hostile = 'pipeline: {name: p}\nstages:\n  a: {run: x, "\\e[2J\\u202Eb": y}\n';
    const shown = formatDiagnostics(
      hostile.replace('run: x', 'run:\tx \u001b[31m'),
      [...diagnosticsOf(hostile), ...diagnosticsOf('a: \u001b[31m')],
      'evil\u001b[0m\n',
    );
    // oxlint-disable-next-line no-control-regex
    expect(shown.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });

  it('of a long line a window is shown', () => {
    const long = `pipeline: {name: p}\nstages:\n  a: {run: '${'x'.repeat(5_000)}', aftr: b, env: {${'Y'.repeat(300)}: x}}\n`;
    const shown = formatDiagnostics(long, diagnosticsOf(long), 'f').split('\n');
    const [excerpt = '', mark = ''] = shown.slice(3, 5);
    expect(excerpt.length).toBeLessThan(120);
    expect(excerpt.slice(mark.indexOf('^'), mark.lastIndexOf('^') + 1)).toBe('aftr');
  });

  it('point at the right cell behind wide characters', () => {
    const wide = 'pipeline: {name: p}\nstages:\n  测试: {run: x, aftr: b}\n';
    const [excerpt = '', mark = ''] = formatDiagnostics(wide, diagnosticsOf(wide), 'f').split('\n').slice(3, 5);
    // Two characters of two cells each.
    expect(mark.indexOf('^')).toBe(excerpt.indexOf('aftr') + 2);
  });

  it('of one file are at most fifty and a line that counts the others', () => {
    const many = `pipeline: {name: p}\nstages:\n${Array.from({ length: 80 }, (_, index) => `  s${index}: {}\n`).join('')}`;
    const diagnostics = diagnosticsOf(many);
    expect(diagnostics).toHaveLength(51);
    expect(diagnostics.at(-1)?.message).toBe('30 more problems not shown');
    expect(formatDiagnostics(many, diagnostics, 'f')).toContain('30 more problems not shown');
  });
});
