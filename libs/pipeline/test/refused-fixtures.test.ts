import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diagnosticLine, formatDiagnostics, parsePipeline } from '../src/index.ts';
import type { Diagnostic } from '../src/index.ts';
import { extension } from './suite-extension.ts';
import { hostileFiles } from './fixtures/hostile-files.ts';

/**
 * Each fixture begins with its expectation, a line `# refused LINE:COLUMN text` for every problem, in order. The text is a
 * part of the message with its suggestion.
 */
const FOLDER = join(import.meta.dirname, 'fixtures', 'refused');
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));

interface Expected {
  readonly place: string;
  readonly text: string;
}

function expectationsOf(text: string): Expected[] {
  return [...text.matchAll(/^# refused (\d+:\d+) (.*)$/gm)].map(([, place = '', message = '']) => ({
    place,
    text: message,
  }));
}

function diagnosticsOf(text: string): readonly Diagnostic[] {
  const result = parsePipeline(text);
  return result.ok ? [] : result.diagnostics;
}

describe('bad files are refused with every problem at its place', () => {
  it.each(files)('%s is refused', (name) => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const expected = expectationsOf(text);
    expect(expected.length).toBeGreaterThan(0);
    const diagnostics = diagnosticsOf(text);
    const lines = diagnostics.map((diagnostic) => ({
      place: `${diagnostic.line}:${diagnostic.column}`,
      text: diagnosticLine(diagnostic),
    }));
    expect(lines).toEqual(
      expected.map(({ place, text: part }) => ({ place, text: expect.stringContaining(part) as unknown })),
    );
    expect(formatDiagnostics(text, diagnostics, name)).toContain(`${name}:${lines[0]?.place ?? ''}`);
  });

  it('there are at least two hundred of them, each different', () => {
    const texts = new Set(files.map((name) => readFileSync(join(FOLDER, name), 'utf8').replace(/^#.*\n/gm, '')));
    expect(texts.size).toBe(files.length);
    expect(files.length).toBeGreaterThanOrEqual(200);
  });
});

describe('what was accepted before a rule came', () => {
  it.each(['artifacts-dot.yaml', 'artifacts-dots.yaml'])('is read on where a run has it already: %s', (name) => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    expect(parsePipeline(text, { standing: true }).ok).toBe(true);
    expect(parsePipeline(text).ok).toBe(false);
  });

  it('is so in the manifest of an extension as well', () => {
    const extensions = [extension('test/dot@^1', "stages: {'.': {run: x, artifacts: dist/**}}\n")];
    const text = 'pipeline: {name: p}\nstages: {s: {uses: test/dot@^1}}';
    expect(parsePipeline(text, { extensions, standing: true })).toMatchObject({ ok: true });
    expect(parsePipeline(text, { extensions }).ok).toBe(false);
  });
});

describe('hostile files too large to keep are refused with the place', () => {
  it.each(hostileFiles())('$name is refused', ({ text, place, message }) => {
    const diagnostics = diagnosticsOf(text);
    const [first] = diagnostics;
    expect(
      first === undefined ? undefined : { place: `${first.line}:${first.column}`, text: diagnosticLine(first) },
    ).toEqual({ place, text: expect.stringContaining(message) as unknown });
    expect(diagnostics.length).toBeLessThanOrEqual(51);
  });
});
