/** Caches of stages whose files stay inside: laid out beside what they begin with, and saved from what is brought out. */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CacheToSave } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LeftInside } from '../src/artifacts/left-inside.ts';
import { laidOverOf, restoreForAttempt, saveForAttempt, type CachesOfAttempt } from '../src/caches/attempt-caches.ts';
import type { Prepared } from '../src/workspace/preparation.ts';

const NPM: CacheToSave = { key: 'npm', paths: ['node_modules', '~/.npm', '!node_modules/own'] };
const BUILT: CacheToSave = { key: 'built', paths: ['out/*.o'] };

let home: string;
let prepared: Prepared;
let restored: Parameters<CachesOfAttempt['caches']['restore']>[0][];
let saved: Parameters<CachesOfAttempt['caches']['save']>[];
let remarks: string[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-attempt-caches-'));
  const workspace = join(home, 'fresh');
  mkdirSync(workspace);
  const folders = { workspace, home, fresh: true, temporary: join(home, 'tmp'), outputFile: join(home, 'output') };
  prepared = { folders, packageFolder: undefined, maskFile: join(home, 'mask') };
  [restored, saved, remarks] = [[], [], []];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function caching(job: Partial<Job> = { caches: [] }): CachesOfAttempt {
  return {
    caches: {
      restore: async (stage) => {
        restored.push(stage);
        return [NPM];
      },
      save: async (...call) => {
        saved.push(call);
        return [{ key: 'npm', sha256: 'hash', bytes: 1 }];
      },
    },
    job: job as Job,
    user: undefined,
    signal: new AbortController().signal,
    remark: (text) => remarks.push(text),
  };
}

function leftInside(): LeftInside {
  return new LeftInside(join(home, 'left'), silentLogger());
}

it('are laid out in the stage’s own folders where those are its folders', async () => {
  const after = await restoreForAttempt(caching(), prepared, false);
  expect(restored).toMatchObject([{ folders: prepared.folders }]);
  expect(laidOverOf(after)).toBeUndefined();
  expect(await saveForAttempt(caching(), after, undefined)).toHaveLength(1);
  expect(saved).toMatchObject([[[NPM], { folders: prepared.folders }]]);
});

it('are laid out beside them where those stay inside, by the hashes of the stage’s own', async () => {
  const after = await restoreForAttempt(caching(), prepared, true);
  const over = laidOverOf(after) ?? [];
  expect(over.map(({ to }) => to)).toEqual([prepared.folders.workspace, home]);
  const [workspace, ofHome] = over.map(({ from }) => from);
  expect(restored).toMatchObject([{ folders: { workspace, home: ofHome }, hashedFolder: prepared.folders.workspace }]);
  expect([workspace, ofHome].every((path) => path !== undefined && existsSync(path))).toBe(true);
});

it('with none asked for nothing is made', async () => {
  expect(await restoreForAttempt(caching({}), prepared, true)).toBe(prepared);
});

it('of what a stage has left that is brought out which is to be saved, and no more', async () => {
  const left = leftInside().of({} as Job, prepared.folders, [NPM, BUILT]);
  const [workspace, ofHome] = left?.cached?.parts ?? [];
  expect(workspace).toMatchObject({ folder: prepared.folders.workspace, below: ['node_modules', 'out'] });
  expect(ofHome).toMatchObject({ folder: home, below: ['.npm'] });
  const files = [
    'node_modules/a',
    'node_modules/own/b',
    'out/x.o',
    'out/deep/x.o',
    '.npm/c',
    '../escape',
    'node_modules/../x',
  ];
  const links = ['node_modules/.bin/tool', '../a', 'elsewhere', 'a'];
  const { signal } = new AbortController();
  const list = Buffer.from([...files.map((path) => `./${path}`), '', ...links, ''].join('\0'));
  expect(await workspace?.pick(list, signal)).toEqual({
    files: ['node_modules/a', 'out/x.o'],
    links: new Map([['node_modules/.bin/tool', '../a']]),
    folders: [],
  });
  expect(await ofHome?.pick(list, signal)).toMatchObject({ files: ['.npm/c'], links: new Map() });
  expect(workspace?.isWanted({ kind: 'exit', code: 0 })).toBe(true);
  expect(workspace?.isWanted({ kind: 'exit', code: 1 })).toBe(false);
  expect(left?.all).toEqual(left?.cached?.parts);
});

it('what may be anywhere is looked for everywhere', () => {
  const left = leftInside().of({} as Job, prepared.folders, [NPM, { key: 'any', paths: ['*.o'] }]);
  expect(left?.cached?.parts[0]?.below).toBeUndefined();
});

it('are saved from what was brought out of where they stayed', async () => {
  const after = await restoreForAttempt(caching(), prepared, true);
  const left = leftInside().of({} as Job, prepared.folders, [NPM]);
  expect(await saveForAttempt(caching(), after, left?.cached)).toHaveLength(1);
  const [workspace, ofHome] = left?.cached?.parts ?? [];
  expect(saved).toMatchObject([[[NPM], { folders: { workspace: workspace?.into, home: ofHome?.into } }]]);
});

it('each with what is at its own paths and could not be brought out', async () => {
  const after = { ...(await restoreForAttempt(caching(), prepared, true)), caches: [NPM, BUILT] };
  const left = leftInside().of({} as Job, prepared.folders, after.caches);
  const list = Buffer.from(
    [
      './out/a.o',
      '',
      '',
      './out/pipe.o',
      './out/pipe',
      './node_modules/socket',
      './.npm/pipe',
      '',
      './.npm/shut',
      '',
    ].join('\0'),
  );
  for (const part of left?.cached?.parts ?? []) await part.pick(list, new AbortController().signal);
  await saveForAttempt(caching(), after, left?.cached);
  const [toSave = []] = saved[0] ?? [];
  expect(toSave.map(({ key, notTaken }) => [key, notTaken?.leftOut])).toEqual([
    [
      'npm',
      [
        { path: 'node_modules/socket', why: 'it is no file' },
        { path: '.npm/pipe', why: 'it is no file' },
        { path: '.npm/shut', why: 'the folder cannot be read' },
      ],
    ],
    ['built', [{ path: 'out/pipe.o', why: 'it is no file' }]],
  ]);
});

it('one of the home alone is looked for nowhere else', async () => {
  const left = leftInside().of({} as Job, prepared.folders, [{ key: 'home', paths: ['~/.m2'] }]);
  expect(left?.cached?.parts).toMatchObject([{ folder: home }]);
  expect(left?.cached?.folders.home).toBe(left?.cached?.parts[0]?.into);
});

it('are not saved where they could not be brought out, and the log says why', async () => {
  const after = await restoreForAttempt(caching(), prepared, true);
  const left = leftInside().of({} as Job, prepared.folders, [NPM]);
  const faults = new Map([[left?.cached?.parts[1]?.into ?? '', 'its Pod is gone']]);
  expect(await saveForAttempt(caching(), after, left?.cached, faults)).toBeUndefined();
  expect(saved).toEqual([]);
  expect(remarks).toEqual(["the cache 'npm' is not saved: its Pod is gone"]);
});
