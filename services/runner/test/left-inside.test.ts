/** Which of what a stage has left in its Pod is wanted: names and patterns are a stranger's. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Job } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LeftInside } from '../src/artifacts/left-inside.ts';
import { PickTurns } from '../src/artifacts/left-picks.ts';
import { pickFrom } from '../src/artifacts/pick-task.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-left-inside-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const { signal: wanted } = new AbortController();
const listOf = (files: readonly string[]): Buffer =>
  Buffer.from([...files.map((path) => `./${path}`), '', ''].join('\0'));

function kept(paths: readonly string[], junit?: readonly string[]) {
  const left = new LeftInside(join(home, 'left'), silentLogger());
  const job = {
    artifacts: { paths, when: 'always', required: false },
    ...(junit === undefined ? {} : { reports: { junit } }),
  } as unknown as Job;
  const part = left.of(job, { workspace: join(home, 'workspace'), home })?.kept;
  if (part === undefined) throw new Error('nothing is wanted');
  return part;
}

it('is looked for while the runner does other work, however many names there are', async () => {
  const names = Array.from({ length: 20_000 }, (_none, at) => `some/folder/of/many/file-${at}`);
  let isOver = false;
  const picking = kept(['**/*-7*7*7*', 'some/**/x*']).pick(listOf(names), wanted);
  const over = picking.finally(() => {
    isOver = true;
  });
  let turns = 0;
  for (; !isOver; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThan(100);
  expect((await over).files).toContain('some/folder/of/many/file-777');
});

it('is no more than one file more than may be kept, of artifacts and of reports', async () => {
  const names = Array.from({ length: 30_000 }, (_none, at) => `file-${at}`);
  const { files } = await kept(['file-1*', 'file-2*'], ['file-3*']).pick(listOf(names), wanted);
  expect(files.filter((path) => !path.startsWith('file-3'))).toHaveLength(10_001);
  expect(files).toContain('file-3');
});

it('is no more than a cache may have, whoever has made the list: the runner takes the answer', () => {
  const names = Array.from({ length: 500_001 }, (_none, at) => `x/${at}`);
  expect(() => pickFrom({ list: listOf(names), wanted: { cached: [['x']], root: 'workspace' } })).toThrow(
    'there are more than 500000 files and links',
  );
});

it('says what of its artifacts, not of its reports, is there and cannot be brought', async () => {
  const part = kept(['dist/**'], ['reports/**']);
  const list = Buffer.from(['./dist/a', './dist/b\nc', '', '', './reports/pipe', './dist/pipe', '', ''].join('\0'));
  expect(await part.pick(list, wanted)).toEqual({ files: ['dist/a'], links: new Map(), folders: [] });
  expect(part.notTaken()[0]).toEqual({
    leftOut: [
      { path: 'dist/b\nc', why: 'it has control characters, or a backslash' },
      { path: 'dist/pipe', why: 'it is no file' },
    ],
    leftOutCount: 2,
  });
});

describe('the turns of stages', () => {
  const nothing = { files: [], links: new Map(), folders: [], notTaken: [] };
  const taskOf = (name: string) => ({ list: Buffer.from(name), wanted: { lists: [] } });
  /** What the thread has, and what it is to answer. */
  function turnsOf() {
    const begun: { name: string; answer: ReturnType<typeof Promise.withResolvers<typeof nothing>> }[] = [];
    const turns = new PickTurns(({ list }, signal) => {
      const answer = Promise.withResolvers<typeof nothing>();
      signal.addEventListener('abort', () => answer.reject(signal.reason));
      begun.push({ name: Buffer.from(list).toString(), answer });
      return answer.promise;
    });
    return { turns, begun, names: () => begun.map(({ name }) => name) };
  }

  it('come one after the other: what ends the thread ends no more than the task that it was at', async () => {
    const { turns, begun, names } = turnsOf();
    const picks = Promise.allSettled(['a', 'b'].map((name) => turns.pick(taskOf(name), wanted)));
    await nextTurn();
    expect(names()).toEqual(['a']);
    const late = new Error('the thread did not answer in time');
    begun[0]?.answer.reject(late);
    await nextTurn();
    begun[1]?.answer.resolve(nothing);
    expect(await picks).toEqual([
      { status: 'rejected', reason: late },
      { status: 'fulfilled', value: nothing },
    ]);
  });

  it('are given up with the stage that wanted them: nobody waits for what the thread was at', async () => {
    const { turns, begun, names } = turnsOf();
    const stopped = new AbortController();
    const picks = Promise.allSettled(['a', 'b'].map((name) => turns.pick(taskOf(name), stopped.signal)));
    await nextTurn();
    const reason = new Error('stopped');
    stopped.abort(reason);
    expect(await picks).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    const last = turns.pick(taskOf('c'), wanted);
    await nextTurn();
    expect(names()).toEqual(['a', 'c']);
    begun[1]?.answer.resolve(nothing);
    await expect(last).resolves.toBe(nothing);
  });
});
