import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeManifest, PART_BYTES, type ByAttempt, type KeptFile, type UploadPart } from '@penstock/artifacts';
import type { AttemptReply, AttemptRequest, Bus, LivingAttempt } from '@penstock/bus';
import { BadUserInput, Forbidden, NotFound, QuotaExceeded, Unavailable } from '@penstock/errors';
import { openFolderStore, type ObjectStore } from '@penstock/object-store';
import type { RunId } from '@penstock/run';
import { openSqliteStore, type DocumentStore } from '@penstock/store';
import { Grants } from '../src/artifacts/grants.ts';
import { IncomingUploads } from '../src/artifacts/incoming.ts';
import { ArtifactKeeper } from '../src/artifacts/keeper.ts';
import type { SweptRun } from '../src/artifacts/sweep.ts';
import { KeptUsage } from '../src/artifacts/usage.ts';
import { registryCollections } from '../src/index.ts';

const RUN = '01976d3a-0000-7000-8000-000000000001' as RunId;
const OTHER = '01976d3a-0000-7000-8000-000000000002' as RunId;
const DAY = 86_400_000;
const by = (runId: RunId = RUN): ByAttempt => ({
  ref: { runId, stage: 'build', attempt: 1, session: 's', credit: 1 },
  partition: 0,
});
const sumOf = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');
const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');

let folder: string;
let store: DocumentStore;
let objects: ObjectStore;
let keeper: ArtifactKeeper;
/** Of another registry. */
let another: ArtifactKeeper;
let incoming: IncomingUploads;
let now: number;
let boot: number;
/** By run and runner. */
let living: Map<string, LivingAttempt>;
let runs: Map<string, SweptRun>;
/** Who takes parts of uploads, by subject. */
let takers: Map<string, (body: UploadPart) => Promise<{ readonly ok: boolean; readonly code?: string }>>;
let asked = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-keeper-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: registryCollections });
  objects = await openFolderStore(join(folder, 'objects'));
  now = Date.now();
  boot = 0;
  living = new Map([[`${RUN} here`, { tenant: 't', key: 'k', expireMs: 7 * DAY }]]);
  runs = new Map();
  takers = new Map();
  asked = 0;
  const bus = {
    requestRetrying: async (_subject: string, { ref, runner }: AttemptRequest): Promise<AttemptReply> => {
      asked += 1;
      return { ok: true, epoch: 1, attempt: living.get(`${ref.runId} ${runner}`) ?? null } as AttemptReply;
    },
    respond: (subject: string, handler: never) => {
      takers.set(subject, (body) =>
        (handler as (body: UploadPart, call: { subject: string }) => Promise<{ ok: boolean }>)(body, { subject }),
      );
      return { stop: () => takers.delete(subject) };
    },
  } as unknown as Bus;
  incoming = new IncomingUploads();
  const grants = new Grants(bus);
  const runOf = async (id: string): Promise<SweptRun | null> => runs.get(id) ?? null;
  const parts = { bus, store, objects, runOf, now: () => now, time: { bootNow: () => boot }, grants, incoming };
  keeper = new ArtifactKeeper(parts);
  another = new ArtifactKeeper(parts);
});
afterEach(async () => {
  incoming.close();
  await store.close();
  await rm(folder, { recursive: true });
});

async function keep(
  content: string,
  runId: RunId = RUN,
): Promise<{ readonly file: KeptFile; readonly manifest: string }> {
  const file = { path: 'f', sizeBytes: content.length, sha256: sumOf(content), executable: false };
  await keeper.put('here', { ...by(runId), sha256: file.sha256, data: base64(content) });
  const { sha256 } = await keeper.seal('here', { ...by(runId), manifest: base64(encodeManifest([file])) });
  return { file, manifest: sha256 };
}

const stored = async (): Promise<string[]> => {
  const found = await Array.fromAsync(objects.list('artifacts/'));
  return found.map(({ key }) => key.split('/').at(-1) ?? '').toSorted();
};

function ended(manifest: string | undefined, { open = false, expiresAt = now + 7 * DAY } = {}): SweptRun {
  return {
    open,
    view: { stages: [manifest === undefined ? {} : { artifacts: { manifest, files: 1, bytes: 1, expiresAt } }] },
  };
}

