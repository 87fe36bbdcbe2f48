/** Archives of caches on their way to who keeps them. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PART_BYTES } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import type { StorageLine } from '../src/artifacts/storage-line.ts';
import { StageCaches, type CachedJob } from '../src/caches/stage-caches.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-stage-caches-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What this process has open below the folder. */
const openFiles = (): string[] =>
  readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });

it.runIf(process.platform === 'linux')('one whose bytes are kept already leaves no file open behind it', async () => {
  const workspace = mkdtempSync(join(folder, 'workspace-'));
  writeFileSync(join(workspace, 'large'), randomBytes(3 * PART_BYTES));
  const asked: string[] = [];
  const storage: StorageLine = async (verb) => {
    asked.push(verb);
    return verb === 'cache-begin' ? { wanted: true } : { upload: null };
  };
  const caches = new StageCaches({ storage, folder: join(folder, 'archives'), log: silentLogger() });
  const stage = {
    ...{ job: { runId: 'r', stage: 's' } as Job, folders: { workspace, home: undefined }, user: undefined },
    ...{ signal: new AbortController().signal, remark: () => {} },
  } satisfies CachedJob;
  expect(await caches.save([{ key: 'k', paths: ['large'] }], stage)).toMatchObject([{ key: 'k' }]);
  expect(asked).toEqual(['cache-begin', 'cache-open']);
  expect([readdirSync(join(folder, 'archives')), openFiles()]).toEqual([[], []]);
});

it('one of which something could not be brought where it is packed says so beside what is left out there', async () => {
  const workspace = mkdtempSync(join(folder, 'workspace-'));
  symlinkSync('/etc/passwd', join(workspace, 'out'));
  const remarks: string[] = [];
  const caches = new StageCaches({
    storage: () => Promise.reject(new Error('nothing is stored')),
    folder: join(folder, 'archives'),
    log: silentLogger(),
  });
  const stage = {
    ...{ job: { runId: 'r', stage: 's' } as Job, folders: { workspace, home: undefined }, user: undefined },
    ...{ signal: new AbortController().signal, remark: (text: string) => void remarks.push(text) },
  } satisfies CachedJob;
  const notTaken = { leftOut: [{ path: 'pipe', why: 'it is no file' }], leftOutCount: 1 };
  expect(await caches.save([{ key: 'k', paths: ['pipe', 'out'], notTaken }], stage)).toEqual([]);
  expect(remarks).toEqual([
    '"pipe" is not kept: it is no file',
    '"out" is not kept: it is a link that leaves the folder',
    "the cache 'k' is not saved: there is nothing at its paths",
  ]);
});
