/** Room in LOGS, made of what those have there who have the most. */
import {
  chunkBytes,
  connectBus,
  createLogWriter,
  encodeChunk,
  ensureStreams,
  loggedRuns,
  logsRoom,
  purgeLogs,
  subjects,
  type Bus,
} from '@penstock/bus';
import type { LogStanding } from '@penstock/store';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { levelFor, LogRelief } from '../src/archive/log-relief.ts';

const MIB = 1024 ** 2;

interface Run {
  readonly key: string;
  readonly chunks: number;
  readonly bytes: number;
  readonly archived?: true;
}

/** LOGS in memory; runs are named so that the first is the oldest. */
function relieved(room: number, runs: Readonly<Record<string, Run>>, bytesMax = 4 * 1024 * MIB, purgeMs = 0) {
  const measured: string[] = [];
  const left = new Map(Object.entries(runs).map(([runId, { chunks }]) => [runId, chunks]));
  const warned: object[] = [];
  let bootNow = 0;
  const bytesOf = (runId: string, chunks: number): number => {
    const run = runs[runId] as Run;
    return (chunks * run.bytes) / run.chunks;
  };
  const share = (): number => [...left].reduce((sum, [runId, chunks]) => sum + bytesOf(runId, chunks), 0) / room;
  const relief = new LogRelief({
    logs: {
      room: async () => ({ share: share(), bytesMax }),
      runs: async () => ({
        runs: [...left].map(([runId, chunks]) => ({ runId, chunks })),
        spans: [],
        share: share(),
      }),
      chunkBytes: async (runId) => (measured.push(runId), bytesOf(runId, 1)),
      purge: async (runId, keep) => {
        bootNow += purgeMs;
        if (keep === 0) left.delete(runId);
        else left.set(runId, keep);
      },
    },
    archive: {
      standings: async (ids) =>
        new Map(
          ids.flatMap((id): [string, LogStanding][] => {
            const { key = '' } = runs[id] ?? {};
            return key === '' ? [] : [[id, { state: 'open', tenant: key, key, createdAt: 0 }]];
          }),
        ),
      among: async (ids) => new Set(ids.filter((id) => runs[id]?.archived === true)),
    },
    time: { bootNow: () => bootNow },
    log: { warn: (fields: object) => void warned.push(fields) } as never,
  });
  return { relief, left, warned, measured, share, later: (ms: number) => void (bootNow += ms) };
}

