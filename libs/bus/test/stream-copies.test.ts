/** Copies of streams over real brokers: what is copied while it is written to, and what comes out of the copy elsewhere. */
import { randomBytes } from 'node:crypto';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Bus,
  connectBus,
  type Control,
  copyStream,
  ensureStreams,
  lastingStreams,
  openLog,
  putControl,
  readControls,
  restoreStream,
  type StreamHead,
} from '../src/index.ts';

const MIB = 1024 * 1024;
const LIMITS = { partitions: 2, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB };

const open: { readonly broker: TestBroker; readonly bus: Bus }[] = [];
let bus: Bus;

async function another(): Promise<Bus> {
  const broker = await startTestBroker();
  const connected = await connectBus({ servers: broker.url, name: 'copies' });
  open.push({ broker, bus: connected });
  return connected;
}

beforeEach(async () => {
  bus = await another();
  await ensureStreams(bus, LIMITS);
}, 60_000);

afterEach(async () => {
  for (const each of open.splice(0)) {
    await each.bus.close(0);
    await each.broker.stop();
  }
}, 60_000);

async function copied(name: string): Promise<{ head: StreamHead; pieces: Uint8Array[] }> {
  const pieces: Uint8Array[] = [];
  const head = await copyStream(bus, name, async (bytes) => {
    pieces.push(Uint8Array.from(bytes));
  });
  return { head, pieces };
}

async function* eachOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

async function sequences(of: Bus, partition: number): Promise<string[]> {
  const found: string[] = [];
  for await (const { sequence, bytes } of openLog(of, partition).read(1)) found.push(`${sequence} ${bytes.length}`);
  return found;
}

async function filled(commits: number, bytes: number): Promise<void> {
  const log = openLog(bus, 1);
  let sequence = 0;
  for (let count = 0; count < commits; count += 1) {
    const result = await log.append(randomBytes(bytes), { commitId: `c${count}`, expectedSequence: sequence });
    if (!result.ok) throw new Error(result.kind);
    sequence = result.sequence;
  }
}

describe('a copy of a stream', () => {
  it('has every sequence where it was, and the log goes on behind the last one', async () => {
    await filled(300, 40_000);
    const before = await sequences(bus, 1);
    const { head, pieces } = await copied('JOURNAL');
    const elsewhere = await another();
    await restoreStream(elsewhere, JSON.parse(JSON.stringify(head)) as StreamHead, eachOf(pieces));
    expect(await sequences(elsewhere, 1)).toEqual(before);
    // The set-up finds it, and bounds it anew.
    await ensureStreams(elsewhere, LIMITS);
    const last = await openLog(elsewhere, 1).last();
    expect(`${last?.sequence} ${last?.bytes.length}`).toBe(before.at(-1));
    const options = { commitId: 'more', expectedSequence: last?.sequence ?? 0 };
    expect(await openLog(elsewhere, 1).append(Buffer.from('more'), options)).toMatchObject({ ok: true });
  }, 90_000);

  it('keeps what a bucket holds', async () => {
    const pause: Control = { target: { kind: 'all' }, since: 1, by: 'admin', reason: 'upgrade' };
    await putControl(bus, pause);
    const names = await lastingStreams(bus);
    expect(names).toEqual(expect.arrayContaining(['JOURNAL', 'LOGS', 'DELIVERIES', 'KV_controls']));
    expect(names).not.toContain('KV_runners');
    const { head, pieces } = await copied('KV_controls');
    const elsewhere = await another();
    await restoreStream(elsewhere, head, eachOf(pieces));
    expect(await readControls(elsewhere)).toEqual([pause]);
  }, 90_000);

  it('ends with what ends its writing, and says so where there is no such stream or a damaged copy', async () => {
    await filled(100, 40_000);
    const full = new Error('the disk is full');
    await expect(copyStream(bus, 'JOURNAL', () => Promise.reject(full))).rejects.toBe(full);
    await expect(copied('NOBODY')).rejects.toMatchObject({ tag: 'StoreRefused' });
    const { head, pieces } = await copied('JOURNAL');
    const elsewhere = await another();
    const half = eachOf(pieces.slice(0, Math.ceil(pieces.length / 2)));
    await expect(restoreStream(elsewhere, head, half)).rejects.toMatchObject({ tag: 'StoreRefused' });
    await expect(restoreStream(bus, head, eachOf(pieces))).rejects.toMatchObject({ tag: 'StoreRefused' });
  }, 90_000);
});
