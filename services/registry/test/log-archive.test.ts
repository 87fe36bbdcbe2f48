/** P34: logs go from LOGS to packs and lose nothing, whatever fails in between; and they go where they are not to be kept. */
import { mkdtemp, rm, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeFrame, type LoggedRuns, type StoredChunk } from '@penstock/bus';
import { openFolderStore, type ObjectStore } from '@penstock/object-store';
import { newRun, newRunId, planOf, viewOf, type RunCreated } from '@penstock/run';
import { LogArchive, openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LogArchiver } from '../src/archive/archiver.ts';
import { Packs } from '../src/archive/packs.ts';
import { sweepPacks } from '../src/archive/pack-sweep.ts';
import { brokenAt } from './broken-at.ts';

const NOW = Date.now();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const never = new AbortController().signal;

let folder: string;
let store: DocumentStore;
let runs: RunsRepository;
let archive: LogArchive;
let objects: ObjectStore;
let packs: Packs;
let logs: FakeLogs;
let now: number;
const time = { bootNow: () => now, wallNow: () => now };

/** LOGS in memory. */
class FakeLogs {
  readonly stored = new Map<string, StoredChunk[]>();
  share = 0;

  async runs(): Promise<LoggedRuns> {
    const all = [...this.stored].map(([runId, chunks]) => ({ runId, chunks: chunks.length }));
    return { runs: all.toSorted((one, other) => (one.runId < other.runId ? -1 : 1)), spans: [], share: this.share };
  }

  async *chunks(runId: string): AsyncGenerator<StoredChunk, void> {
    yield* this.stored.get(runId) ?? [];
  }

  async purge(runId: string): Promise<void> {
    this.stored.delete(runId);
  }
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-archive-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections, synchronous: 'normal' });
  runs = new RunsRepository(store);
  archive = new LogArchive(store);
  objects = await openFolderStore(join(folder, 'objects'));
  packs = new Packs(objects);
  logs = new FakeLogs();
  now = NOW;
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

let number = 0;

async function saveRun(tenant: string, { open = false, id = idOf(tenant) } = {}): Promise<string> {
  const created: RunCreated = {
    type: 'run_created',
    at: NOW,
    tenant,
    key: tenant,
    pipelineName: 'p',
    yaml: '',
    priority: 0,
    origin: { kind: 'api' },
  };
  const state = newRun(id, created, planOf({ name: 'p', schedule: [], stages: [] }));
  await runs.saveBatch([
    { partition: 0, open, incarnation: 1, sequence: 1, state, events: [created], view: viewOf(state) },
  ]);
  return id;
}

function idOf(tenant: string): string {
  number += 1;
  return newRunId({ now: NOW + number, key: tenant, random: crypto.getRandomValues(new Uint8Array(8)) });
}

/** Output that does not get smaller, so that what is large stays so. */
function write(runId: string, chunks: number, chunkBytes = 100): readonly StoredChunk[] {
  const written = Array.from({ length: chunks }, (_, index): StoredChunk => {
    const output = Buffer.alloc(chunkBytes);
    for (let from = 0; from < chunkBytes; from += 65_536)
      crypto.getRandomValues(output.subarray(from, Math.min(chunkBytes, from + 65_536)));
    const chunk = {
      stage: 's',
      attempt: 1,
      offset: index * chunkBytes,
      at: NOW,
      parts: [['stdout', chunkBytes] as const],
      output,
    };
    return { sequence: number * 100_000 + index * 3, runner: `r${index % 2}`, chunk };
  });
  logs.stored.set(runId, written.slice());
  return written;
}

function archiver(parts: Partial<ConstructorParameters<typeof LogArchiver>[0]> = {}): LogArchiver {
  return new LogArchiver({ logs, archive, objects, time, log: silentLog, ...parts });
}

/** As a reader gets it: from the archive where there is a pointer, else from LOGS. */
async function read(runId: string): Promise<StoredChunk[]> {
  const pointer = await archive.of(runId);
  if (pointer === null) return logs.stored.get(runId) ?? [];
  const frames: StoredChunk[] = [];
  for (const [object, from, bytes] of pointer.frames)
    frames.push(...(await decodeFrame(await packs.part({ pack: pointer.pack, object, from, bytes }))));
  return frames;
}

/** Compared as they were written: a Buffer that is a part of another is equal to itself only by its bytes. */
function plain(chunks: readonly StoredChunk[]): string {
  return JSON.stringify(
    chunks.map(({ sequence, runner, chunk }) => ({
      sequence,
      runner,
      ...chunk,
      output: Buffer.from(chunk.output).toString('base64'),
    })),
  );
}