describe('room in LOGS', () => {
  it('RELIEF-1: is made of what the largest has, by bytes and not by chunks; who has less keeps all', async () => {
    const world = relieved(1_000, {
      a: { key: 'many', chunks: 500, bytes: 100 },
      b: { key: 'large', chunks: 40, bytes: 600 },
      c: { key: 'third', chunks: 1, bytes: 130 },
    });
    expect(await world.relief.look()).toEqual({ share: 0.83, againMs: 4_096 });
    expect([world.left.get('a'), world.left.get('c')]).toEqual([500, 1]);
    expect(world.share()).toBeGreaterThan(0.6);
    expect(world.share()).toBeLessThanOrEqual(0.65);
    expect(world.warned).toMatchObject([{ runs: { large: 1 } }]);
    const kept = world.left.get('b');
    await world.relief.look();
    expect(world.left.get('b')).toBe(kept);
  });

  it('RELIEF-2: takes what is archived first, then whole runs from the oldest on, and a part of the last', async () => {
    const world = relieved(1_000, {
      a: { key: 'large', chunks: 10, bytes: 200 },
      b: { key: 'large', chunks: 10, bytes: 200 },
      c: { key: 'large', chunks: 10, bytes: 200 },
      d: { key: 'large', chunks: 10, bytes: 200, archived: true },
      e: { key: 'other', chunks: 10, bytes: 100 },
    });
    await world.relief.look();
    // 250 of 900 are to go: 200 that are archived, and 50 of the oldest.
    expect(Object.fromEntries(world.left)).toEqual({ a: 7, b: 10, c: 10, e: 10 });
  });

  it('RELIEF-4: one with few large chunks is found behind any number of those with many small ones, who keep all', async () => {
    const chatty = Array.from({ length: 40 }, (_, index): [string, Run] => [
      `${index}`,
      { key: `chatty ${index}`, chunks: 1_000, bytes: 5 },
    ]);
    const world = relieved(1_000, { ...Object.fromEntries(chatty), loud: { key: 'loud', chunks: 10, bytes: 650 } });
    await world.relief.look();
    expect(world.warned).toMatchObject([{ runs: { loud: 1 } }]);
    for (const [run] of chatty) expect(world.left.get(run)).toBe(1_000);
    expect(world.left.get('loud')).toBeLessThan(8);
  });

  it('RELIEF-4: runs with few large chunks count behind those with many small ones; no more is looked at than tells of half of all', async () => {
    const runsOf = (
      name: string,
      count: number,
      run: Omit<Run, 'key'>,
      key: (index: number) => string,
    ): [string, Run][] => Array.from({ length: count }, (_, index) => [`${name}${index}`, { ...run, key: key(index) }]);
    const world = relieved(
      1_000,
      Object.fromEntries([
        ...runsOf('large', 50, { chunks: 100, bytes: 15 }, () => 'sly'),
        ...runsOf('small', 5, { chunks: 200, bytes: 1 }, () => 'sly'),
        ...runsOf('other', 40, { chunks: 10, bytes: 2 }, (index) => `other ${index}`),
      ]),
      1_000,
    );
    await world.relief.look();
    expect(Object.keys((world.warned[0] as { runs: object }).runs)).toEqual(['sly']);
    expect(world.share()).toBeLessThan(0.67);
    expect(world.measured.filter((run) => run.startsWith('other'))).toHaveLength(19);
    expect(world.measured).toHaveLength(10 + 19);
  });

  it('RELIEF-3: where runs that nobody knows have most of what is there, others do not make room for them', async () => {
    const world = relieved(1_000, {
      a: { key: 'one', chunks: 10, bytes: 100 },
      b: { key: 'two', chunks: 10, bytes: 60 },
      c: { key: '', chunks: 70, bytes: 700 },
    });
    await world.relief.look();
    expect(Object.fromEntries(world.left)).toEqual({ a: 10, b: 10, c: 70 });
    expect(world.warned).toEqual([]);
  });

  it('RELIEF-6: of very many small runs as many are cut as there is time for, and some in any case', async () => {
    const runs = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, index): [string, Run] => [
        `r${String(index).padStart(4, '0')}`,
        { key: index % 10 === 0 ? 'few' : 'many', chunks: 2, bytes: 1 },
      ]),
    );
    const world = relieved(2_200, runs);
    await world.relief.look();
    expect(world.share()).toBeLessThanOrEqual(0.65);
    expect(world.warned).toMatchObject([{ runs: { many: expect.any(Number) } }]);
    const slow = relieved(2_200, runs, undefined, 10);
    await slow.relief.look();
    expect(slow.left.size).toBe(1_900);
    const stuck = relieved(2_200, runs, undefined, 1_000);
    await stuck.relief.look();
    expect(stuck.left.size).toBe(1_950);
  });

  it('makes no more room where another registry has made some since it was looked for', async () => {
    const world = relieved(1_000, {
      a: { key: 'large', chunks: 100, bytes: 900 },
      b: { key: 'other', chunks: 1, bytes: 1 },
    });
    const looking = world.relief.look();
    world.left.set('a', 70);
    await looking;
    expect(world.left.get('a')).toBe(70);
    expect(world.measured).toEqual([]);
  });

  it('is left to one that is alone, to runs that the store does not know, and where there is enough', async () => {
    const alone = relieved(1_000, { a: { key: 'one', chunks: 10, bytes: 990 }, b: { key: '', chunks: 1, bytes: 1 } });
    await alone.relief.look();
    expect(alone.left.size).toBe(2);
    const enough = relieved(1_000, {
      a: { key: 'one', chunks: 10, bytes: 780 },
      b: { key: 'two', chunks: 10, bytes: 10 },
    });
    await enough.relief.look();
    expect([...enough.left.values()]).toEqual([10, 10]);
    expect([...alone.warned, ...enough.warned]).toEqual([]);
  });

  it('is looked for the more often the less there is, and seldom while nothing comes', async () => {
    const after = async (bytesMax: number): Promise<number[]> => {
      let share = 0;
      const nobody = (): never => {
        throw new Error('nothing is to be removed');
      };
      const relief = new LogRelief({
        logs: { room: async () => ({ share, bytesMax }), runs: nobody, chunkBytes: nobody, purge: nobody },
        archive: { standings: nobody, among: nobody },
        time: { bootNow: () => 0 },
        log: { warn: nobody } as never,
      });
      const times: number[] = [];
      for (share of [0, 0, 0.1, 0.2, 0.2]) times.push((await relief.look()).againMs);
      return times;
    };
    expect(await after(4 * 1024 * MIB)).toEqual([4_096, 5_000, 4_096, 4_096, 5_000]);
    expect(await after(256 * MIB)).toEqual([256, 1_024, 256, 256, 1_024]);
    expect(await after(MIB)).toEqual([200, 200, 200, 200, 200]);
    expect(await after(Infinity)).toEqual([5_000, 5_000, 5_000, 5_000, 5_000]);
  });

  it('is told of once in ten minutes', async () => {
    const world = relieved(1_000, {
      a: { key: 'large', chunks: 100, bytes: 900 },
      b: { key: 'other', chunks: 1, bytes: 1 },
    });
    const fill = async (): Promise<void> => {
      world.left.set('a', 100);
      await world.relief.look();
    };
    await fill();
    await fill();
    expect(world.warned).toHaveLength(1);
    world.later(10 * 60_000);
    await fill();
    expect(world.warned).toHaveLength(2);
  });

  it('a level is the most of each with which all fit, whatever they have', () => {
    for (let round = 0; round < 200; round += 1) {
      const amounts = Array.from({ length: 1 + (round % 7) }, () => Math.floor(Math.random() * 1_000));
      const room = Math.random() * 2_000;
      const level = levelFor(amounts, room);
      const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);
      const left = sumOf(amounts.map((each) => Math.min(each, level)));
      expect(left).toBeCloseTo(Math.min(room, sumOf(amounts)), 6);
    }
  });
});

