/** One partition in one scheduler, with a log and a store of the test's: what it does from its opening to its end. */
import type { AppendResult, LogEntry, PartitionLog } from '@penstock/bus';
import { machineTime } from '@penstock/async';
import { newRunId, viewOf, type RunEvent } from '@penstock/run';
import { Dispatch, EncodedStories, LiveRun } from '@penstock/scheduler/testing';
import type { RunDocument, RunsLedger } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { noMeter } from '@penstock/telemetry/metrics';
import { describe, expect, it, vi } from 'vitest';
import { decodeCommit } from '../src/run/commit.ts';
import { readAddedText } from '../src/shell/added-texts.ts';
import { CreateIntake } from '../src/shell/create-intake.ts';
import { PartitionOwner, type OwnerOptions } from '../src/shell/partition-owner.ts';
import { definitions, Harness, NOW, settings, stage, text } from './support.ts';

const one = text([stage('a')]);

/** A log that stores nothing while its broker is away; who waits goes on when it is back, unless its signal has aborted. */
class Log {
  readonly partition = 0;
  readonly subject = 'journal.0';
  readonly kinds: string[] = [];
  #last: LogEntry | null = null;
  #back = Promise.withResolvers<void>();
  isAway = false;

  readonly log = {
    partition: 0,
    subject: this.subject,
    last: async () => this.#last,
    read: async function* () {},
    append: async (bytes: Uint8Array, { commitId }: { commitId: string }, signal?: AbortSignal) => {
      const aborted = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
      if (this.isAway) await Promise.race([this.#back.promise, aborted]);
      signal?.throwIfAborted();
      const sequence = (this.#last?.sequence ?? 0) + 1;
      this.#last = { sequence, bytes, commitId } as LogEntry;
      this.kinds.push(decodeCommit(bytes).kind);
      return { ok: true, sequence } as AppendResult;
    },
  } as unknown as PartitionLog;

  async comeBack(): Promise<void> {
    this.isAway = false;
    this.#back.resolve();
    for (let turn = 0; turn < 5; turn++) await machineTime.turn();
  }
}

function documentOf(index: number, more: readonly RunEvent[] = []): RunDocument {
  const at = NOW + index;
  const id = newRunId({ now: at, key: 'ada', random: Uint8Array.of(0, 0, 0, 0, 0, 0, index >> 8, index & 255) });
  const origin = { kind: 'api' } as const;
  const events: RunEvent[] = [
    { type: 'run_created', at, tenant: 'ada', key: 'ada', pipelineName: 'ship', yaml: one, priority: 0, origin },
    { type: 'stages_queued', at, stages: ['a'] },
    ...more,
  ];
  const { state } = LiveRun.restore(id, definitions.find(one).definition, { events, sequence: 0 }, settings);
  return JSON.parse(
    JSON.stringify({ partition: 0, open: true, incarnation: 1, sequence: 1, state, events, view: viewOf(state) }),
  ) as RunDocument;
}

function ownerOf(documents: readonly RunDocument[] = [], say: (line: string) => void = () => {}) {
  const log = new Log();
  const responding: ((body: unknown, call: unknown) => unknown)[] = [];
  let ids = 0;
  let atTurn = (_atOnce: number): void => {};
  let atOnce = 0;
  const turn = async (): Promise<void> => {
    atOnce += 1;
    atTurn(atOnce);
    await machineTime.turn();
    atOnce -= 1;
  };
  const ledger = {
    openOf: async function* () {
      yield* documents;
    },
    laterThan: async function* () {},
    countersOf: async function* () {},
    schedulesOf: async function* () {},
    newestSchedule: async () => null,
    checkpoint: async () => null,
    exists: async () => new Set<string>(),
    deletedAmong: async () => new Set<string>(),
    getAsOwner: async (id: string) => documents.find(({ state }) => state.id === id) ?? null,
    saveBatch: async () => ({ stale: [] }),
    saveCounters: async () => {},
    saveCheckpoint: async () => 'saved' as const,
  } as unknown as RunsLedger;
  const bus = {
    publish: () => {},
    respond: (_subject: string, answer: (body: unknown, call: unknown) => unknown) => {
      responding.push(answer);
      return { stop: () => void responding.splice(0) };
    },
  };
  const time = { ...machineTime, turn };
  const ports = {
    bus,
    time,
    newId: () => `c${++ids}`,
    openLog: () => log.log,
    markLogEnds: async (_runId: string, logs: readonly unknown[]) => logs.map(() => 1),
  } as unknown as OwnerOptions['ports'];
  const reader = { atOnce: () => undefined, readAgain: async () => definitions.find(one), readAdded: readAddedText };
  const options = {
    ports,
    ledger,
    log: { ...silentLogger(), warn: () => {}, info: (_about: unknown, line: string) => say(line) } as never,
    partition: 0,
    settings,
    definitions,
    reader,
    intake: new CreateIntake({ ...reader, read: async () => definitions.find(one) } as never),
    dispatch: new Dispatch(),
    load: new Harness().load,
    stories: new EncodedStories(),
    meter: noMeter,
    mayAct: () => true,
    mayDeclareLoss: () => true,
    isGone: async () => false,
    refreshSessions: async () => {},
  } as OwnerOptions;
  const owner = new PartitionOwner('me', options, () => {});
  const whileOpening = (act: (atOnce: number) => void): void => {
    atTurn = act;
  };
  return { owner, log, responding, whileOpening, load: options.load, dispatch: options.dispatch };
}

describe('the owner of a partition', () => {
  it('P3: is there for nobody before it knows every run that it takes over', async () => {
    const { owner, responding, whileOpening } = ownerOf(Array.from({ length: 600 }, (_, index) => documentOf(index)));
    const listening: number[] = [];
    const turnsAtOnce = new Set<number>();
    whileOpening((atOnce) => {
      listening.push(responding.length);
      turnsAtOnce.add(atOnce);
    });
    expect(await owner.open()).toBe(true);
    expect(listening.length).toBeGreaterThan(20);
    expect(new Set(listening)).toEqual(new Set([0]));
    // A slice begins when the turn before it is over: others come to their right in between.
    expect(turnsAtOnce).toEqual(new Set([1]));
    expect(responding).toHaveLength(1);
    expect([...(owner.partition?.liveRuns ?? [])]).toHaveLength(600);
    await owner.forget();
  });

  it('P3: gives an opening up that is to be released, and says nothing more for the partition', async () => {
    const { owner, log, responding, whileOpening, load } = ownerOf(
      Array.from({ length: 600 }, (_, index) => documentOf(index)),
    );
    let released: Promise<boolean> | undefined;
    whileOpening(() => {
      if (owner.partition === undefined) return;
      log.isAway = true;
      released ??= owner.release(new AbortController().signal);
    });
    expect(await owner.open().catch(() => false)).toBe(false);
    await log.comeBack();
    expect(await released).toBe(true);
    expect(responding).toEqual([]);
    expect(log.kinds).toEqual(['opened', 'opened', 'released']);
    expect(load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
  });

  it('P2: stores nothing more of what it had decided once it has forgotten its partition', async () => {
    const { owner, log } = ownerOf();
    await owner.open();
    log.isAway = true;
    const id = newRunId({ now: Date.now(), key: 'ada', random: new Uint8Array(10) });
    owner.partition?.create(
      { runId: id, tenant: 'ada', key: 'ada', yaml: one, origin: { kind: 'api' } },
      () => expect.unreachable(),
      definitions,
    );
    await owner.forget();
    await log.comeBack();
    expect(log.kinds).toEqual(['opened']);
  });

  it('P5: goes on with what is left of a session with very many attempts, also while no commit can be stored', async () => {
    const count = 250;
    const held = { stage: 'a', attempt: 1, runner: 'r1', session: 'r1-s', credit: 1 } as const;
    const { owner, log, dispatch } = ownerOf(
      Array.from({ length: count }, (_, index) => documentOf(index, [{ type: 'stage_started', at: NOW, ...held }])),
    );
    const attempts = Array.from({ length: count }, (_, index) => ({
      runId: documentOf(index).state.id,
      stage: held.stage,
      attempt: held.attempt,
      session: held.session,
      credit: held.credit,
    }));
    dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: count, attempts });
    await owner.open();
    const live = (): number =>
      [...(owner.partition?.liveRuns ?? [])].filter(({ state }) => state.liveAttempts > 0).length;
    expect(live()).toBe(count);
    log.isAway = true;
    dispatch.sessionGone('r1-s');
    owner.sessionLost('r1-s', 'r1');
    await expect.poll(live, { interval: 5, timeout: 20_000 }).toBe(0);
    await owner.forget();
    await log.comeBack();
  }, 60_000);

  it('says once that runs wait outside of memory, and once that none does any more', async () => {
    const said: string[] = [];
    const { owner, load } = ownerOf(
      Array.from({ length: 40 }, (_, index) => documentOf(index)),
      (line) => void (line.includes('outside of memory') && said.push(line)),
    );
    Object.assign(load, { liveBytesMax: 100 * 1024 });
    await owner.open();
    const { partition } = owner;
    expect(partition?.parkedRuns).toBeGreaterThan(0);
    expect(said).toEqual([]);
    owner.tick();
    owner.tick();
    expect(said).toEqual(['runs wait outside of memory until there is room']);
    for (const run of Array.from({ length: 40 }, (_, index) => documentOf(index).state.id))
      partition?.cancel({ runId: run, tenants: ['ada'] }, () => {});
    await vi.waitFor(
      () => {
        owner.tick();
        expect(said).toHaveLength(2);
      },
      { timeout: 20_000 },
    );
    expect(said[1]).toBe('no run waits outside of memory any more');
    await owner.forget();
  }, 60_000);
});