describe('who may store', () => {
  it('is the runner with which the attempt lives, and nobody else', async () => {
    await expect(keeper.begin('there', { ...by(), files: 1, bytes: 1 })).rejects.toThrow(Forbidden);
    await expect(keeper.put('there', { ...by(), sha256: sumOf('x'), data: base64('x') })).rejects.toThrow(Forbidden);
    await expect(keeper.put('here', { ...by(OTHER), sha256: sumOf('x'), data: base64('x') })).rejects.toThrow(
      Forbidden,
    );
    await expect(keeper.get('there', { ...by(), sha256: sumOf('x'), offset: 0 })).rejects.toThrow(Forbidden);
    await expect(keeper.seal('there', { ...by(), manifest: base64(encodeManifest([])) })).rejects.toThrow(Forbidden);
    await expect(keeper.open('there', { ...by(), sha256: sumOf('x'), sizeBytes: 1 })).rejects.toThrow(Forbidden);
    expect(await stored()).toEqual([]);
  });

  it('reads in another run only where its own run has adopted stages of that one (P30)', async () => {
    living.set(`${OTHER} here`, { tenant: 't', key: 'k', expireMs: DAY });
    const { file } = await keep('hello', OTHER);
    const asking = { ...by(), run: OTHER, sha256: file.sha256, offset: 0 };
    await expect(keeper.get('here', asking)).rejects.toThrow(Forbidden);
    living.set(`${RUN} there`, { tenant: 't', key: 'k', expireMs: DAY, readsRuns: [OTHER] });
    expect(await keeper.get('there', asking)).toEqual({ data: base64('hello'), sizeBytes: 5 });
    await expect(keeper.get('there', { ...asking, run: undefined })).rejects.toThrow(NotFound);
  });

  it('is asked of the owner once for what follows at once', async () => {
    await keep('one');
    expect(asked).toBe(1);
    await keeper.begin('here', { ...by(), files: 1, bytes: 1 });
    expect(asked).toBe(1);
  });

  it.each([-1, 1.5, 1e9, Number.NaN])('a partition %d is none', async (partition) => {
    await expect(keeper.begin('here', { ...by(), partition, files: 1, bytes: 1 })).rejects.toThrow(BadUserInput);
  });

  it('a run or a hash that leads elsewhere is refused', async () => {
    const evil = { ...by(), ref: { ...by().ref, runId: '../x' as RunId } };
    living.set('../x here', { tenant: 't', key: 'k', expireMs: DAY });
    await expect(keeper.put('here', { ...evil, sha256: sumOf('x'), data: base64('x') })).rejects.toThrow(BadUserInput);
    await expect(keeper.part({ runId: RUN, sha256: '../../../x', offset: 0 })).rejects.toThrow(BadUserInput);
  });
});

it('what a run has adopted keeps nothing of its own from being swept (P30)', async () => {
  const { manifest } = await keep('own');
  const artifacts = { manifest: sumOf('elsewhere'), files: 1, bytes: 1, expiresAt: now + 7 * DAY, run: OTHER };
  runs.set(RUN, { open: false, view: { stages: [{ artifacts }] } });
  expect(await stored()).toContain(manifest);
  now += 2 * DAY;
  await keeper.sweep();
  expect(await stored()).toEqual([]);
});