const sweep = () => sweepPacks({ archive, objects, packs, time, log: silentLog, logRetentionMs: 30 * DAY_MS }, never);

async function packFiles(): Promise<string[]> {
  const files = await readdir(join(folder, 'objects', 'objects', 'log-packs'), {
    recursive: true,
    withFileTypes: true,
  }).catch(() => []);
  return files.filter((file) => file.isFile()).map(({ name }) => name);
}

describe('packing', () => {
  it('packs closed runs only, a pack for each tenant, and keeps their chunks for an hour', async () => {
    const [first, second, other, live] = [
      await saveRun('ada'),
      await saveRun('ada'),
      await saveRun('ben'),
      await saveRun('ada', { open: true }),
    ];
    const unknown = idOf('ada');
    const written = new Map([first, second, other, live, unknown].map((id) => [id, plain(write(id, 5))]));
    const one = archiver();
    expect(await one.pass(never)).toEqual({ runs: 0, packs: 0, purged: 0 });
    now += HOUR_MS;
    expect(await one.pass(never)).toEqual({ runs: 3, packs: 2, purged: 0 });
    const [ofFirst, ofSecond, ofOther] = [await archive.of(first), await archive.of(second), await archive.of(other)];
    expect(ofFirst?.pack).toBe(ofSecond?.pack);
    expect(ofOther?.pack).not.toBe(ofFirst?.pack);
    expect(await archive.of(live)).toBeNull();
    expect(await archive.of(unknown)).toBeNull();
    now += HOUR_MS - 1;
    expect((await one.pass(never)).purged).toBe(0);
    now += 1;
    expect((await one.pass(never)).purged).toBe(3);
    expect([...logs.stored.keys()]).toEqual([live, unknown]);
    for (const [id, text] of written) expect(plain(await read(id))).toBe(text);
  });

  it('a log larger than an object lies in several, each of its frames in one', async () => {
    const id = await saveRun('ada');
    const text = plain(write(id, 300, 64 * 1024));
    now += HOUR_MS;
    await archiver().pass(never);
    const pointer = await archive.of(id);
    expect(pointer?.objects).toBe(3);
    expect(await packFiles()).toHaveLength(3);
    expect(plain(await read(id))).toBe(text);
  });

  it('a log of very many changes between outputs comes back, whose chunks are larger than what was written', async () => {
    const id = await saveRun('ada');
    const chunks = write(id, 1_100, 600).map(({ chunk, ...stored }) => ({
      ...stored,
      chunk: {
        ...chunk,
        parts: Array.from({ length: 300 }, (_, index) => [index % 2 === 0 ? 'stdout' : 'stderr', 2] as const),
      },
    }));
    logs.stored.set(id, chunks);
    now += HOUR_MS;
    expect((await archiver().pass(never)).runs).toBe(1);
    expect(plain(await read(id))).toBe(plain(chunks));
  });

  it("what is the matter with one tenant's runs holds up neither those of others nor the purging (ARCHIVER-4)", async () => {
    const packed = await saveRun('ada');
    write(packed, 1);
    const one = archiver();
    now += HOUR_MS;
    await one.pass(never);
    const [bad, good] = [await saveRun('ben'), await saveRun('cleo')];
    for (const id of [bad, good]) write(id, 1);
    now += HOUR_MS;
    const read = logs.chunks.bind(logs);
    logs.chunks = (runId) => {
      if (runId === bad) throw new TypeError('nobody can read this');
      return read(runId);
    };
    await expect(one.pass(never)).rejects.toThrow('nobody can read this');
    expect([await archive.of(bad), (await archive.of(good))?.runId]).toEqual([null, good]);
    expect([...logs.stored.keys()]).toEqual([bad, good]);
  });

  it('where LOGS is half full it packs at once, and purges five minutes later', async () => {
    const id = await saveRun('ada');
    write(id, 3);
    logs.share = 0.5;
    const one = archiver();
    expect((await one.pass(never)).runs).toBe(1);
    now += 5 * MINUTE_MS - 1;
    expect((await one.pass(never)).purged).toBe(0);
    now += 1;
    expect((await one.pass(never)).purged).toBe(1);
  });

  it('of two archivers at once one has the pointer, and what the other has packed is swept', async () => {
    const ids = [await saveRun('ada'), await saveRun('ada')];
    const written = ids.map((id) => plain(write(id, 4)));
    now += HOUR_MS;
    const done = await Promise.all([archiver().pass(never), archiver().pass(never)]);
    expect(done[0].runs + done[1].runs).toBe(2);
    now += 2 * DAY_MS;
    await sweep();
    now += 2 * DAY_MS;
    await sweep();
    expect(await packFiles()).toHaveLength(1);
    expect(await Promise.all(ids.map(async (id) => plain(await read(id))))).toEqual(written);
  });

  it('a pack that has gone is made anew, while the chunks are there; and nothing is purged', async () => {
    const id = await saveRun('ada');
    const text = plain(write(id, 4));
    now += HOUR_MS;
    const one = archiver();
    await one.pass(never);
    for await (const { key } of objects.list('log-packs/')) await objects.delete(key);
    now += HOUR_MS;
    expect((await one.pass(never)).purged).toBe(0);
    expect((await one.pass(never)).runs).toBe(1);
    now += HOUR_MS;
    expect((await one.pass(never)).purged).toBe(1);
    expect(plain(await read(id))).toBe(text);
  });

  it('bytes that no runner has made hold up nobody else, and stay', async () => {
    const [bad, good] = [await saveRun('ada'), await saveRun('ada')];
    write(bad, 1);
    const text = plain(write(good, 2));
    now += HOUR_MS;
    const chunks = async function* (runId: string): AsyncGenerator<StoredChunk, void> {
      yield* logs.chunks(runId);
      if (runId === bad) throw new SyntaxError('log chunk without a head');
    };
    const one = archiver({ logs: { runs: () => logs.runs(), chunks, purge: (runId) => logs.purge(runId) } });
    expect((await one.pass(never)).runs).toBe(1);
    expect((await one.pass(never)).runs).toBe(0);
    expect(await archive.of(bad)).toBeNull();
    expect(plain(await read(good))).toBe(text);
  });
});

