import { setImmediate as nextTurn } from 'node:timers/promises';
import { newRun, planOf, viewOf } from '@penstock/run';
import { encodeRunInSteps, StoreUsageError, type EncodedRun, type RunDocument, type RunsLedger } from '@penstock/store';
import { EncodedStories, Projector, type LiveRun, type Partition } from '@penstock/scheduler/testing';
import { failuresAt } from '@penstock/telemetry/borders';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { withBoundedWrites } from '../src/shell/bounded-writes.ts';
import { Harness, stage, text } from './support.ts';

const RUNS = 60;

const unexpected: unknown[] = [];
afterEach(() => {
  const [first] = unexpected.splice(0);
  if (first !== undefined) throw first;
});

/** A store that takes so many documents in its time, and no more. */
class SlowStore {
  atOnce = 1_000;
  readonly written: string[] = [];
  failed = 0;
  checkpoints: number[] = [];
  readonly ledger = {
    saveBatch: async (documents: readonly (RunDocument | EncodedRun)[]) => {
      if (documents.length > this.atOnce) {
        this.failed += 1;
        throw new Error('no answer in time');
      }
      this.written.push(...documents.map((document) => (document as EncodedRun).id));
      return { stale: [] };
    },
    saveCounters: async () => {
      if (this.atOnce === 0) throw new Error('away');
    },
    saveCheckpoint: async ({ sequence }: { readonly sequence: number }) => {
      if (this.atOnce === 0) throw new Error('away');
      this.checkpoints.push(sequence);
      return 'saved' as const;
    },
  } as unknown as RunsLedger;
}

function projectorOf(
  harness: Harness,
  store: SlowStore,
  pauses: () => void = () => {},
  more: {
    readonly partition?: Partition;
    readonly stories?: EncodedStories;
    readonly failed?: (error: unknown) => void;
  } = {},
): Projector {
  return new Projector({
    partition: more.partition ?? harness.partition,
    incarnation: 1,
    ledger: store.ledger,
    journal: {} as never,
    load: harness.load,
    log: { warn: () => {}, error: () => {} },
    stories: more.stories,
    failed: more.failed ?? ((error) => void unexpected.push(error)),
    clock: { bootNow: () => harness.boot, pause: async () => pauses(), turn: async () => {} },
  });
}

function projected(
  harness: Harness,
  store: SlowStore,
  pauses: () => void = () => {},
): { readonly projector: Projector; done(): Promise<void> } {
  const projector = projectorOf(harness, store, pauses);
  projector.projectSoon();
  // What is under way goes on to its end before it stops; with nothing left that is the end of all.
  return {
    projector,
    done: async () => {
      while (store.checkpoints.length === 0)
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      await projector.stop();
    },
  };
}

function withEndedRuns(): Harness {
  const harness = new Harness();
  for (let index = 0; index < RUNS; index++) harness.create('', { ended: { pipelineName: 'p', status: 'SKIPPED' } });
  harness.settle();
  return harness;
}

/** A store that takes all documents but those of one run, and of that one only a small one. */
function refusing(runId: string): SlowStore {
  const store = new SlowStore();
  const save = store.ledger.saveBatch.bind(store.ledger);
  store.ledger.saveBatch = (documents) => {
    const tooLarge = documents.some((each) => 'story' in each && each.id === runId && each.story.length > 1_000);
    return tooLarge ? Promise.reject(new StoreUsageError('memory', 'it has more than 32 MiB')) : save(documents);
  };
  return store;
}

describe('a document that the store refuses for what it is', () => {
  it('costs its run: that is quarantined and kept without its events, and all others are written', async () => {
    const harness = new Harness();
    const others = Array.from({ length: 20 }, () => harness.create(text([stage('a')])).id);
    const { id } = harness.create(text([stage('b', { env: { LARGE: ['x'.repeat(2_000)] } })]));
    harness.settle();
    const store = refusing(id);
    const { done } = projected(harness, store);
    await until(() => store.checkpoints.length > 0);
    expect(store.written).toEqual(expect.arrayContaining([...others, id]));
    harness.settle();
    expect([...harness.partition.liveRuns].find((run) => run.id === id)?.state).toMatchObject({
      status: 'FAILED',
      outcome: 'quarantined',
    });
    await done();
  });
});