describe('what is stored', () => {
  it('is what its hash says, and is read again in parts', async () => {
    await expect(keeper.put('here', { ...by(), sha256: sumOf('y'), data: base64('x') })).rejects.toThrow(BadUserInput);
    const { file } = await keep('hello');
    expect(await keeper.part({ runId: RUN, sha256: file.sha256, offset: 1 })).toEqual({
      data: base64('ello'),
      sizeBytes: 5,
    });
    await expect(keeper.part({ runId: OTHER, sha256: file.sha256, offset: 0 })).rejects.toThrow(NotFound);
  });

  it('a large content comes in parts, the last of which is answered when it is stored', async () => {
    const bytes = randomBytes(3 * PART_BYTES + 17);
    const sha256 = sumOf(bytes);
    const { upload } = await keeper.open('here', { ...by(), sha256, sizeBytes: bytes.length });
    const subject = `svc.registry.upload.here.${upload}`;
    const take = takers.get(subject) as (body: UploadPart) => Promise<{ readonly ok: boolean }>;
    const parts: Promise<unknown>[] = [];
    for (let offset = 0; offset < bytes.length; offset += PART_BYTES)
      parts.push(take({ offset, data: base64(bytes.subarray(offset, offset + PART_BYTES)) }));
    expect(await Promise.all(parts)).toEqual(parts.map(() => expect.objectContaining({ ok: true })));
    expect(await stored()).toEqual([sha256]);
    // Nobody listens to an upload that is over, and what is stored is not asked for again.
    expect(takers.has(subject)).toBe(false);
    expect(await keeper.open('here', { ...by(), sha256, sizeBytes: bytes.length })).toEqual({ upload: null });
  });

  it('a part that is missing, and one too many, are refused; what ends early leaves nothing', async () => {
    const bytes = randomBytes(2 * PART_BYTES);
    const { upload } = await keeper.open('here', { ...by(), sha256: sumOf(bytes), sizeBytes: bytes.length });
    const take = takers.get(`svc.registry.upload.here.${upload}`) as (
      body: UploadPart,
    ) => Promise<{ readonly ok: boolean; readonly code?: string }>;
    expect(await take({ offset: PART_BYTES, data: base64(bytes.subarray(PART_BYTES)) })).toMatchObject({
      ok: false,
      code: 'NOT_FOUND',
    });
    await take({ offset: 0, data: base64(bytes.subarray(0, PART_BYTES)) });
    expect(await take({ offset: PART_BYTES, data: base64(Buffer.alloc(PART_BYTES + 1)) })).toMatchObject({ ok: false });
    incoming.close();
    expect(await stored()).toEqual([]);
  });

  it('INCOMING-2: whoever begins uploads and sends nothing has half of the places; others store, and so does it once one is over', async () => {
    living.set(`${RUN} hostile`, { tenant: 'mallory', key: 'm', expireMs: DAY });
    const begin = async (): Promise<void> => {
      const bytes = randomBytes(2 * PART_BYTES);
      await keeper.open('hostile', { ...by(), sha256: sumOf(bytes), sizeBytes: bytes.length });
    };
    for (let upload = 0; upload < 16; upload += 1) await begin();
    await expect(begin()).rejects.toThrow(Unavailable);
    const bytes = randomBytes(PART_BYTES + 1);
    const { upload } = await keeper.open('here', { ...by(), sha256: sumOf(bytes), sizeBytes: bytes.length });
    expect(upload).toEqual(expect.any(String));
    const take = takers.get(`svc.registry.upload.here.${upload}`) as (body: UploadPart) => Promise<unknown>;
    void take({ offset: 0, data: base64(bytes.subarray(0, PART_BYTES)) });
    await take({ offset: PART_BYTES, data: base64(bytes.subarray(PART_BYTES)) });
    expect(await stored()).toEqual([sumOf(bytes)]);
    incoming.close();
    await expect.poll(() => begin().then(() => 'begun')).toBe('begun');
  });

  it('a list that names what cannot be a path is refused', async () => {
    const manifest = base64(
      JSON.stringify({ version: 1, files: [{ path: '../x', sizeBytes: 1, sha256: sumOf('x'), executable: false }] }),
    );
    await expect(keeper.seal('here', { ...by(), manifest })).rejects.toThrow(BadUserInput);
  });

  it('counts for its key, and more than the key may have is refused', async () => {
    living.set(`${RUN} here`, { tenant: 't', key: 'k', expireMs: 7 * DAY, artifactBytes: 10 });
    await keep('12345678');
    expect(await keeper.usage({ key: 'k' })).toEqual({ bytes: 8 });
    expect(await keeper.usage({ key: 'other' })).toEqual({ bytes: 0 });
    await keeper.begin('here', { ...by(), files: 1, bytes: 2 });
    await expect(keeper.begin('here', { ...by(), files: 1, bytes: 3 })).rejects.toThrow(QuotaExceeded);
    await expect(keeper.open('here', { ...by(), sha256: sumOf('z'), sizeBytes: 3 })).rejects.toThrow(QuotaExceeded);
  });
});

