import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diagnosticLine, formatDiagnostics, parsePipeline, PIPELINE_LIMITS, usesOf } from '../src/index.ts';
import type { Diagnostic, ResolvedExtension } from '../src/index.ts';
import { EXTENSION_CATEGORIES, extensionIdFault } from '../src/file/uses.ts';
import {
  IMAGE_KEYS,
  INPUT_KEYS,
  INPUT_TYPES,
  MANIFEST_KEYS,
  OUTPUT_KEYS,
  RESOURCE_KEYS,
  RETRY_KEYS,
  SERVICE_KEYS,
  STAGE_KEYS,
  TOP_KEYS,
} from '../src/file/vocabulary.ts';

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

/** From the folder of those that come along. */
function resolved(text: string): ResolvedExtension[] {
  return usesOf(text).map((uses) => {
    const id = uses.split('@')[0] ?? '';
    const manifest = readFileSync(join(ROOT, 'extensions', id, 'extension.yaml'), 'utf8');
    return { uses, id, version: /^version: (.*)$/m.exec(manifest)?.[1] ?? '', hash: 'a'.repeat(64), manifest };
  });
}

function diagnosticsOf(text: string): readonly Diagnostic[] {
  const result = parsePipeline(text, { extensions: resolved(text) });
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

  it.each([...TOP_KEYS, ...STAGE_KEYS])('names the key %s', (key) => {
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

  it('the limits are those of the code, row by row', () => {
    const of = (name: keyof typeof PIPELINE_LIMITS, unit = 1): string =>
      (PIPELINE_LIMITS[name] / unit).toLocaleString('en');
    const [KIB, MIB] = [1024, 1024 ** 2];
    const rows = [
      `the file | ${of('textBytesMax', KIB)} KiB of UTF-8, ${of('tokensMax')} YAML tokens and ${of('tokensPerEntry')} more for each stage (a stage has 15 to 30), ${of('depthMax')} levels deep`,
      `anchors, aliases | ${of('anchorsMax')} each; ${of('expandedNodesMax')} values and ${of('expandedTextMax', MIB)} MiB of text with all aliases written out`,
      `stages, after matrices and extensions are expanded | ${of('stagesMax')}, with ${of('dependenciesMax')} dependencies`,
      `extensions of a run; how deep they use one another | ${of('extensionsMax')}, with ${of('extensionsTextMax', KIB)} KiB of manifests; ${of('extensionDepthMax')} levels`,
      `all stages with their scripts, variables, names, dependencies and what \`artifacts.from\` means, after expansion | ${of('definitionTextMax', MIB)} MiB`,
      `what one stage adds by [\`generates\`](#generates); how deep | ${of('addedTextBytesMax', KIB)} KiB; ${of('addedDepthMax')} levels`,
      `the file and all that its stages add, compressed | ${of('runTextsBytesMax', KIB)} KiB`,
      `one matrix | ${of('matrixCellsMax')} stages, ${of('matrixAxesMax')} axes, ${of('matrixProductMax')} combinations before \`exclude\``,
      `values that \`include\` adds to the combinations of all matrices of a file | ${of('matrixAddedValuesMax')}`,
      `commands of a stage; one command | ${of('commandsMax')}; ${of('commandBytesMax', KIB)} KiB`,
      `variables of one \`env\`; one value | ${of('envCountMax')}; ${of('envValueBytesMax', KIB)} KiB`,
      `inputs; one value; all values of a run | ${of('pipelineInputsMax')}; ${of('envValueBytesMax', KIB)} KiB; ${of('inputsBytesMax', KIB)} KiB`,
      `secrets of a stage; all their values | ${of('secretsMax')}; 256 KiB`,
      `outputs and labels of a stage | ${of('outputsMax')}; ${of('labelsMax')} with ${of('labelsTextMax')} characters`,
      `different sets of labels in a file; all of them together | ${of('labelSetsMax')}; ${of('labelSetsTextMax', KIB)} KiB`,
      `one expression; expressions in one value | ${of('expressionLengthMax')} characters, ${of('expressionDepthMax')} levels; ${of('expressionsPerTextMax')}`,
      `names: pipeline, stage, stage of a matrix | ${of('pipelineNameLengthMax')}, ${of('stageNameLengthMax')}, ${of('expandedNameLengthMax')} characters`,
      `problems shown | ${of('diagnosticsMax')}`,
    ];
    for (const row of rows) expect(reference).toContain(`\n| ${row}`);
  });

  it('what `run.trigger` is compared with is all that it can be, and nothing else', () => {
    const [, values = ''] = /^\| `run\.trigger` \| what began it: (.*?) \|/m.exec(reference) ?? [];
    const named = [...values.matchAll(/`(\w+)`/g)].map(([, value = '']) => value);
    const problemsOf = (value: string): readonly Diagnostic[] =>
      diagnosticsOf(`pipeline: {name: p}\nstages: {a: {run: make, when: run.trigger == '${value}'}}`);
    expect(named.flatMap(problemsOf)).toEqual([]);
    expect(problemsOf('other').map(({ suggestion }) => suggestion)).toEqual([`it can be ${named.join(', ')}`]);
  });
});

describe('docs/extension.schema.json', () => {
  const schema = readFileSync(join(ROOT, 'docs', 'extension.schema.json'), 'utf8');
  const at = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], JSON.parse(schema));
  const keysAt = (path: string): string[] => Object.keys(at(path) as object).toSorted();

  it.each([
    ['properties', MANIFEST_KEYS],
    ['properties.inputs.additionalProperties.oneOf.1.properties', INPUT_KEYS],
    ['properties.outputs.oneOf.1.additionalProperties.oneOf.1.properties', OUTPUT_KEYS],
    // An extension names no secrets, asks for no id tokens, has no gates, adds no stages, and is in no quarantine.
    [
      '$defs.stage.properties',
      STAGE_KEYS.filter((key) => !['secrets', 'id_token', 'approval', 'generates', 'quarantine'].includes(key)),
    ],
    ['$defs.stage.properties.retry.oneOf.1.properties', RETRY_KEYS],
    ['$defs.image.oneOf.1.properties', IMAGE_KEYS],
    ['$defs.services.additionalProperties.properties', SERVICE_KEYS],
    ['$defs.resources.properties', RESOURCE_KEYS],
  ])('%s are those of the code', (path, keys) => {
    expect(keysAt(path)).toEqual([...keys].toSorted());
  });

  it('types, ids and limits are those of the code', () => {
    expect(at('properties.inputs.additionalProperties.oneOf.1.properties.type.enum')).toEqual([...INPUT_TYPES]);
    const id = new RegExp(at('properties.id.pattern') as string, 'u');
    const ids = [
      ...EXTENSION_CATEGORIES.map((category) => `${category}/a-1`),
      'build/A',
      'build/a_b',
      'build/-a',
      'build/a--b',
      'build/a/b',
      'tools/a',
      'build/',
      `build/${'a'.repeat(64)}`,
      `build/${'a'.repeat(65)}`,
    ];
    expect(ids.map((text) => id.test(text))).toEqual(ids.map((text) => extensionIdFault(text) === undefined));
    expect([
      at('properties.inputs.maxProperties'),
      at('properties.description.maxLength'),
      at('properties.stages.maxProperties'),
    ]).toEqual([PIPELINE_LIMITS.inputsMax, PIPELINE_LIMITS.extensionDescriptionLengthMax, PIPELINE_LIMITS.stagesMax]);
  });
});