describe('a cache that the store refuses for what it is', () => {
  it('is left out, and all else is written', async () => {
    const harness = new Harness();
    harness.session('r1-s', { credits: 1 });
    const { id } = harness.create(text([stage('a')]));
    harness.settle();
    const { runId, attempt, session, credit } = harness.job(0);
    const caches = [{ key: 'k', sha256: 'a'.repeat(64), bytes: 1 }];
    const request = { runId, stage: 'a', attempt, session, credit, status: 'success', logBytes: 0, caches } as const;
    harness.partition.result(request, 'r1', () => {});
    harness.settle();
    const store = new SlowStore();
    let asked = 0;
    store.ledger.addCaches = () => {
      asked += 1;
      return Promise.reject(new StoreUsageError('memory', 'it is no cache'));
    };
    let pauses = 0;
    const pause = (): void => {
      pauses += 1;
      if (pauses > 10) throw new Error('it begins again and again');
    };
    const projector = projectorOf(harness, store, pause, { failed: () => {} });
    projector.projectSoon();
    await until(() => store.checkpoints.length > 0 || pauses > 10);
    await projector.stop();
    expect([asked, store.written.includes(id)]).toEqual([1, true]);
    expect(store.checkpoints).toHaveLength(1);
  });
});

describe('a document that cannot be made', () => {
  it('costs its run: that is quarantined and kept without its events, and all others are written', async () => {
    const harness = new Harness();
    const others = Array.from({ length: 20 }, () => harness.create(text([stage('a')])).id);
    const { id } = harness.create(text([stage('b')]));
    harness.settle();
    const run = [...harness.partition.liveRuns].find((each) => each.id === id);
    Object.assign(run?.events.at(-1) ?? {}, {
      toJSON: () => {
        throw new Error('it cannot be encoded');
      },
    });
    const store = new SlowStore();
    const { done } = projected(harness, store);
    await until(() => store.checkpoints.length > 0);
    expect(store.written).toEqual(expect.arrayContaining([...others, id]));
    harness.settle();
    expect(run?.state).toMatchObject({ status: 'FAILED', outcome: 'quarantined' });
    await done();
  });
});

describe('what throws while a partition is projected', () => {
  it.each(['takeDirty', 'takeCounters', 'projected'] as const)(
    'and is no fault of the store (%s) is told to its owner once and counted, and nothing more is written',
    async (method) => {
      const harness = withEndedRuns();
      const fault = new Error(`a fault in ${method}`);
      const partition = new Proxy(harness.partition, {
        get: (target, name) =>
          name === method
            ? () => {
                throw fault;
              }
            : (Reflect.get(target, name, target) as unknown),
      });
      const failed = vi.fn<(error: unknown) => void>();
      const before = failuresAt('partition.projection');
      const projector = projectorOf(harness, new SlowStore(), undefined, { partition, failed });
      projector.projectSoon();
      projector.projectSoon();
      await until(() => failed.mock.calls.length > 0);
      // As its owner does at once, which must not wait for what has failed.
      await projector.stop();
      expect(failed).toHaveBeenCalledExactlyOnceWith(fault);
      expect(failuresAt('partition.projection')).toBe(before + 1);
    },
  );
});

describe('a run with many events', () => {
  it('is encoded in steps of at most 256 KiB between two turns of the loop, to the same document', () => {
    const events = Array.from({ length: 20_000 }, (_, index) => ({
      type: 'stages_queued' as const,
      at: index,
      stages: ['x'.repeat(100)],
    }));
    const state = newRun(
      'run',
      {
        type: 'run_created',
        at: 1,
        tenant: 't',
        key: 't',
        pipelineName: 'p',
        yaml: '',
        priority: 0,
        origin: { kind: 'api' },
      },
      planOf({ name: 'p', schedule: [], stages: [] }),
    );
    const document = { partition: 0, open: true, incarnation: 1, sequence: 1, state, events, view: viewOf(state) };
    let rests = 0;
    const steps = encodeRunInSteps(document);
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) rests += 1;
    expect(step.value.story).toBe(JSON.stringify({ state, events }));
    expect(step.value.story.length / (rests + 1)).toBeLessThan(256 * 1024);
  });
});

