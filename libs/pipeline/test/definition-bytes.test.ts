import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { definitionBytes, diagnosticLine, parsePipeline, PIPELINE_LIMITS } from '../src/index.ts';
import type { PipelineDefinition } from '../src/index.ts';

const FOLDER = new URL('./fixtures/accepted/', import.meta.url);

function definitionOf(text: string): PipelineDefinition {
  const result = parsePipeline(text, { template: true });
  if (!result.ok) throw new Error(result.diagnostics.map(diagnosticLine).join('\n'));
  return result.definition;
}

const expectNear = (definition: PipelineDefinition): void => {
  const real = Buffer.byteLength(JSON.stringify(definition));
  const estimate = definitionBytes(definition);
  expect({ estimate, isNear: estimate > real / 2 && estimate < real * 2 }).toEqual({ estimate, isNear: true });
};

describe('the estimated size of a definition', () => {
  it.each(readdirSync(FOLDER))('is within a factor of two of its JSON for %s', (name) => {
    expectNear(definitionOf(readFileSync(new URL(name, FOLDER), 'utf8')));
  });

  it('counts what the stages of a matrix share for each of them, as it is written', () => {
    const numbers = Array.from({ length: 200 }, (_, index) => index).join(', ');
    const text = (count: number): string =>
      `pipeline: {name: p}\nstages:\n  a: {run: ${'x'.repeat(count)}, matrix: {n: [${numbers}]}}\n`;
    expectNear(definitionOf(text(4_000)));
    expect(definitionBytes(definitionOf(text(2_000))) - definitionBytes(definitionOf(text(1_000)))).toBe(200 * 1_000);
  });

  it('is the same for a definition that has been a document', () => {
    const definition = definitionOf(readFileSync(new URL('whole-vocabulary.yaml', FOLDER), 'utf8'));
    expect(definitionBytes(JSON.parse(JSON.stringify(definition)) as PipelineDefinition)).toBe(
      definitionBytes(definition),
    );
  });

  it('is bounded for every file, also where two matrices multiply their dependencies', () => {
    const wide = (prefix: string): string =>
      `[${Array.from({ length: 256 }, (_, index) => `${prefix}${index}`).join(', ')}]`;
    const stages = ['a', 'b'].map(
      (name, index, all) =>
        `  ${name.repeat(100)}: {run: x, matrix: {n: ${wide('v'.repeat(90))}}${index === 0 ? '' : `, after: ${(all[index - 1] ?? '').repeat(100)}`}}\n`,
    );
    const result = parsePipeline(`pipeline: {name: p}\nstages:\n${stages.join('')}`);
    expect(result.ok ? [] : result.diagnostics.map(({ message }) => message)).toEqual([
      expect.stringContaining(`more than ${PIPELINE_LIMITS.definitionTextMax / 1024 / 1024} MiB after expansion`),
    ]);
  });

  it('is bounded where each of many stages wants the files of a whole matrix, unless a run has the file already', () => {
    const wide = Array.from({ length: 256 }, (_, index) => `${'v'.repeat(90)}${index}`).join(', ');
    const name = 'm'.repeat(100);
    const text = (stages: number): string =>
      `pipeline: {name: p}\nstages:\n  ${name}: {run: x, artifacts: dist, matrix: {n: [${wide}]}}\n  all: {run: x, after: ${name}}\n${Array.from({ length: stages }, (_, index) => `  s${index}: {run: x, after: all, artifacts: {from: ${name}}}\n`).join('')}`;
    const [few, many] = [text(100), text(200)];
    expectNear(definitionOf(few));
    const result = parsePipeline(many);
    expect(result.ok ? [] : result.diagnostics.map(({ message }) => message)).toEqual([
      expect.stringContaining(`more than ${PIPELINE_LIMITS.definitionTextMax / 1024 / 1024} MiB after expansion`),
    ]);
    expect(parsePipeline(many, { standing: true }).ok).toBe(true);
  });

  it('is bounded where `include` adds many values to each combination, unless a run has the file already', () => {
    const numbers = Array.from({ length: 256 }, (_, index) => index).join(', ');
    const text = (values: number): string =>
      `pipeline: {name: p}\nstages:\n  a:\n    run: x\n    matrix:\n      n: [${numbers}]\n      include: [{${Array.from({ length: values }, (_, index) => `k${index}: v`).join(', ')}}]\n`;
    const most = Math.floor(PIPELINE_LIMITS.matrixAddedValuesMax / 256);
    expect(parsePipeline(text(most)).ok).toBe(true);
    const result = parsePipeline(text(most + 1));
    expect(result.ok ? [] : result.diagnostics.map(({ path, message }) => ({ path, message }))).toEqual([
      { path: 'stages.a.matrix', message: expect.stringContaining('more than 200,000 values') as string },
    ]);
    expect(parsePipeline(text(most + 1), { standing: true }).ok).toBe(true);
    // Those that stand behind it without an `include` are no part of it.
    const more = parsePipeline(`${text(most + 1)}  b: {run: x, matrix: {n: [1]}}\n`);
    expect(more.ok ? [] : more.diagnostics.map(({ path }) => path)).toEqual(['stages.a.matrix']);
  });
});
