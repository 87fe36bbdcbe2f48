import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  openSqliteStore,
  runCollections,
  RunsRepository,
  type CollectionSpec,
  type DocumentStore,
} from '../src/index.ts';
import { runDocument, runId } from './support.ts';

const spec = {
  name: 'things',
  fields: { rank: 'integer' },
  parts: ['text'],
  indexes: [['rank']],
  version: ['rank', 'rank'],
} as const satisfies CollectionSpec;

describe('a SQLite file', () => {
  let folder: string;
  let path: string;
  const opened: DocumentStore[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'penstock-store-'));
    path = join(folder, 'store.db');
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((store) => store.close()));
    await rm(folder, { recursive: true });
  });
  const open = async (
    options: { deadlineMs?: number; collections?: readonly CollectionSpec[]; file?: string } = {},
  ) => {
    const store = await openSqliteStore({
      path: options.file ?? path,
      collections: options.collections ?? [spec],
      deadlineMs: options.deadlineMs,
    });
    opened.push(store);
    return store;
  };

  it('P6: a run whose deflated text is damaged keeps a take-over from none of the others', async () => {
    const runs = new RunsRepository(await open({ collections: runCollections }));
    const ids = Array.from({ length: 120 }, (_, index) => runId(index));
    await runs.saveBatch(ids.map((id, index) => runDocument({ id, open: true, sequence: 1 + index })));
    const database = new DatabaseSync(path);
    database.prepare('UPDATE c_runs SET story = ? WHERE id = ?').run(Uint8Array.of(1, 255, 255), runId(70));
    database.close();
    for (const listed of [runs.openOf(0), runs.laterThan(0, { incarnation: 1, sequence: 0 })]) {
      const found = await Array.fromAsync(listed);
      expect(found.map((run) => ('unreadable' in run ? run.id : run.state.id))).toEqual(ids);
      expect(found.filter((run) => 'unreadable' in run)).toMatchObject([{ id: runId(70), open: true, sequence: 71 }]);
    }
  });

  it('a run whose deflated view is damaged is in its lists as its story has it', async () => {
    const store = await open({ collections: runCollections });
    const ids = Array.from({ length: 30 }, (_, index) => runId(29 - index));
    await new RunsRepository(store).saveBatch(ids.map((id, index) => runDocument({ id, sequence: 1 + index })));
    const database = new DatabaseSync(path);
    database.prepare('UPDATE c_runs SET view = ? WHERE id = ?').run(Uint8Array.of(1, 255, 255), runId(20));
    database.close();
    const page = { tenants: ['service'], limit: 30 };
    for (const viewCharactersMax of [0, 1_000_000]) {
      const runs = new RunsRepository(store, { viewCharactersMax });
      for (let read = 0; read < 2; read++) expect((await runs.page(page)).map(({ id }) => id)).toEqual(ids);
      expect(await runs.view(runId(20), page)).toMatchObject({ id: runId(20) });
      expect(await runs.getAsOwner(runId(20))).toMatchObject({ view: { id: runId(20) } });
    }
  });

  it('a run with a number that nobody wrote costs itself alone: it is named, and in its lists', async () => {
    const store = await open({ collections: runCollections });
    const ids = Array.from({ length: 120 }, (_, index) => runId(119 - index));
    const saved = ids.map((id, index) => runDocument({ id, open: true, sequence: 1 + index }));
    await new RunsRepository(store).saveBatch(saved);
    const database = new DatabaseSync(path);
    const wrong = database.prepare('UPDATE c_runs SET createdAt = ?, keepDays = ? WHERE id = ?');
    wrong.run(2n ** 60n, -(2n ** 53n), runId(70));
    database.close();
    for (const viewCharactersMax of [0, 1_000_000]) {
      const runs = new RunsRepository(store, { viewCharactersMax });
      for (let read = 0; read < 2; read++)
        expect((await runs.page({ tenants: ['service'], limit: 120 })).map(({ id }) => id)).toEqual(ids);
      expect(await runs.exists([runId(70)])).toEqual(new Set([runId(70)]));
      await expect(runs.getAsOwner(runId(70))).rejects.toMatchObject({ tag: 'StoreCorrupt' });
      const found = await Array.fromAsync(runs.openOf(0));
      expect(found).toHaveLength(120);
      expect(found.filter((run) => 'unreadable' in run)).toMatchObject([{ id: runId(70), open: true, sequence: 50 }]);
    }
  });

  it('a schedule whose deflated state is damaged keeps a take-over from none of the others', async () => {
    const runs = new RunsRepository(await open({ collections: runCollections }));
    const ids = Array.from({ length: 120 }, (_, index) => `s${String(index).padStart(3, '0')}`);
    const database = new DatabaseSync(path);
    const insert = database.prepare(
      "INSERT INTO c_schedules (id, partition, tenant, incarnation, sequence, state) VALUES (?, 0, 't', 1, 1, ?)",
    );
    const delivery = { sequence: 1 };
    for (const id of ids) insert.run(id, JSON.stringify({ id, key: 'k', text: '', delivery, lines: [] }));
    database.prepare('UPDATE c_schedules SET state = ? WHERE id = ?').run(Uint8Array.of(1, 255, 255), 's070');
    database.close();
    const found = await Array.fromAsync(runs.schedulesOf(0));
    expect(found.map((one) => ('unreadable' in one ? one.id : one.state.id))).toEqual(ids);
    expect(found.filter((one) => 'unreadable' in one)).toMatchObject([{ id: 's070' }]);
  });

  it('that is none is refused as damaged, by its name, and left as it was', async () => {
    await writeFile(path, 'this is a diary and no database, for '.repeat(100));
    const before = await readFile(path);
    await expect(open()).rejects.toMatchObject({
      tag: 'StoreCorrupt',
      retryable: false,
      message: expect.stringContaining(`${path} is damaged`) as unknown,
    });
    expect((await readFile(path)).equals(before)).toBe(true);
  });

  it('with damaged pages says so when they are read', async () => {
    const store = await open();
    for (let batch = 0; batch < 10; batch++) {
      await store.collection(spec).replaceNewer(
        Array.from({ length: 100 }, (_, index) => ({
          id: `${batch}-${index}`,
          rank: batch,
          text: Math.random().toString(36).repeat(60),
        })),
      );
    }
    await store.close();
    const bytes = await readFile(path);
    bytes.fill(0x5a, 8192);
    await writeFile(path, bytes);
    const failure = await open()
      .then((again) => again.collection(spec).list({ limit: 1000 }))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ tag: 'StoreCorrupt', store: path });
  });

  it('of another program is refused, and left as it was', async () => {
    const other = new DatabaseSync(path);
    other.exec('CREATE TABLE contacts (name TEXT)');
    other.close();
    await expect(open()).rejects.toMatchObject({
      tag: 'StoreIncompatible',
      message: expect.stringContaining('another program') as unknown,
    });
    const again = new DatabaseSync(path, { readOnly: true });
    expect(again.prepare('SELECT count(*) AS tables FROM sqlite_schema').get()).toEqual({ tables: 1 });
    again.close();
  });

  it('of a newer release is refused with both numbers', async () => {
    await (await open()).close();
    const newer = new DatabaseSync(path);
    newer.exec('PRAGMA user_version = 7');
    newer.close();
    await expect(open()).rejects.toMatchObject({
      tag: 'StoreIncompatible',
      message: expect.stringContaining('format 7; this one knows 1') as unknown,
    });
  });

  it('whose field has another type is refused with the field and both types', async () => {
    await (await open()).close();
    await expect(
      open({ collections: [{ ...spec, fields: { rank: 'string' }, version: undefined as never }] }),
    ).rejects.toMatchObject({
      tag: 'StoreIncompatible',
      message: expect.stringMatching(/'rank' of the collection 'things' is kept as INTEGER/) as unknown,
    });
  });

  it('in a folder that is not there is unavailable, by its name', async () => {
    await expect(open({ file: join(folder, 'no', 'store.db') })).rejects.toMatchObject({
      tag: 'StoreUnavailable',
      retryable: true,
      message: expect.stringContaining(join(folder, 'no', 'store.db')) as unknown,
    });
  });

  it('locked by another process longer than a call may take: unavailable, and well again afterwards', async () => {
    const store = await open({ deadlineMs: 2_000 });
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const things = store.collection(spec);
    await expect(things.insert({ id: 'a', rank: 1, text: '' })).rejects.toMatchObject({
      tag: 'StoreUnavailable',
      message: expect.stringContaining('locked') as unknown,
    });
    expect(await things.get('a')).toBeNull();
    other.exec('COMMIT');
    other.close();
    expect(await things.insert({ id: 'a', rank: 1, text: '' })).toBe('inserted');
  });

  it('opens however long that takes: a new index over many documents is no call', async () => {
    // Starting the thread takes longer than this, as an index over a million runs takes longer than ten seconds.
    const store = await open({ deadlineMs: 1 });
    await store.close();
    const another = { ...spec, name: 'others' } as const satisfies CollectionSpec;
    await expect(open({ deadlineMs: 1, collections: [spec, another] })).resolves.toBeDefined();
  });

  it('every call settles: what waits behind a lock past its deadline is answered, and what was not begun by then is not done', async () => {
    const store = await open({ deadlineMs: 2_000 });
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    const things = store.collection(spec);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) => things.insert({ id: `w${index}`, rank: 1, text: '' })),
    );
    expect(
      outcomes.map((outcome) => (outcome.status === 'rejected' ? (outcome.reason as { tag: string }).tag : 'settled')),
    ).toEqual(Array.from({ length: 10 }, () => 'StoreUnavailable'));
    other.exec('COMMIT');
    other.close();
    const other2 = await open();
    expect(await other2.collection(spec).getMany(Array.from({ length: 7 }, (_, index) => `w${index + 3}`))).toEqual([]);
  });

  it('bounds the calls under way: beyond, they are refused at once', async () => {
    const store = await open();
    const calls = Array.from({ length: 4_100 }, (_, index) =>
      store
        .collection(spec)
        .get(`x${index}`)
        .then(
          () => 'answered',
          (error: { tag: string }) => error.tag,
        ),
    );
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === 'StoreUnavailable')).toHaveLength(100);
    expect(await store.collection(spec).get('x')).toBeNull();
  });

  it('WORKERLINK-2: bounds also those that are past their deadline: they wait in the memory of a thread that hangs', async () => {
    const store = await open({ deadlineMs: 20 });
    const things = store.collection(spec);
    const tagOf = (error: { tag: string; message: string }): string => `${error.tag}: ${error.message}`;
    // Behind it timers come first: nothing is answered before the deadline of all of them.
    await setImmediate();
    const late = Array.from({ length: 4_000 }, (_, index) => things.get(`x${index}`).then(() => '', tagOf));
    for (const until = performance.now() + 40; performance.now() < until;);
    expect(await late[3_999]).toContain('no answer');
    await expect(things.get('x')).rejects.toThrow('busy with 4000 calls');
    // What it has answered makes room.
    await expect.poll(() => things.get('x').catch(tagOf), { timeout: 10_000 }).toBeNull();
  });

  it('keeps what was acknowledged when its process is killed, in the middle of writing', async () => {
    const writer = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'writer.ts'), path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const acknowledged: string[] = [];
    for await (const line of createInterface({ input: writer.stdout })) {
      acknowledged.push(line);
      if (acknowledged.length === 40) writer.kill('SIGKILL');
    }
    const store = await open();
    for (const id of acknowledged) expect(await store.collection(spec).get(id)).toMatchObject({ id });
    // Whole or not at all.
    const all = await store.collection(spec).list({ limit: 1000 });
    expect(all.every(({ id, text }) => text === id.repeat(400))).toBe(true);
  });

  it('works for two processes at once', async () => {
    const store = await open();
    const writer = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'writer.ts'), path, '30'], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ended = once(writer, 'exit');
    for (let turn = 0; turn < 30; turn++)
      await store.collection(spec).insert({ id: `mine-${turn}`, rank: turn, text: '' });
    expect(await ended).toEqual([0, null]);
    expect(await store.collection(spec).list({ limit: 1000, parts: [] })).toHaveLength(60);
  });

  it('lets its process end when nothing is under way, closed or not', async () => {
    const idle = spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'idle.ts'), path], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    expect(await once(idle, 'exit')).toEqual([0, null]);
  });

  it('WORKERLINK-3: a thread that dies takes its calls along, and the next call starts another', async () => {
    const threads: Worker[] = [];
    const remember = (thread: Worker) => void threads.push(thread);
    process.on('worker', remember);
    const store = await open();
    const things = store.collection(spec);
    await things.insert({ id: 'before', rank: 1, text: '' });
    const calls = Array.from({ length: 50 }, (_, index) =>
      things.insert({ id: `under way ${index}`, rank: 1, text: 'x'.repeat(100_000) }),
    );
    const died = threads[0]?.terminate();
    const outcomes = await Promise.allSettled(calls);
    expect(
      outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => (reason as { tag: string }).tag),
    ).toContain('StoreUnavailable');
    await died;
    expect(await things.get('before')).toMatchObject({ rank: 1 });
    expect(threads).toHaveLength(2);
    // It takes what it is given room for, and gives nothing back while it is busy.
    expect(threads[1]?.resourceLimits?.maxYoungGenerationSizeMb).toBeLessThanOrEqual(6);
    process.off('worker', remember);
  });

  it('is for the eyes of its owner alone, with its companions', async () => {
    const store = await open();
    await store.collection(spec).insert({ id: 'a', rank: 1, text: '' });
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it('is one file after closing', async () => {
    const store = await open();
    await store.collection(spec).insert({ id: 'a', rank: 1, text: '' });
    await store.close();
    await expect(stat(`${path}-wal`)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