describe('the document of a large run', () => {
  it('costs what has happened since the one before, and is the same as one that is made anew', async () => {
    const harness = new Harness();
    const { id } = harness.create(text([stage('a', { env: { LARGE: ['x'.repeat(100_000)] } })]));
    harness.settle();
    const run = [...harness.partition.liveRuns].find((each) => each.id === id);
    const [created] = run?.events ?? [];
    let encoded = 0;
    const plain = { ...created };
    Object.assign(created ?? {}, {
      toJSON: () => {
        encoded += 1;
        return plain;
      },
    });
    const store = new SlowStore();
    const save = store.ledger.saveBatch.bind(store.ledger);
    const stories: string[] = [];
    store.ledger.saveBatch = (documents) => {
      for (const document of documents) if ('story' in document) stories.push(document.story);
      return save(documents);
    };
    const kept = new EncodedStories();
    const projector = projectorOf(harness, store, () => {}, { stories: kept });
    projector.projectSoon();
    await until(() => store.checkpoints.length === 1);
    // It may wait for long now, and never be written again before it leaves.
    expect(kept.get(run as LiveRun)).toBeUndefined();
    harness.session('r1-s', { credits: 1 });
    harness.settle();
    projector.projectSoon();
    await until(() => store.checkpoints.length === 2);
    expect(kept.get(run as LiveRun)?.count).toBe(3);
    harness.result(harness.job(0));
    harness.settle();
    projector.projectSoon();
    await until(() => store.checkpoints.length === 3);
    await projector.stop();
    expect(encoded).toBe(2);
    expect(stories).toHaveLength(3);
    const { events } = JSON.parse(stories[2] ?? '') as { readonly events: readonly unknown[] };
    expect(events).toEqual([plain, ...(run?.events.slice(1) ?? [])]);
    expect(events).toHaveLength(5);
  });

  it('is remembered within a bound, the last ones first', () => {
    const stories = new EncodedStories(300_000);
    const runs = Array.from({ length: 4 }, () => ({}) as LiveRun);
    const events = { count: 1, text: 'x'.repeat(100_000) };
    for (const run of runs) stories.keep(run, events);
    expect(runs.map((run) => stories.get(run) !== undefined)).toEqual([false, true, true, true]);
    stories.keep({} as LiveRun, { count: 1, text: 'x'.repeat(1_000) });
    stories.keep({} as LiveRun, { count: 1, text: 'x'.repeat(400_000) });
    for (const run of runs) stories.forget(run);
    stories.keep(runs[0] as LiveRun, { count: 3, text: 'x'.repeat(300_000) });
    expect(stories.get(runs[0] as LiveRun)?.count).toBe(3);
  });
});
async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await nextTurn();
}

/** Turns of the loop until it holds. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds())
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
}

describe('calls to project while one is under way', () => {
  /** Called twice while documents are written: by as many pauses it is seen how often the projector began. */
  async function pausesWhere(also: (projector: Projector) => void): Promise<number> {
    const harness = withEndedRuns();
    const store = new SlowStore();
    let pauses = 0;
    // A turn of the loop each: one that never rests is seen, and holds up no test.
    const projector = projectorOf(harness, store, () => {
      pauses += 1;
      return nextTurn();
    });
    const save = store.ledger.saveBatch.bind(store.ledger);
    store.ledger.saveBatch = (documents) => {
      projector.projectSoon();
      projector.projectSoon();
      also(projector);
      return save(documents);
    };
    projector.projectSoon();
    await until(() => store.checkpoints.length > 0);
    await turns(50);
    await projector.stop();
    return pauses;
  }

  it('are made up for by one more, and then there is quiet', async () => {
    expect(await pausesWhere(() => {})).toBe(2);
  });

  it('are not, where it was stopped meanwhile', async () => {
    expect(await pausesWhere((projector) => void projector.stop())).toBe(1);
  });
});

describe('a tick', () => {
  it('moves the checkpoint of a partition in which nothing else is to be written, once', async () => {
    const harness = new Harness();
    const store = new SlowStore();
    let pauses = 0;
    const projector = projectorOf(harness, store, () => {
      pauses += 1;
      return nextTurn();
    });
    projector.tick();
    await turns(50);
    projector.tick();
    await turns(50);
    expect(store.checkpoints).toEqual([harness.partition.sequence]);
    expect(pauses).toBe(1);
    await projector.stop();
  });
});

describe('a partition that is closed while its projector rests', () => {
  it('has no checkpoint made of it: it keeps no account any more of what is still to be written', async () => {
    const harness = withEndedRuns();
    const store = new SlowStore();
    const rested = Promise.withResolvers<void>();
    const projector = projectorOf(harness, store, () => {
      harness.partition.close();
      rested.resolve();
    });
    projector.projectSoon();
    await rested.promise;
    await turns(50);
    expect([store.checkpoints, store.written]).toEqual([[], []]);
    await projector.stop();
    expect(store.checkpoints).toEqual([]);
  });
});

describe('a call to project that was lost', () => {
  it('is made up for by the next tick, though the partition commits nothing more; the ticks after it write nothing', async () => {
    const harness = withEndedRuns();
    const store = new SlowStore();
    const projector = projectorOf(harness, store);
    projector.tick();
    await until(() => [...harness.partition.liveRuns].length === 0);
    expect(store.written).toHaveLength(RUNS);
    let turns = 0;
    await until(() => {
      projector.tick();
      turns += 1;
      return turns === 50;
    });
    await projector.stop();
    expect(store.checkpoints).toEqual([harness.partition.sequence]);
    projector.tick();
    expect(store.written).toHaveLength(RUNS);
  });
});

