import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diagnosticLine, formatDiagnostics, parsePipeline, PIPELINE_LIMITS } from '../src/index.ts';
import type { Diagnostic } from '../src/index.ts';
import { KEYS_TO_COME, STAGE_KEYS, TOP_KEYS } from '../src/vocabulary.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const reference = readFileSync(join(ROOT, 'docs', 'pipeline.md'), 'utf8');

interface Block {
  readonly name: string;
  readonly text: string;
  readonly refused: boolean;
}

function blocksOf(file: string): Block[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(/^```yaml( refused)?\n(.*?)^```$/gms)].map((found) => ({
    name: `${file}:${text.slice(0, found.index).split('\n').length + 1}`,
    text: found[2] ?? '',
    refused: found[1] !== undefined,
  }));
}

function diagnosticsOf(text: string): readonly Diagnostic[] {
  const result = parsePipeline(text);
  return result.ok ? [] : result.diagnostics;
}

describe('the documentation says what the code does', () => {
  const blocks = ['docs/pipeline.md', 'libs/pipeline/README.md'].flatMap(blocksOf);

  it.each(blocks.filter(({ refused }) => !refused))('the file at $name is accepted', ({ text }) => {
    expect(diagnosticsOf(text).map(diagnosticLine)).toEqual([]);
  });

  it('the refused file has exactly the errors that are shown', () => {
    const [example] = blocks.filter(({ refused }) => refused);
    const shown = /^```text\n(.*?)^```$/ms.exec(reference)?.[1];
    expect(formatDiagnostics(example?.text ?? '', diagnosticsOf(example?.text ?? ''), '.pipeline.yaml')).toBe(shown);
  });

  it('every other file that is marked as refused is', () => {
    for (const { text } of blocks.filter(({ refused }) => refused)) expect(diagnosticsOf(text)).not.toEqual([]);
  });

  it.each([...TOP_KEYS, ...STAGE_KEYS, ...KEYS_TO_COME])('names the key %s', (key) => {
    expect(reference).toMatch(new RegExp(`\`${key}\``));
  });

  it('the stages of the matrix example are those that it makes', () => {
    const example = blocks.find(({ text }) => text.includes('name: matrix}'));
    const result = parsePipeline(example?.text ?? '');
    const names = result.ok ? result.definition.stages.map(({ name }) => name) : [];
    expect(names).toHaveLength(4);
    for (const name of names) expect(reference).toContain(`\`${name}\``);
  });

  it('the table of quoting shows what is made of each line', () => {
    const rows = [...reference.matchAll(/^\| `(echo .*?)` \| `(echo .*?)` \|$/gm)];
    expect(rows).toHaveLength(3);
    for (const [, script = '', expected = ''] of rows) {
      const result = parsePipeline(JSON.stringify({ pipeline: { name: 'p' }, stages: { a: { run: script } } }));
      expect(result.ok ? result.definition.stages[0]?.commands[0]?.script : result.diagnostics).toBe(expected);
    }
  });

  it('the limits are those of the code', () => {
    for (const limit of ['textBytesMax', 'commandBytesMax', 'envValueBytesMax'] as const) expect(reference).toContain(`${PIPELINE_LIMITS[limit] / 1024} KiB`);
    for (const limit of ['tokensMax', 'depthMax', 'stagesMax', 'dependenciesMax', 'matrixCellsMax', 'matrixProductMax', 'expandedNodesMax', 'expressionLengthMax'] as const) {
      expect(reference).toContain(PIPELINE_LIMITS[limit].toLocaleString('en'));
    }
  });
});