describe('KEEPER-3: what lies there and counts for no key yet', () => {
  const MB = 1_000_000;
  const attempt = (key: string): LivingAttempt => ({ tenant: key, key, expireMs: DAY, artifactBytes: 100 * MB });
  const begin = async (runner: string, sizeBytes = 100 * MB): Promise<unknown> =>
    await keeper.open(runner, { ...by(), sha256: sumOf(randomBytes(8)), sizeBytes });
  /** Of a key that keeps little, 32 of which may lie there; each of another content. */
  const put = async (count: number): Promise<string[]> => {
    const sums: string[] = [];
    for (let each = 0; each < count; each += 1) {
      const data = randomBytes(PART_BYTES);
      await keeper.put('small', { ...by(), sha256: sumOf(data), data });
      sums.push(sumOf(data));
    }
    return sums;
  };
  const seal = async (sums: readonly string[], sizeBytes = PART_BYTES): Promise<string> => {
    const files = sums.map((sha256) => ({ path: sha256, sizeBytes, sha256, executable: false }));
    return (await another.seal('small', { ...by(), manifest: base64(encodeManifest(files)) })).sha256;
  };

  beforeEach(() => {
    living.set(`${RUN} hostile`, attempt('m'));
    living.set(`${RUN} other`, attempt('o'));
    living.set(`${RUN} small`, { tenant: 's', key: 's', expireMs: 3 * DAY, artifactBytes: 8 * PART_BYTES });
    living.set(`${RUN} any`, { tenant: 'e', key: 'e', expireMs: DAY });
  });

  it('is four times what it may keep, with what is on its way in; it costs that key alone, and ends with the upload', async () => {
    for (let upload = 0; upload < 4; upload += 1) await begin('hostile');
    await expect(begin('hostile', PART_BYTES)).rejects.toThrow('400.0 MB may lie there');
    await begin('other');
    for (let upload = 0; upload < 5; upload += 1) await begin('any');
    incoming.close();
    await expect.poll(() => begin('hostile').then(() => 'begun')).toBe('begun');
  });

  it('is no more what a list counts, by the bytes that it says, wherever that was sealed', async () => {
    const sums = await put(32);
    await seal(sums.slice(0, 8));
    await put(8);
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
  });

  it('is what a list says to be smaller than it is, which the sweep removes', async () => {
    const manifest = await seal(await put(32), 1);
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
    runs.set(RUN, ended(manifest));
    now += 2 * DAY;
    expect(await keeper.sweep()).toEqual({ objects: 32, lists: 0 });
    expect(await stored()).toEqual([manifest]);
    await put(32);
  });

  it('is nothing of many small files that a list names, nor the list itself', async () => {
    const sums: string[] = [];
    for (let each = 0; each < 1_500; each += 1) {
      const data = Buffer.from(String(each).padEnd(10));
      sums.push(sumOf(data));
      await keeper.put('small', { ...by(), sha256: sumOf(data), data });
    }
    await seal(sums, 10);
    expect(await put(31)).toHaveLength(31);
  });

  it('nothing goes that is smaller than a list says', async () => {
    const sums = await put(2);
    const manifest = await seal(sums, PART_BYTES + 1);
    runs.set(RUN, ended(manifest));
    now += 2 * DAY;
    expect(await keeper.sweep()).toEqual({ objects: 0, lists: 0 });
    expect(await stored()).toEqual([...sums, manifest].toSorted());
  });

  it('is what has expired, and what came to nothing, until it is swept', async () => {
    await seal(await put(8));
    now += 3 * DAY;
    await put(24);
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
    now += 2 * DAY;
    runs.set(RUN, ended(undefined, { open: true }));
    await keeper.sweep();
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
    runs.set(RUN, ended(undefined));
    await keeper.sweep();
    expect(await stored()).toEqual([]);
    await put(32);
  });

  it('is not taken from by a list that is sealed again: it counted before', async () => {
    const usage = new KeptUsage(store, () => now);
    const list = { runId: RUN, tenant: 's', key: 's', manifest: 'm', bytes: 5, weight: 7, expiresAt: now + DAY };
    await usage.add(list);
    const since = now;
    now += 1;
    await usage.add(list);
    expect(await usage.weightByRun('s', new Map([[RUN, since]]))).toEqual(new Map([[RUN, 7]]));
    expect(await usage.weightByRun('s', new Map([[RUN, now]]))).toEqual(new Map());
  });

  it('what a list keeps counts once, also where it is sealed again, as one is whose answer was lost', async () => {
    const usage = new KeptUsage(store, () => now, { bootNow: () => boot });
    const list = { runId: RUN, tenant: 's', key: 's', manifest: 'm', bytes: 5, weight: 7, expiresAt: now + DAY };
    expect(await usage.bytesOf('s')).toBe(0);
    await usage.add(list);
    now += 1;
    await usage.add(list);
    expect(await usage.bytesOf('s')).toBe(5);
    now += 2 * DAY;
    boot += 2 * DAY;
    expect(await usage.bytesOf('s')).toBe(0);
    await usage.add({ ...list, expiresAt: now + DAY });
    expect(await usage.bytesOf('s')).toBe(5);
  });

  it('is what has expired, wherever that was uploaded', async () => {
    living.set(`${RUN} small`, { tenant: 's', key: 's', expireMs: 1, artifactBytes: 8 * PART_BYTES });
    for (let each = 0; each < 4; each += 1) {
      await seal(await put(8));
      now += 1;
      boot += 10_000;
    }
    const [request, data] = [by(), randomBytes(PART_BYTES)];
    await another.begin('small', { ...request, files: 1, bytes: PART_BYTES });
    await expect(another.put('small', { ...request, sha256: sumOf(data), data })).rejects.toThrow(QuotaExceeded);
  });

  it('is not what has failed', async () => {
    for (let tries = 0; tries < 40; tries += 1)
      await expect(
        keeper.put('small', { ...by(), sha256: sumOf('other'), data: randomBytes(PART_BYTES) }),
      ).rejects.toThrow(BadUserInput);
    await put(32);
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
  });
});