describe('documents of very many runs', () => {
  const LARGE = 1024 * 1024;
  const COUNT = 20;

  function withLargeRuns(): Harness {
    const harness = new Harness();
    const stages = Array.from({ length: 8 }, (_, index) =>
      stage(`s${index}`, { env: { LARGE: ['x'.repeat(LARGE / 8)] } }),
    );
    for (let index = 0; index < COUNT; index++) harness.create(text(stages, { name: `p${index}` }));
    harness.settle();
    return harness;
  }

  it('are made as the store takes them, some MiB at a time, and the checkpoint stands behind all of them', async () => {
    const harness = withLargeRuns();
    const store = new SlowStore();
    const waiting: number[] = [];
    const save = store.ledger.saveBatch.bind(store.ledger);
    store.ledger.saveBatch = (documents) => {
      waiting.push(harness.partition.dirtyRuns);
      expect(store.checkpoints).toEqual([]);
      const characters = documents.reduce((sum, each) => sum + ('story' in each ? each.story.length : 0), 0);
      expect(characters).toBeLessThan(10 * LARGE);
      return save(documents);
    };
    await projected(harness, store).done();
    expect(waiting.length).toBeGreaterThan(1);
    expect(waiting[0]).toBeGreaterThan(COUNT / 3);
    expect(waiting.at(-1)).toBe(0);
    expect(new Set(store.written).size).toBe(COUNT);
    expect(store.written).toHaveLength(COUNT);
    expect(store.checkpoints).toEqual([harness.partition.sequence]);
  });

  it('are left to who owns the partition next where it is closed between two of them', async () => {
    const harness = withLargeRuns();
    const store = new SlowStore();
    const save = store.ledger.saveBatch.bind(store.ledger);
    store.ledger.saveBatch = (documents) => {
      harness.partition.close();
      return save(documents);
    };
    const projector = projectorOf(harness, store);
    projector.projectSoon();
    await until(() => store.written.length > 0);
    await projector.stop();
    expect(store.written.length).toBeLessThan(COUNT);
    expect(store.checkpoints).toEqual([]);
  });

  it('count for as much as the store has not taken of ended runs, those that were not made yet included', async () => {
    const harness = withEndedRuns();
    const store = new SlowStore();
    store.atOnce = 0;
    let unprojected = 0;
    const projector = projectorOf(harness, store, () => {
      unprojected = Math.max(unprojected, harness.load.unprojectedBytes);
      if (unprojected > 0) store.atOnce = RUNS;
    });
    projector.projectSoon();
    await until(() => store.checkpoints.length > 0);
    await projector.stop();
    expect(unprojected).toBeGreaterThan(RUNS * 300);
    expect(harness.load.unprojectedBytes).toBe(0);
  });
});

describe('a store that is behind', () => {
  it('and takes few documents in its time gets few at once: each is written, in vain is only what it did not take', async () => {
    const harness = withEndedRuns();
    const store = new SlowStore();
    store.atOnce = 5;
    await projected(harness, store).done();
    expect(store.written.toSorted()).toEqual([...new Set(store.written)].toSorted());
    expect(store.written).toHaveLength(RUNS);
    expect(store.checkpoints).toEqual([harness.partition.sequence]);
    expect([...harness.partition.liveRuns]).toEqual([]);
    // 500, 250, 125, 62 (all of them), 31, 15, 7.
    expect(store.failed).toBe(7);
  });

  it('and goes away in between is told each document once more at most, and the runs leave memory all the same', async () => {
    const harness = withEndedRuns();
    const store = new SlowStore();
    let pauses = 0;
    const save = store.ledger.saveCheckpoint.bind(store.ledger);
    let refused = false;
    store.ledger.saveCheckpoint = async (checkpoint) => {
      // Everything is written but this.
      if (refused) return await save(checkpoint);
      refused = true;
      throw new Error('away');
    };
    await projected(harness, store, () => {
      pauses += 1;
    }).done();
    expect(refused).toBe(true);
    expect(pauses).toBeGreaterThan(1);
    expect(store.written).toHaveLength(RUNS);
    expect([...harness.partition.liveRuns]).toEqual([]);
  });

  it('has so many writes of a scheduler at a time, whatever its partitions have to write', async () => {
    let running = 0;
    let most = 0;
    const ledger = withBoundedWrites(
      {
        saveCheckpoint: async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => {
            setImmediate(resolve);
          });
          running -= 1;
          return 'saved';
        },
        saveBatch: () => Promise.reject(new Error('away')),
      } as unknown as RunsLedger,
      3,
    );
    const writes = Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0
        ? ledger.saveCheckpoint({ partition: index, incarnation: 1, sequence: 1, commit: 1 })
        : ledger.saveBatch([]).catch(() => 'failed'),
    );
    expect((await Promise.all(writes)).filter((each) => each === 'saved')).toHaveLength(10);
    expect(most).toBeLessThanOrEqual(3);
    expect(running).toBe(0);
  });
});