describe('whatever fails, and whoever dies', () => {
  for (const how of ['before', 'after'] as const)
    it(`a step that fails ${how} it was done loses and doubles nothing, at no point of it`, async () => {
      let failures = 0;
      for (let point = 0; ; point++) {
        const ids = [await saveRun('ada'), await saveRun('ada'), await saveRun('ben')];
        const written = new Map(ids.map((id, index) => [id, plain(write(id, index + 2))]));
        const break_ = brokenAt(point, how);
        const broken = archiver({
          logs: break_.part(logs),
          archive: break_.part(archive),
          objects: break_.part(objects),
        });
        now += HOUR_MS;
        for (let pass = 0; pass < 3 && !break_.isBroken; pass++) {
          const failed = await broken.pass(never).catch((error: unknown) => error);
          if (break_.isBroken && failed !== break_.error) throw failed;
          now += HOUR_MS;
        }
        // At that moment, and then by another process that knows of nothing.
        for (const [id, text] of written) expect(plain(await read(id)), `at step ${point}`).toBe(text);
        const next = archiver();
        for (let pass = 0; pass < 3; pass++) {
          await next.pass(never);
          for (const [id, text] of written) expect(plain(await read(id)), `after step ${point}`).toBe(text);
          now += HOUR_MS;
        }
        expect(logs.stored.size).toBe(0);
        if (!break_.isBroken) break;
        failures += 1;
      }
      expect(failures).toBeGreaterThan(10);
    }, 120_000);

  it('a pack that is written anew loses nothing at any point either', async () => {
    for (let point = 0; ; point++) {
      const [first, second, third] = [await saveRun('ada'), await saveRun('ada'), await saveRun('ada')];
      const written = new Map([first, second, third].map((id) => [id, plain(write(id, 3))]));
      now += HOUR_MS;
      await archiver().pass(never);
      await runs.saveTombstones([
        { id: second, partition: 0, tenant: 'ada', parent: '', deletedAt: NOW, incarnation: 1, sequence: 9 },
      ]);
      written.delete(second);
      now += 3 * HOUR_MS;
      const break_ = brokenAt(point, 'after');
      const broken = { archive: break_.part(archive), objects: break_.part(objects), packs: break_.part(packs) };
      await sweepPacks({ ...broken, time, log: silentLog, logRetentionMs: 30 * DAY_MS }, never).catch(() => {});
      for (const [id, text] of written) expect(plain(await read(id)), `at step ${point}`).toBe(text);
      for (let sweeps = 0; sweeps < 2; sweeps++) {
        now += DAY_MS;
        await sweep();
        for (const [id, text] of written) expect(plain(await read(id)), `after step ${point}`).toBe(text);
      }
      expect(await archive.of(second)).toBeNull();
      logs.stored.clear();
      if (!break_.isBroken) break;
    }
  }, 120_000);
});

