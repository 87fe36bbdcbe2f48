/** What is past its retention goes, in bounded steps (P34). */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { newRunId, runIdTime } from '@penstock/run';
import { StoreUnavailable, type OldRun, type RetentionLedger } from '@penstock/store';
import { describe, expect, it } from 'vitest';
import { RetentionSweep, type Retention } from '../src/shell/retention-sweep.ts';
import { NOW } from './support.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

interface StoredRun extends OldRun {
  readonly finishedAt: number | undefined;
}

let ids = 0;

function run(daysAgo: number, more: Partial<StoredRun> = {}): StoredRun {
  ids += 1;
  const random = Uint8Array.of(0, 0, 0, 0, 0, 0, ids >> 8, ids & 255);
  return {
    id: newRunId({ now: NOW - daysAgo * DAY_MS, key: 'ada', random }),
    tenant: 'ada',
    parent: '',
    open: false,
    pipelineName: 'p',
    keepDays: 0,
    keepRuns: 0,
    finishedAt: NOW - daysAgo * DAY_MS + 1_000,
    ...more,
  };
}

class World {
  readonly expired: string[] = [];
  readonly told: unknown[] = [];
  /** How many closed runs each step has read. */
  readonly read: number[] = [];
  readonly views: string[] = [];
  readonly forgotten: string[] = [];
  /** Of tombstones and the audit log. */
  readonly askedBefore = new Set<number>();
  tombstones: string[] = [];
  audit = 0;
  isAway = false;
  /** Called for each view that is read. */
  onView: (id: string) => void = () => {};
  /** Of a page. */
  takesMax = Infinity;
  boot = 0;
  leaptMs = 0;
  readonly #runs: StoredRun[];
  readonly partition;
  readonly sweep: RetentionSweep;

  constructor(runs: readonly StoredRun[], options: Partial<Retention & { newestRunAt: number }> = {}, partition = 0) {
    this.#runs = runs.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    this.partition = {
      settings: { partition } as never,
      roomToExpire: 1_000,
      expire: (old: readonly OldRun[]): number => {
        const taken = old.slice(0, this.takesMax);
        this.expired.push(...taken.map(({ id }) => id));
        return taken.length;
      },
    };
    this.sweep = new RetentionSweep({
      retention: { ledger: this.#ledger, runMs: 90 * DAY_MS, runs: 2, auditMs: 400 * DAY_MS, ...options },
      partition: this.partition,
      newestRunAt: options.newestRunAt ?? NOW,
      now: () => NOW + this.leaptMs,
      bootNow: () => this.boot,
      log: { info: (about) => void this.told.push(about), warn: (about) => void this.told.push(about) },
    });
  }

  readonly #ledger: RetentionLedger = {
    closedBefore: async (_partition, before, { after = '', limit }) => {
      if (this.isAway) throw new Error('away');
      const found = this.#runs
        .filter(({ id, open }) => !open && id > after && runIdTime(id) < before && !this.expired.includes(id))
        .slice(0, limit);
      this.read.push(found.length);
      return { runs: found, last: found.length < limit ? undefined : found.at(-1)?.id };
    },
    oldestOfNewest: async ({ tenant, pipelineName }, count) => {
      const all = this.#runs.filter((each) => each.tenant === tenant && each.pipelineName === pipelineName);
      return all.length < count ? undefined : all.at(-count)?.id;
    },
    finishedAt: async (id) => {
      this.views.push(id);
      this.onView(id);
      return this.#runs.find((each) => each.id === id)?.finishedAt;
    },
    tombstonesBefore: async (_partition, before, { after = '', limit }) => {
      this.askedBefore.add(before);
      const found = this.tombstones.filter((id) => id > after).slice(0, limit);
      return { over: found, last: found.length < limit ? undefined : found.at(-1) };
    },
    forget: async (gone) => {
      this.forgotten.push(...gone);
      this.tombstones = this.tombstones.filter((id) => !gone.includes(id));
    },
    forgetAudit: async (before, limit) => {
      this.askedBefore.add(before);
      const removed = Math.min(limit, this.audit);
      this.audit -= removed;
      return removed;
    },
  };

  /** As often as the owner ticks in this time. */
  async pass(milliseconds: number): Promise<void> {
    for (const until = this.boot + milliseconds; this.boot < until; this.boot += 1_000) {
      this.sweep.tick();
      for (let turn = 0; turn < 12; turn++) await nextTurn();
    }
  }
}

