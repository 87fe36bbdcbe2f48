/** Documents of runs that somebody waits for are read key by key, whatever one of them asks for. */
import { describe, expect, it } from 'vitest';
import { Adoptions, type AdoptionsHost } from '../src/partition/adoptions.ts';
import { OutsideRuns, type OutsideRunsHost } from '../src/partition/outside-runs.ts';
import { Parents } from '../src/partition/parents.ts';
import { Parking, type ParkingHost } from '../src/partition/parking.ts';
import type { LiveRun } from '../src/run/live-run.ts';
import type { ParkedRun } from '../src/run/parked-run.ts';
import { WideMap } from '../src/run/wide-map.ts';

/** What is read, in order; each is answered when it is told to be. */
class Store {
  readonly asked: string[] = [];
  readonly #answers: (() => void)[] = [];

  readonly read = (runId: string, then: (answer: 'unavailable') => void): void => {
    this.asked.push(runId);
    this.#answers.push(() => then('unavailable'));
  };

  answerAll(): void {
    for (let answer = this.#answers.shift(); answer !== undefined; answer = this.#answers.shift()) answer();
  }
}

const many = Array.from({ length: 2_000 }, (_, run) => `ada${run}`);

describe('one key that asks for more than may wait', () => {
  it('PARENTS-1: leaves room for the parents of others, whose turn comes before all of its own', () => {
    const store = new Store();
    const parents = new Parents({
      runs: new Map(),
      parking: { find: () => undefined, read: () => expect.unreachable() },
      cycle: { whenCommitted: () => expect.unreachable(), whenAllCommitted: () => expect.unreachable() },
      isDeleted: () => false,
      readStored: store.read,
    });
    const told: string[] = [];
    for (const runId of many) parents.read(runId, 'ada', () => told.push(runId));
    parents.read('bob', 'bob', () => told.push('bob'));
    expect(told).not.toContain('bob');
    store.answerAll();
    expect(store.asked.indexOf('bob')).toBeGreaterThan(-1);
    expect(store.asked.indexOf('bob')).toBeLessThan(5);
  });

  it('PARKING-4: leaves room for the parked runs of others, whose turn comes before all of its own', () => {
    const store = new Store();
    const load = { liveRuns: 0, liveRunsMax: 1, liveBytes: 0, liveBytesMax: 1, journalUsed: 0, unprojectedBytes: 0 };
    const host: Partial<ParkingHost> = { load, read: store.read };
    const parking = new Parking(host as ParkingHost);
    const park = (id: string, key: string): void =>
      parking.left({ id, key, held: true, dueAt: Infinity, bytes: 1, version: 1 } as ParkedRun);
    for (const runId of many) park(runId, 'ada');
    park('bob', 'bob');
    const told: string[] = [];
    for (const runId of many) parking.read(runId, () => told.push(runId));
    parking.read('bob', () => told.push('bob'));
    expect(told).not.toContain('bob');
    store.answerAll();
    expect(store.asked.indexOf('bob')).toBeGreaterThan(-1);
    expect(store.asked.indexOf('bob')).toBeLessThan(12);
  });

  it('PARKING-4: parked runs of others whose waits are over come back among its own, and are asked for again where they do not come', () => {
    const store = new Store();
    const load = { liveRuns: 0, liveRunsMax: 1, liveBytes: 0, liveBytesMax: 1, journalUsed: 0, unprojectedBytes: 0 };
    const host: Partial<ParkingHost> = { load, read: store.read };
    const parking = new Parking(host as ParkingHost);
    const park = (id: string, key: string, dueAt: number): void =>
      parking.left({ id, key, held: true, dueAt, bytes: 1, version: 1 } as ParkedRun);
    for (const runId of many) park(runId, 'ada', 1);
    park('bob', 'bob', 2);
    for (let tick = 1; tick <= 2; tick += 1) {
      parking.tick(3);
      store.answerAll();
      expect(store.asked.filter((runId) => runId === 'bob')).toHaveLength(tick);
    }
    expect(store.asked.indexOf('bob')).toBeLessThan(12);
  });

  it('ADOPTIONS-4: reruns of others that go on after a take-over have their parents asked for among its own', () => {
    const asked: string[] = [];
    const host = {
      has: () => true,
      parents: {
        read: (_parent: string, key: string, then: (answer: 'unavailable') => void) => {
          asked.push(key);
          then('unavailable');
        },
      },
    };
    const adoptions = new Adoptions(host as unknown as AdoptionsHost);
    const rerunOf = (id: string, key: string) =>
      ({ id, state: { key, status: 'PENDING', lineage: { parent: 'p', version: 1 }, adoptionsLeft: 1 } }) as never;
    for (const runId of many) adoptions.found(rerunOf(runId, 'ada'));
    adoptions.found(rerunOf('bob', 'bob'));
    adoptions.goOn();
    expect(asked).toContain('bob');
    const first = asked.splice(0).length;
    adoptions.goOn();
    expect(asked).toContain('bob');
    expect(asked.length).toBe(first);
  });

  it('superseded runs of others are cancelled among its own', () => {
    const cancelled: string[] = [];
    const runs = new WideMap<string, LiveRun>((id) => id);
    const run = (id: string, key: string): string => {
      runs.set(id, { id, ended: false, state: { key } } as LiveRun);
      return id;
    };
    const decide = ({ state }: LiveRun): void => void cancelled.push(state.key);
    const outside = new OutsideRuns({ runs, decide, parking: { find: () => undefined } } as unknown as OutsideRunsHost);
    outside.supersede(many.map((id) => run(id, 'ada')));
    outside.supersede(Array.from({ length: 100 }, (_, index) => run(`bob${index}`, 'bob')));
    cancelled.length = 0;
    expect(outside.goOn(40)).toBe(40);
    expect(cancelled.filter((key) => key === 'bob')).toHaveLength(20);
    while (outside.isBusy) outside.goOn(40);
    expect(outside.goOn(40)).toBe(0);
  });

  it('superseded runs of others are asked for among its own, and again where they do not come', () => {
    const asked: string[] = [];
    const host: Partial<OutsideRunsHost> = {
      runs: new WideMap<string, LiveRun>((id) => id),
      parking: {
        find: (id: string) => ({ id, key: id.slice(0, 3) }),
        bringBack: (id: string, then: (isThere: boolean) => void) => {
          asked.push(id);
          then(false);
        },
      } as unknown as Parking,
    };
    const outside = new OutsideRuns(host as OutsideRunsHost);
    outside.supersede(many);
    outside.supersede(['bob']);
    outside.tick();
    expect(asked).toContain('bob');
    const first = asked.splice(0).length;
    outside.tick();
    expect(asked).toContain('bob');
    expect(asked.length).toBe(first);
  });
});