describe('what is not to be kept', () => {
  async function archived(
    tenant: string,
    count: number,
  ): Promise<{ readonly ids: readonly string[]; readonly texts: readonly string[] }> {
    const ids: string[] = [];
    const texts: string[] = [];
    for (let index = 0; index < count; index++) {
      const id = await saveRun(tenant);
      ids.push(id);
      texts.push(plain(write(id, 3)));
    }
    now += HOUR_MS;
    const one = archiver();
    await one.pass(never);
    now += HOUR_MS;
    await one.pass(never);
    return { ids, texts };
  }

  async function deleteRun(id: string): Promise<void> {
    await runs.saveTombstones([
      { id, partition: 0, tenant: 'ada', parent: '', deletedAt: NOW, incarnation: 1, sequence: 9 },
    ]);
  }

  it('a pack that cannot be written anew holds up no other one (PACKSWEEP-4)', async () => {
    const tenants = [await archived('ada', 2), await archived('ben', 2)];
    for (const { ids } of tenants) await deleteRun(ids[1] as string);
    now += 2 * HOUR_MS;
    const part = packs.part.bind(packs);
    let bad: string | undefined;
    packs.part = async (wanted) => {
      bad ??= wanted.pack;
      if (wanted.pack === bad) throw new TypeError('nobody can read this');
      return await part(wanted);
    };
    await expect(sweep()).rejects.toThrow('nobody can read this');
    packs.part = part;
    const pointers = await Promise.all(tenants.map(({ ids }) => archive.of(ids[0] as string)));
    expect(pointers.map((pointer) => [pointer?.pack === bad, pointer?.generation]).toSorted()).toEqual([
      [false, 2],
      [true, 1],
    ]);
    for (const { ids, texts } of tenants) expect(plain(await read(ids[0] as string))).toBe(texts[0]);
  });

  it("a deleted run's bytes leave its pack, and the other runs stay as they were", async () => {
    const { ids, texts } = await archived('ada', 3);
    const [before] = await packFiles();
    await deleteRun(ids[1] as string);
    now += 2 * HOUR_MS;
    expect(await sweep()).toEqual({ expired: 0, deleted: 1, objects: 0, rewritten: 1 });
    now += DAY_MS;
    expect(await sweep()).toMatchObject({ objects: 1, rewritten: 0 });
    const files = await packFiles();
    expect(files).toHaveLength(1);
    expect(files[0]).not.toBe(before);
    expect(await archive.of(ids[1] as string)).toBeNull();
    expect([plain(await read(ids[0] as string)), plain(await read(ids[2] as string))]).toEqual([texts[0], texts[2]]);
  });

  it('a pack whose runs are all deleted goes', async () => {
    const { ids } = await archived('ada', 2);
    for (const id of ids) await deleteRun(id);
    now += DAY_MS;
    expect(await sweep()).toEqual({ expired: 0, deleted: 2, objects: 1, rewritten: 0 });
    expect(await packFiles()).toEqual([]);
  });

  it('logs go once they are past their retention, whatever is with their runs', async () => {
    const { ids } = await archived('ada', 2);
    now += 30 * DAY_MS;
    expect(await sweep()).toMatchObject({ expired: 2, objects: 1 });
    expect(await archive.of(ids[0] as string)).toBeNull();
    expect(await packFiles()).toEqual([]);
  });

  it('chunks that a runner has sent of a run that is deleted meanwhile go too', async () => {
    const id = await saveRun('ada');
    write(id, 2);
    await deleteRun(id);
    await archiver().pass(never);
    expect(logs.stored.size).toBe(0);
  });

  it('a pack that nothing points at goes when it is a day old, and not before', async () => {
    const id = await saveRun('ada');
    write(id, 2);
    now += HOUR_MS;
    await archiver().pass(never);
    await archive.remove(id);
    now += DAY_MS - 2 * HOUR_MS;
    expect(await sweep()).toMatchObject({ objects: 0 });
    now += 2 * HOUR_MS;
    expect(await sweep()).toMatchObject({ objects: 1 });
  });

  it('a pack is not pointed at once its making took an hour: it might be swept', async () => {
    const id = await saveRun('ada');
    const text = plain(write(id, 2));
    now += HOUR_MS;
    const chunks = async function* (runId: string): AsyncGenerator<StoredChunk, void> {
      yield* logs.chunks(runId);
      now += 2 * HOUR_MS;
    };
    const frozen = archiver({ logs: { runs: () => logs.runs(), chunks, purge: (runId) => logs.purge(runId) } });
    await expect(frozen.pass(never)).rejects.toThrow('took too long');
    expect(await archive.of(id)).toBeNull();
    await archiver().pass(never);
    expect(plain(await read(id))).toBe(text);
  });
});
