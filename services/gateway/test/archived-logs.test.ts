/** P34: the event stream of a run is the same before, while and after its log is archived, with its old cursors. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { connectBus, lastChunks, type Bus, type StoredChunk } from '@penstock/bus';
import { ObjectsUnavailable, openFolderStore, openObjectStore, type ObjectStore } from '@penstock/object-store';
import { NotFound, Unavailable } from '@penstock/errors';
import { LogArchiveService } from '@penstock/registry/testing';
import { LogArchive } from '@penstock/store';
import { type Log, silentLog } from '@penstock/telemetry/log';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Owners } from '@penstock/run-client';
import { type ArchivedLogs, StoredArchivedLogs } from '../src/sse/archived-logs.ts';
import { BusRunSource } from '../src/sse/run-source.ts';
import { API_KEY, happened, LogSource, makeWorld, PARTITIONS, runIdFor, YAML, type World } from './harness.ts';

const HOUR_MS = 60 * 60_000;

let world: World;
let folder: string;
let objects: ObjectStore;
let archive: LogArchive;
let registryBus: Bus;
let now = Date.now();
const services: LogArchiveService[] = [];

beforeAll(async () => {
  world = await makeWorld();
  folder = await mkdtemp(join(tmpdir(), 'penstock-archived-'));
  objects = await openFolderStore(folder);
  archive = new LogArchive(world.store);
  registryBus = await connectBus({ servers: world.broker.url, name: 'registry' });
});
afterEach(async () => {
  for (const service of services.splice(0)) await service.close();
  await world.reset();
});
afterAll(async () => {
  await registryBus.close();
  await world.close();
  await rm(folder, { recursive: true });
});

function startArchive(more: { readonly objects?: ObjectStore; readonly log?: Log } = {}): LogArchiveService {
  const service = new LogArchiveService({
    bus: registryBus,
    store: world.store,
    objects: more.objects ?? objects,
    log: more.log ?? silentLog,
    logRetentionMs: 1_000 * HOUR_MS,
    time: { bootNow: () => now, wallNow: () => now },
  });
  services.push(service);
  return service;
}

/** Two runners, chunks of several frames, an attempt that was lost and has a mark's place in the order, and a second try. */
async function longRun(): Promise<string> {
  const id = runIdFor();
  const { owner } = world;
  const log = new LogSource(world.ownerBus, id);
  owner.adopt(id, YAML);
  owner.commit(id, [happened.queued('build'), happened.started('build')]);
  let bytes = 0;
  for (let number = 0; number < 300; number++)
    bytes = await log.write('build', `${String(number).padStart(20_000, '.')}\n`);
  owner.commit(id, [happened.completed('build', bytes), happened.queued('test'), happened.started('test', 1, 'r2')]);
  await log.write('test', 'one\ntwo\r\n', { runner: 'r2' });
  bytes = await log.write('test', 'the end, without an end of line', { runner: 'r2' });
  owner.commit(id, [happened.completed('test', bytes), happened.runCompleted()]);
  log.close();
  await owner.project(id);
  return id;
}

