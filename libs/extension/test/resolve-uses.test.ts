import type { ResolvedExtension } from '@penstock/pipeline';
import { describe, expect, it } from 'vitest';
import { parsePipeline } from '@penstock/pipeline';
import { refusalsByUses, refusedFileProblems, resolveByLock, unresolvedOf, type LockEntry } from '../src/index.ts';

const entry = (uses: string): LockEntry => ({
  uses,
  id: uses.split('@')[0] ?? '',
  version: '1.0.0',
  hash: 'a'.repeat(64),
});
const command = (id: string): string => `id: ${id}\nversion: 1.0.0\ndescription: d\nrun: 'true'\n`;
const composed = (id: string, uses: string): string =>
  `id: ${id}\nversion: 1.0.0\ndescription: d\nstages:\n  inner:\n    uses: ${uses}\n`;
const MANIFESTS: Readonly<Record<string, string>> = {
  'build/outer': composed('build/outer', 'build/inner@^1'),
  'build/inner': command('build/inner'),
};
const find = (locked: LockEntry): ResolvedExtension | undefined => {
  const manifest = MANIFESTS[locked.id];
  return manifest === undefined ? undefined : { ...locked, manifest };
};

describe('resolveByLock', () => {
  it('finds what the extensions of a file use themselves, each once', async () => {
    const lock = [entry('build/outer@^1'), entry('build/inner@^1'), entry('build/other@^1')];
    const found = await resolveByLock(['build/outer@^1', 'build/inner@^1'], lock, find);
    expect(found?.map(({ uses }) => uses).toSorted()).toEqual(['build/inner@^1', 'build/outer@^1']);
  });

  it('finds nothing where the lock lacks what an extension uses', async () => {
    expect(await resolveByLock(['build/outer@^1'], [entry('build/outer@^1')], find)).toBeUndefined();
  });

  it('finds nothing where a locked extension is not there', async () => {
    expect(await resolveByLock(['build/gone@^1'], [entry('build/gone@^1')], find)).toBeUndefined();
  });
});

describe('a refusal of the registry', () => {
  const unresolved = [
    { uses: 'build/a@^1', message: 'There is no a.', candidates: [] },
    { uses: 'build/a@^1', message: 'Nor is there b.', candidates: [] },
  ];

  it('is read from the extensions of the error', () => {
    expect(unresolvedOf({ extensions: { unresolved } })).toBe(unresolved);
    expect(unresolvedOf({ extensions: {} })).toBeUndefined();
  });

  it('has one text for each of the uses', () => {
    expect([...refusalsByUses(unresolved)]).toEqual([['build/a@^1', 'There is no a. Nor is there b.']]);
  });

  it('stands at the place of its uses, beside the other problems of the file', async () => {
    const text = 'pipeline:\n  name: demo\nstages:\n  one:\n    uses: build/a@^1\n  two:\n    rum: x\n';
    const problems = await refusedFileProblems(text, unresolved, parsePipeline);
    expect(problems).toContainEqual(
      expect.objectContaining({ path: 'stages.one.uses', line: 5, message: 'There is no a. Nor is there b.' }),
    );
    expect(problems.some(({ path }) => path.startsWith('stages.two'))).toBe(true);
  });
});