describe('the sweep', () => {
  it('takes what no run names a day after it was stored, and not before', async () => {
    const { file, manifest } = await keep('named');
    await keeper.put('here', {
      ...by(),
      sha256: sumOf('of an attempt that failed'),
      data: base64('of an attempt that failed'),
    });
    runs.set(RUN, ended(manifest));
    expect(await keeper.sweep()).toEqual({ objects: 0, lists: 0 });
    now += 2 * DAY;
    expect(await keeper.sweep()).toEqual({ objects: 1, lists: 0 });
    expect(await stored()).toEqual([file.sha256, manifest].toSorted());
    expect(await keeper.usage({ key: 'k' })).toEqual({ bytes: 5 });
  });

  it('keeps the tests that a stage has told of, as long as they are listed', async () => {
    const { file, manifest } = await keep('{}');
    const report = {
      manifest,
      files: 1,
      bytes: 2,
      total: 1,
      failed: 0,
      skipped: 0,
      durationMs: 0,
      expiresAt: now + 3 * DAY,
    };
    runs.set(RUN, { open: false, view: { stages: [{ report }] } });
    now += 2 * DAY;
    expect(await keeper.sweep()).toEqual({ objects: 0, lists: 0 });
    expect(await stored()).toEqual([file.sha256, manifest].toSorted());
    now += 2 * DAY;
    expect(await keeper.sweep()).toEqual({ objects: 2, lists: 1 });
  });

  it('takes nothing of a run that is not closed', async () => {
    const { file, manifest } = await keep('waiting');
    now += 2 * DAY;
    runs.set(RUN, ended(undefined, { open: true }));
    expect(await keeper.sweep()).toEqual({ objects: 0, lists: 0 });
    expect(await stored()).toEqual([file.sha256, manifest].toSorted());
  });

  it.each([
    ['expired', (manifest: string) => ended(manifest, { expiresAt: now - DAY })],
    ['never named', () => ended(undefined)],
    ['of no run', () => undefined],
  ])('takes all that is %s, and its count', async (_name, runOf) => {
    const { manifest } = await keep('gone');
    now += 2 * DAY;
    const run = runOf(manifest);
    if (run !== undefined) runs.set(RUN, run);
    expect(await keeper.sweep()).toEqual({ objects: 2, lists: 1 });
    expect(await stored()).toEqual([]);
  });

  it('takes what has expired a day later: by the clocks of others it is there until then', async () => {
    const { manifest } = await keep('just expired');
    runs.set(RUN, ended(manifest, { expiresAt: now + DAY }));
    now += 2 * DAY - 1;
    expect(await keeper.sweep()).toEqual({ objects: 0, lists: 0 });
    now += 1;
    expect(await keeper.sweep()).toEqual({ objects: 2, lists: 1 });
  });

  it('keeps all of a run whose list cannot be read: what it names is not known', async () => {
    const { file, manifest } = await keep('kept');
    runs.set(RUN, ended(manifest));
    await objects.delete(`artifacts/${RUN}/${manifest}`);
    now += 2 * DAY;
    expect((await keeper.sweep()).objects).toBe(0);
    expect(await stored()).toEqual([file.sha256]);
  });
});