async function listening(): Promise<string> {
  const app = await world.gateway();
  await app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

/** All of the stream, as it comes. */
async function told(url: string, runId: string, lastEventId?: string): Promise<string> {
  const response = await fetch(`${url}/pipeline/${runId}/logs`, {
    headers: {
      authorization: `Bearer ${API_KEY}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });
  expect(response.status).toBe(200);
  return await response.text();
}

it.each(['folder', 'nats'] as const)(
  '%s: the story is the same, byte for byte, from LOGS, while it is archived, and from the archive alone',
  async (kind) => {
    const url = await listening();
    const id = await longRun();
    const whole = await told(url, id);
    expect(whole).toContain('the end, without an end of line');
    const service = startArchive({
      objects: kind === 'folder' ? objects : await openObjectStore('nats', { bus: registryBus, bucket: 'packages' }),
    });
    now += 2 * HOUR_MS;
    await service.work();
    expect(await archive.of(id)).toMatchObject({
      tenant: 'service',
      last: { r1: expect.any(Number), r2: expect.any(Number) },
    });
    // Its chunks are still in LOGS: those who had begun to read them go on.
    expect(await lastChunks(world.bus, id)).toHaveLength(2);
    expect(await told(url, id)).toBe(whole);
    now += 2 * HOUR_MS;
    await service.work();
    expect(await lastChunks(world.bus, id)).toEqual([]);
    expect(await told(url, id)).toBe(whole);
    // From each of its cursors the rest, as it was.
    const ids = [...whole.matchAll(/^id: (.+)$/gm)].map(([, cursor]) => String(cursor));
    for (const cursor of [ids[0], ids[20], ids.at(-4), ids.at(-3), ids.at(-2)]) {
      const rest = whole.slice(whole.indexOf(`id: ${cursor}\n`));
      const resumed = await told(url, id, cursor);
      expect(resumed.slice(resumed.indexOf('id: '))).toBe(rest.slice(rest.indexOf('id: ', 4)));
    }
  },
  120_000,
);

it('where the storage is away or full LOGS keeps everything, which is said once, and so is that it is over', async () => {
  const url = await listening();
  const id = await longRun();
  const whole = await told(url, id);
  const said: string[] = [];
  const say = (_: object, message: string): void => void said.push(message);
  let isFull = true;
  const full: ObjectStore = {
    ...objectsOf(objects),
    put: async (...args) => {
      if (isFull) throw new ObjectsUnavailable('no space left on device');
      return await objects.put(...args);
    },
  };
  const service = startArchive({ objects: full, log: { ...silentLog, info: say, warn: say } });
  for (let pass = 0; pass < 3; pass++) {
    now += 2 * HOUR_MS;
    await service.work();
  }
  expect(said).toEqual(['logs of ended runs are not archived; they stay in LOGS, and it is tried again']);
  expect(await archive.of(id)).toBeNull();
  expect(await told(url, id)).toBe(whole);
  isFull = false;
  await service.work();
  expect(said.slice(1)).toContain('logs of ended runs are archived again');
  expect(await archive.of(id)).not.toBeNull();
  expect(await told(url, id)).toBe(whole);
}, 120_000);

describe('who reads while the log is archived', () => {
  const { signal } = new AbortController();
  let bootNow = 0;
  let owners: Owners;
  beforeEach(() => {
    owners = new Owners(world.bus, PARTITIONS);
  });
  afterEach(() => owners.close());

  const sourceOf = (id: string, archived: ArchivedLogs = new StoredArchivedLogs(world.bus, world.store)) =>
    new BusRunSource({ bus: world.bus, owners, store: world.runs, archive: archived, bootNow: () => bootNow }, id, [
      'service',
    ]);

  async function archiveAll(service: LogArchiveService): Promise<void> {
    now += 2 * HOUR_MS;
    await service.work();
    now += 2 * HOUR_MS;
    await service.work();
  }

  it('goes on in the archive where its chunks have left LOGS meanwhile, at the very chunk', async () => {
    const id = await longRun();
    const all = placesOf(await Array.fromAsync(sourceOf(id).chunks(1, signal)));
    expect(all).toHaveLength(302);
    const service = startArchive();
    const read: StoredChunk[] = [];
    for await (const chunk of sourceOf(id).chunks(1, signal)) {
      read.push(chunk);
      if (read.length !== 7) continue;
      await archiveAll(service);
      expect(await lastChunks(world.bus, id)).toEqual([]);
      bootNow += HOUR_MS;
    }
    expect(placesOf(read)).toEqual(all);
  });

  it('has not seen the last chunks of the runners before it knows where they are', async () => {
    const id = await longRun();
    const source = sourceOf(id);
    const last = await source.lastSequences(signal);
    expect(last.size).toBe(2);
    await archiveAll(startArchive());
    bootNow += HOUR_MS;
    expect(await source.lastSequences(signal)).toEqual(last);
  });

  it('goes on where the pack is written anew under it', async () => {
    const id = await longRun();
    const all = placesOf(await Array.fromAsync(sourceOf(id).chunks(1, signal)));
    const service = startArchive();
    await archiveAll(service);
    bootNow += HOUR_MS;
    const read: StoredChunk[] = [];
    for await (const chunk of sourceOf(id).chunks(1, signal)) {
      read.push(chunk);
      if (read.length === 3) await moveElsewhere(id);
    }
    expect(placesOf(read)).toEqual(all);
  });

  it('is told that it cannot be read now where the pack has gone, and comes to an end once it stays away', async () => {
    const id = await longRun();
    await archiveAll(startArchive());
    bootNow += HOUR_MS;
    const source = sourceOf(id);
    for await (const { key } of objects.list('log-packs/')) await objects.delete(key);
    const read = async (): Promise<unknown> => await Array.fromAsync(source.chunks(1, signal));
    await expect(read()).rejects.toThrow('The archive lacks a part of this log.');
    bootNow += 29_000;
    await expect(read()).rejects.toThrow('The archive lacks a part of this log.');
    bootNow += 1_000;
    expect(await read()).toEqual([]);
  });

  it('is given what LOGS still has where the pack is damaged', async () => {
    const other = await longRun();
    await archiveAll(startArchive());
    const id = await longRun();
    const all = placesOf(await Array.fromAsync(sourceOf(id).chunks(1, signal)));
    bootNow += HOUR_MS;
    const damaged: ArchivedLogs = {
      of: () => archive.of(other),
      async *chunks() {
        yield* [];
        throw new NotFound('The archived log is damaged.');
      },
    };
    const source = sourceOf(id, damaged);
    await expect(Array.fromAsync(source.chunks(1, signal))).rejects.toThrow(Unavailable);
    bootNow += 30_000;
    expect(placesOf(await Array.fromAsync(source.chunks(1, signal)))).toEqual(all);
  });

  it('needs no store as long as the run goes on', async () => {
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    const log = new LogSource(world.ownerBus, id);
    await log.write('build', 'one\n');
    log.close();
    const away: ArchivedLogs = {
      of: () => Promise.reject(new Error('the store is away')),
      async *chunks() {},
    };
    const source = sourceOf(id, away);
    bootNow += HOUR_MS;
    await source.events(0);
    expect(await Array.fromAsync(source.chunks(1, signal))).toHaveLength(1);
    // Once it has ended that is not known any more.
    world.owner.commit(id, [
      happened.completed('build', 4),
      happened.queued('test'),
      happened.skipped('test'),
      happened.runCompleted(),
    ]);
    await source.events(0);
    bootNow += HOUR_MS;
    await expect(Array.fromAsync(source.chunks(1, signal))).rejects.toThrow('the store is away');
  });
});

function placesOf(chunks: readonly StoredChunk[]): string[] {
  return chunks.map(({ sequence, runner, chunk }) => `${sequence} ${runner} ${chunk.offset} ${chunk.output.length}`);
}

/** As the sweep writes a pack anew: the same bytes elsewhere, the pointer, and the old ones are gone. */
async function moveElsewhere(id: string): Promise<void> {
  const log = await archive.of(id);
  if (log === null) throw new Error('it is not archived');
  const pack = crypto.randomUUID();
  for await (const { key } of objects.list('log-packs/')) {
    const found = await objects.get(key);
    if (found === null || !key.includes(log.pack)) continue;
    const bytes = Buffer.concat(await Array.fromAsync(found.bytes));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const target = `log-packs/${pack.slice(0, 2)}/${pack}.${key.split('.').at(-1)}`;
    await objects.put(target, Readable.from([bytes], { objectMode: true }), { sha256, bytesMax: bytes.length });
    await objects.delete(key);
  }
  await archive.move([{ ...log, pack, generation: log.generation + 1 }]);
}

/** As an object that can be spread. */
function objectsOf(store: ObjectStore): ObjectStore {
  return {
    put: (...args) => store.put(...args),
    head: (...args) => store.head(...args),
    get: (...args) => store.get(...args),
    delete: (...args) => store.delete(...args),
    list: (...args) => store.list(...args),
    removeLeftovers: (...args) => store.removeLeftovers(...args),
    ping: () => store.ping(),
    checkRoom: () => store.checkRoom(),
  };
}
