/** Which of what a stage has left in its Pod is wanted: names and patterns are a stranger's. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Job } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LeftInside } from '../src/artifacts/left-inside.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-left-inside-'));
});
afterEach(() => rmSync(home, { recursive: true }));

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
  const picking = kept(['**/*-7*7*7*', 'some/**/x*']).pick(listOf(names));
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
  const { files } = await kept(['file-1*', 'file-2*'], ['file-3*']).pick(listOf(names));
  expect(files.filter((path) => !path.startsWith('file-3'))).toHaveLength(10_001);
  expect(files).toContain('file-3');
});