describe('P34: the retention of runs', () => {
  it('deletes what has ended longer ago, but the newest of each pipeline; and says how many', async () => {
    const [oldest, older, newer, newest] = [run(400), run(300), run(200), run(100)];
    const other = run(500, { pipelineName: 'q' });
    const world = new World([oldest, older, newer, newest, other, run(89, { pipelineName: 'r' })]);
    await world.pass(70_000);
    expect(world.expired).toEqual([oldest.id, older.id]);
    expect(world.views).toEqual([oldest.id, older.id]);
    expect(world.told).toEqual([{ partition: 0, runs: 2, tombstones: 0, audit: 0 }]);
  });

  it('goes by the end of a run, and by what its tier says', async () => {
    const long = run(300, { finishedAt: NOW - 10 * DAY_MS });
    const short = run(20, { keepDays: 7 });
    const kept = run(300, { keepDays: 3_650 });
    const many = run(300, { pipelineName: 'q', keepRuns: 2 });
    const newest = [run(2), run(1), run(1, { pipelineName: 'q' })];
    const world = new World([long, short, kept, many, ...newest]);
    await world.pass(70_000);
    expect(world.expired).toEqual([short.id]);
  });

  it('RETENTION-1: of very many reads a page a second, and looks again an hour later', async () => {
    const runs = Array.from({ length: 950 }, () => run(200));
    const world = new World(runs);
    world.takesMax = 0;
    await world.pass(59_000);
    expect(world.read).toEqual([]);
    await world.pass(11_000);
    expect(world.read).toEqual([200, 200, 200, 200, 150]);
    await world.pass(HOUR_MS - 60_000);
    expect(world.read).toHaveLength(5);
    world.takesMax = 30;
    await world.pass(120_000);
    expect(world.read.length).toBeGreaterThanOrEqual(10);
    expect(world.expired).toHaveLength(5 * 30);
  });

  it('RETENTION-1: reads no page while there is no room for what it may hold, and loses none of it', async () => {
    const world = new World(Array.from({ length: 450 }, () => run(200)));
    world.partition.roomToExpire = 199;
    await world.pass(90_000);
    expect(world.read).toEqual([]);
    world.partition.roomToExpire = 200;
    await world.pass(10_000);
    expect(world.expired).toHaveLength(448);
  });

  it('RETENTION-3: waits a minute where the store is away, and goes on', async () => {
    const world = new World([run(300), run(200), run(100)]);
    world.isAway = true;
    await world.pass(70_000);
    expect(world.told).toMatchObject([{ err: new Error('away') }]);
    world.isAway = false;
    await world.pass(70_000);
    expect(world.expired).toHaveLength(1);
  });

  it('RETENTION-3: a run that cannot be read holds up none of the others, nor tombstones and the audit log', async () => {
    const [broken, ...others] = [run(400), run(300), run(200), run(100)];
    const world = new World([broken as StoredRun, ...others]);
    world.onView = (id) => {
      if (id === broken?.id) throw new SyntaxError('no document');
    };
    world.audit = 10;
    await world.pass(80_000);
    expect(world.expired).toEqual([others[0]?.id]);
    expect(world.audit).toBe(0);
    expect(world.told[0]).toMatchObject({ err: new SyntaxError('no document'), runId: broken?.id });
  });

  it('RETENTION-3: a store that goes away in the middle of a page has all of it read again', async () => {
    const world = new World([run(300), run(200), run(100)]);
    world.onView = () => {
      throw new StoreUnavailable('store', 'away');
    };
    await world.pass(70_000);
    expect(world.told).toMatchObject([{ err: new StoreUnavailable('store', 'away') }]);
    world.onView = () => {};
    await world.pass(70_000);
    expect(world.expired).toHaveLength(1);
  });

  it('RETENTION-4: rests for an hour where the clock has leapt ahead, and takes nothing where it is set right meanwhile', async () => {
    const world = new World([run(80), run(70), run(60)]);
    await world.pass(10_000);
    world.leaptMs = 400 * DAY_MS;
    await world.pass(HOUR_MS - 1_000);
    expect(world.read).toEqual([]);
    expect(world.told).toEqual([{ partition: 0, leapMs: expect.closeTo(400 * DAY_MS, -4) }]);
    world.leaptMs = 0;
    await world.pass(HOUR_MS);
    expect([world.read, world.expired]).toEqual([[3], []]);
  });

  it('RETENTION-4: rests for an hour where by the clock there was no run for a day', async () => {
    const world = new World([run(300), run(200), run(100)], { newestRunAt: NOW - 2 * DAY_MS });
    await world.pass(HOUR_MS);
    expect(world.read).toEqual([]);
    await world.pass(70_000);
    expect(world.expired).toHaveLength(1);
  });

  it('removes tombstones, and for partition 0 the audit log, a page at a time', async () => {
    const tombstones = Array.from({ length: 450 }, (_, index) => String(index).padStart(4, '0'));
    const world = new World([]);
    world.tombstones = [...tombstones];
    world.audit = 1_200;
    await world.pass(80_000);
    expect(world.forgotten).toEqual(tombstones);
    expect(world.audit).toBe(0);
    expect([...world.askedBefore]).toEqual([NOW - 8 * DAY_MS, NOW - 400 * DAY_MS]);
    expect(world.told).toEqual([{ partition: 0, runs: 0, tombstones: 450, audit: 1_200 }]);
    const second = new World([], {}, 1);
    second.audit = 10;
    await second.pass(80_000);
    expect(second.audit).toBe(10);
  });

  it('stops at once', async () => {
    const world = new World([run(300), run(200), run(100)]);
    await world.pass(59_000);
    await world.sweep.stop();
    await world.pass(20_000);
    expect(world.read).toEqual([]);
  });
});