describe('at a broker', () => {
  let broker: TestBroker;
  let bus: Bus;
  beforeAll(async () => {
    broker = await startTestBroker();
    bus = await connectBus({ servers: broker.url, name: 'relief' });
    await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 16 * MIB });
  });
  afterAll(async () => {
    await bus.close();
    await broker.stop();
  });

  it('a run that goes on and writes several times what LOGS holds takes no line of another that does', async () => {
    const relief = new LogRelief({
      logs: {
        room: () => logsRoom(bus),
        runs: () => loggedRuns(bus),
        chunkBytes: (runId) => chunkBytes(bus, runId),
        purge: (runId, keep) => purgeLogs(bus, runId, keep),
      },
      archive: {
        standings: async (ids) =>
          new Map(ids.map((id) => [id, { state: 'open', tenant: id, key: id, createdAt: 0 } as const])),
        among: async () => new Set(),
      },
      time: { bootNow: () => performance.now() },
      log: { warn: () => {} } as never,
    });
    const writer = createLogWriter(bus);
    const write = async (run: string, at: number, bytes: number): Promise<void> => {
      const output = Buffer.alloc(bytes, 'x');
      const chunk = { stage: 's', attempt: 1, offset: at, at, parts: [['stdout', bytes] as const], output };
      await writer.publish(subjects.log(run, 'r'), encodeChunk(chunk));
    };
    for (let at = 0; at < 30; at += 1) await write('quiet', at, 200);
    for (let at = 0; at < 800; at += 1) {
      await write('loud', at, 60 * 1024);
      if (at % 20 === 0) await relief.look();
    }
    writer.close();
    const { runs, share } = await loggedRuns(bus);
    expect(runs).toContainEqual({ runId: 'quiet', chunks: 30 });
    expect(runs.find(({ runId }) => runId === 'loud')?.chunks).toBeGreaterThan(130);
    expect(share).toBeLessThan(0.95);
  });
});
