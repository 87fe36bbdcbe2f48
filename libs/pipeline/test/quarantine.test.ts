import { describe, expect, it } from 'vitest';
import { diagnosticLine, parseManifest, parsePipeline, warningsOf } from '../src/index.ts';
import type { PipelineDefinition } from '../src/index.ts';

const FILE = `pipeline: {name: p}
stages:
  unit:
    run: x
    matrix: {node: [24, 26]}
    quarantine: {until: 2026-11-30, reason: '#7'}
  lint: {run: x, quarantine: {until: 2026-12-31}}
`;

function parsed(text: string): PipelineDefinition {
  const result = parsePipeline(text);
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition;
}

describe('quarantine', () => {
  it('holds to the end of its day in UTC, for every expansion of the stage', () => {
    expect(parsed(FILE).stages.map(({ quarantine }) => quarantine)).toEqual([
      { until: '2026-11-30', endsAt: Date.UTC(2026, 11, 1), reason: '#7', start: 100, path: 'stages.unit.quarantine' },
      { until: '2026-11-30', endsAt: Date.UTC(2026, 11, 1), reason: '#7', start: 100, path: 'stages.unit.quarantine' },
      { until: '2026-12-31', endsAt: Date.UTC(2027, 0, 1), start: 163, path: 'stages.lint.quarantine' },
    ]);
  });

  it('is a warning when it is over, at the place of its day, and never an error', () => {
    for (const text of [FILE, `\uFEFF${FILE}`]) {
      const definition = parsed(text);
      expect(warningsOf(text, definition, Date.UTC(2026, 10, 30, 23, 59, 59, 999))).toEqual([]);
      expect(warningsOf(text, definition, Date.UTC(2026, 11, 1)).map(diagnosticLine)).toEqual([
        'line 6, column 25: this quarantine was over with 2026-11-30 and has no effect (mend the stage and take the quarantine away, or give it a later day)',
      ]);
      expect(warningsOf(text, definition, Date.UTC(2027, 0, 1)).map(({ line, column }) => [line, column])).toEqual([
        [6, 25],
        [7, 38],
      ]);
    }
  });

  it('is not for an extension to say', () => {
    const manifest = `id: test/junit\nversion: 1.0.0\ndescription: d\nstages:\n  a: {run: x, quarantine: {until: 2026-12-31}}\n`;
    const result = parseManifest(manifest);
    expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([
      'line 5, column 15: an extension has no quarantine: it is for a pipeline to say, at the stage that uses the extension',
    ]);
  });
});
