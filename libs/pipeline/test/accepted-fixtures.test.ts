import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diagnosticLine, parsePipeline } from '../src/index.ts';

/** Each fixture names the stages that it expands to in a line `# accepted one | two`. */
const FOLDER = join(import.meta.dirname, 'fixtures', 'accepted');
const files = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml'));

describe('good files are accepted', () => {
  it.each(files)('%s is accepted', (name) => {
    const text = readFileSync(join(FOLDER, name), 'utf8');
    const names = /^# accepted (.*)$/m.exec(text)?.[1]?.split(' | ') ?? [];
    for (const variant of [text, text.replaceAll('\n', '\r\n'), `\uFEFF${text}`]) {
      const result = parsePipeline(variant);
      expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([]);
      expect(result.ok ? result.definition.stages.map((stage) => stage.name) : []).toEqual(names);
    }
  });

  it.each(files)('%s is plain JSON, the same after a round trip', (name) => {
    const result = parsePipeline(readFileSync(join(FOLDER, name), 'utf8'));
    if (!result.ok) throw new Error('refused');
    expect(JSON.parse(JSON.stringify(result.definition))).toEqual(result.definition);
  });
});
