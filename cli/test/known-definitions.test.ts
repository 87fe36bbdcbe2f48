/** What local runs know of the files of earlier ones: the same as if they had read them, and never another's. */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parsePipeline, type Lacking, type PipelineDefinition } from '@penstock/pipeline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KnownDefinitions, type ReadFile } from '../src/local/known-definitions.ts';

const FIXTURES = join(import.meta.dirname, '../../libs/pipeline/test/fixtures/accepted');
const NOTHING: Lacking = new Map();
const TEXT = 'pipeline: {name: x}\nstages: {a: {run: "true"}}\n';
const FILE: ReadFile = { path: '/project/.pipeline.yaml', text: TEXT, lacking: NOTHING };

let root: string;
let folder: string;
let known: KnownDefinitions;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-known-'));
  folder = join(root, 'definitions');
  known = new KnownDefinitions(folder, 'this program');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function read(text: string): PipelineDefinition {
  const parsed = parsePipeline(text);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  return parsed.definition;
}

function entry(): string {
  const [name = ''] = readdirSync(folder);
  return join(folder, name);
}

it.each(readdirSync(FIXTURES).filter((name) => name.endsWith('.yaml')))(
  '%s means the same as if it had been read anew',
  (name) => {
    const file = { ...FILE, text: readFileSync(join(FIXTURES, name), 'utf8') };
    known.keep(file, read(file.text));
    expect(known.find(file)).toEqual(read(file.text));
  },
);

it('names such as constructor are data and nothing else, also in what was kept', () => {
  const text =
    'pipeline: {name: x}\nenv: {__proto__: given, constructor: given}\nstages: {a: {run: "echo ${{ env.constructor }}${{ env.__proto__ }}"}}\n';
  known.keep({ ...FILE, text }, read(text));
  const [stage] = known.find({ ...FILE, text })?.stages ?? [];
  expect(Object.getPrototypeOf(stage?.env)).toBeNull();
  expect(stage).toEqual(read(text).stages[0]);
});

describe('what is known of a file', () => {
  beforeEach(() => known.keep(FILE, read(TEXT)));

  it('is taken while nothing is another', () => {
    expect(known.find({ ...FILE, lacking: new Map() })).toEqual(read(TEXT));
  });

  it.each<[string, Partial<ReadFile>]>([
    ['its text is another', { text: `${TEXT}# more\n` }],
    ['it lies elsewhere', { path: '/another/.pipeline.yaml' }],
    ['the machine lacks something', { lacking: new Map([['image', { message: 'no images' }]]) }],
  ])('is not taken where %s', (_what, another) => {
    expect(known.find({ ...FILE, ...another })).toBeUndefined();
  });

  it('is not taken where another path has the same name in the folder', () => {
    const before = entry();
    known.keep({ ...FILE, path: '/another' }, read(TEXT));
    const other = readdirSync(folder).find((name) => !before.endsWith(name)) ?? '';
    renameSync(before, join(folder, other));
    expect(known.find({ ...FILE, path: '/another' })).toBeUndefined();
  });

  it('is not taken where another program had read it', () => {
    expect(new KnownDefinitions(folder, 'another program').find(FILE)).toBeUndefined();
  });

  it('is not taken where others could have written it', () => {
    for (const mode of [0o620, 0o602]) {
      chmodSync(entry(), mode);
      expect(known.find(FILE)).toBeUndefined();
    }
    chmodSync(entry(), 0o644);
    expect(known.find(FILE)).toBeDefined();
  });

  it('is not taken where it is a link, or half of one', () => {
    const elsewhere = join(root, 'elsewhere');
    const place = entry();
    renameSync(place, elsewhere);
    symlinkSync(elsewhere, place);
    expect(known.find(FILE)).toBeUndefined();
    rmSync(place);
    renameSync(elsewhere, place);
    truncateSync(place, Math.floor(readFileSync(place).length / 2));
    expect(known.find(FILE)).toBeUndefined();
  });

  it('gives way to what is known later', () => {
    truncateSync(entry(), 10);
    known.keep(FILE, read(TEXT));
    expect(known.find(FILE)).toEqual(read(TEXT));
    expect(readdirSync(folder)).toHaveLength(1);
  });
});

it('64 files are known, and the one that was read longest ago is forgotten first', () => {
  const file = (number: number): ReadFile => ({ ...FILE, path: `/project/${number}.yaml` });
  for (let number = 0; number < 64; number += 1) known.keep(file(number), read(TEXT));
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), new Date(2_000), new Date(2_000));
  known.keep(file(0), read(TEXT));
  known.keep(file(64), read(TEXT));
  expect(readdirSync(folder)).toHaveLength(64);
  expect(known.find(file(0))).toBeDefined();
  expect(known.find(file(64))).toBeDefined();
});

it('a file whose meaning takes too much room is none of them, and is not read where it was', () => {
  const small = new KnownDefinitions(folder, 'this program', 100);
  small.keep(FILE, read(TEXT));
  expect(known.find(FILE)).toBeUndefined();
  known.keep(FILE, read(TEXT));
  expect(small.find(FILE)).toBeUndefined();
});

it('where there is no room for them nothing is said, and nothing is known', () => {
  writeFileSync(folder, 'a file');
  known.keep(FILE, read(TEXT));
  expect(known.find(FILE)).toBeUndefined();
});

it('where no folder can be made the run ends as ever, and not never', () => {
  const nowhere = new KnownDefinitions('/proc/nowhere/penstock/definitions', 'this program');
  nowhere.keep(FILE, read(TEXT));
  expect(nowhere.find(FILE)).toBeUndefined();
});

it('the folders above it are made where they are not there', () => {
  const made = new KnownDefinitions(join(root, 'cache/penstock/definitions'), 'this program');
  made.keep(FILE, read(TEXT));
  expect(made.find(FILE)).toEqual(read(TEXT));
});

it('what a process of the same number has left half keeps nothing from being kept', () => {
  known.keep(FILE, read(TEXT));
  renameSync(entry(), `${entry()}-${process.pid}`);
  known.keep(FILE, read(TEXT));
  expect(known.find(FILE)).toEqual(read(TEXT));
});
