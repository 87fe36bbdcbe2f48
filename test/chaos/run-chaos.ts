/**
 * One chaos run on a cluster: a load, a schedule of faults, everything healed, the end of every accepted run waited for,
 * and the account of all of it.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connectBus } from '@penstock/bus';
import { openStore, storeAddressOf, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { SERVICE_TENANT } from '@penstock/run';
import type { Cluster } from '../cluster/cluster.ts';
import { Random } from '../support/random.ts';
import type { StreamEvent } from '../support/sse.ts';
import { Api } from './api.ts';
import { check, type Evidence, type Totals } from './checker.ts';
import { CLOCK_STEP_MS, rightTime } from './clock.ts';
import { DoorLoad, type DoorAccount } from './doors/door-load.ts';
import { canHappen, FAULT_KINDS, type FaultKind } from './fault-kinds.ts';
import { FaultRunner, mayLoseAttempts, type DoneFault } from './faults.ts';
import { isOver, Journal } from './journal.ts';
import { Load } from './load.ts';
import type { LoadAccount } from './load-account.ts';
import { logInApprovers } from './steer/approvers.ts';
import { lookedAt } from './steer/looks.ts';
import { TickLoad, ticksIn, type TickAccount } from './steer/tick-load.ts';
import { readMarks } from './marks.ts';
import { processesWithToken } from '../support/orphans.ts';
import { recoveryTimes, type RecoveryTimes } from './recovery.ts';
import type { Schedule } from './schedules.ts';
import type { Violation } from './violations.ts';
import { replayRun } from './watcher.ts';

export interface ChaosOptions {
  readonly cluster: Cluster;
  readonly schedule: Schedule;
  readonly seed: number;
  readonly seconds: number;
  /** Of the mixed schedule; none: all. */
  readonly kinds?: readonly FaultKind[];
  readonly runnerLeaseSecs: number;
  readonly say?: (line: string) => void;
}

export interface ChaosReport {
  readonly violations: readonly Violation[];
  readonly totals: Totals;
  readonly recovery: RecoveryTimes;
  readonly faults: readonly DoneFault[];
  readonly doors: DoorAccount | undefined;
  readonly triggerMs: readonly number[];
  /** What calls failed with, and how often. */
  readonly failures: ReadonlyMap<string, number>;
  readonly examples: readonly string[];
  /** From the end of the faults until every accepted run was over. */
  readonly settledMs: number;
}

/** Stages have a /tmp of their own: what they leave there nobody else sees. */
const SEEN_BY_STAGES = '/var/tmp';
/** After the last fault: a lease, a take-over, retries and their delays, what is left of the stages. */
const SETTLE_MS_MAX = 120_000;
const CLIENTS_MS_MAX = 90_000;
const DOCUMENTS_MS_MAX = 30_000;
const REPLAYS_MS_MAX = 60_000;
const ORPHANS_MS_MAX = 5_000;
/** Event streams of runs that nobody watched that are read all the same. */
const REPLAYS_BESIDE = 60;
const REPLAYS_AT_ONCE = 8;
const LOOK_MS = 300;
/** Repositories with schedules are pushed again in the middle of the load: thousandths of its seconds. */
const PUSHED_AGAIN_MS = 500;
const STORE_TRIES_MAX = 8;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { cluster, schedule, seed, seconds } = options;
  const say = options.say ?? (() => {});
  const token = `chaos-${randomUUID()}`;
  const marksFolder = mkdtempSync(join(SEEN_BY_STAGES, 'penstock-marks-'));
  const faults = schedule.faults({
    random: new Random(seed),
    seconds,
    kinds: kindsFor(cluster, options.kinds ?? []),
    countOf: (service) => cluster.of(service).length,
  });
  const impossible = faults.find(({ kind }) => !canHappen(kind, cluster));
  if (impossible !== undefined) throw new RangeError(`this cluster is not made for ${impossible.kind}`);
  const api = new Api(cluster.url, cluster.apiKey);
  const clocksStepped = faults.some(({ kind }) => kind.endsWith('-clock'));
  const { doors: rates, shapes, ticks: hasTicks = false } = schedule.profile;
  const approvers =
    shapes.gated === undefined ? [] : await logInApprovers(api, cluster.store.directUrl, new Random(seed ^ 0x9a7e));
  const load = new Load({
    api,
    profile: schedule.profile,
    seed: seed ^ 0x5eed,
    marksFolder,
    token,
    clocksStepped,
    approvers,
  });
  const tickLoad = hasTicks ? new TickLoad(cluster.url, new Random(seed ^ 0x71c5)) : undefined;
  const doorLoad =
    rates === undefined ? undefined : new DoorLoad({ url: cluster.url, apiKey: cluster.apiKey, rates, seed });
  const runner = new FaultRunner(cluster, say);

  const pushed = new AbortController();
  await tickLoad?.push(pushed.signal);
  load.start();
  doorLoad?.start();
  const pushedAgain = pause(seconds * PUSHED_AGAIN_MS).then(() => tickLoad?.push(pushed.signal));
  await Promise.all([runner.run(faults), pause(seconds * 1_000)]);
  const healedAt = performance.now();
  await heal(cluster);
  if (clocksStepped) leaveClocksWrong(cluster, new Random(seed ^ 0xc10c));
  say('healed; waiting for the end of every run');
  const bus = await connectBus({ servers: cluster.brokers.url, name: 'chaos' });
  try {
    const journal = new Journal(bus, cluster.partitions);
    const [account, doors, ticks] = await Promise.all([
      load.finish(CLIENTS_MS_MAX),
      doorLoad?.finish(CLIENTS_MS_MAX),
      pushedAgain.then(() =>
        tickLoad?.finish(
          async () => {
            await journal.read();
            return journal.runs;
          },
          { clocksWrong: clocksStepped },
        ),
      ),
    ]);
    await settle(journal, account, doors, ticks);
    const settledMs = performance.now() - healedAt;
    const evidence: Evidence = {
      account,
      journal,
      marks: readMarks(marksFolder),
      documents: await documentsOf(cluster, journal, account),
      looks: await lookedAt(api, account),
      ticks,
      replays: await replaysOf(api, account),
      orphans: await orphansOf(token),
      mayLoseAttempts: mayLoseAttempts(faults, options.runnerLeaseSecs),
      clocksStepped,
      disksFilled: faults.some(({ kind }) => kind === 'runner-disk-full'),
      logsLimited: faults.some(({ kind }) => kind === 'logs-limit'),
      doors,
    };
    const { violations, totals } = check(evidence);
    if (violations.length === 0) rmSync(marksFolder, { recursive: true, force: true });
    else say(`what the stages left is in ${marksFolder}`);
    const refusedBy =
      schedule.strict === true
        ? [...api.failures].map(([kind, count]): Violation => ({
            kind: 'answer',
            runId: '',
            detail: `${count} requests failed: ${kind}`,
          }))
        : [];
    return {
      violations: [...violations, ...refusedBy],
      totals,
      settledMs,
      faults: runner.done,
      doors,
      recovery: recoveryTimes(
        journal.commits.map((commit) => ({ ...commit, at: rightTime(commit.at, Date.now()) })),
        runner.done,
      ),
      triggerMs: api.triggerMs,
      failures: api.failures,
      examples: api.examples,
    };
  } finally {
    await bus.close();
    if (clocksStepped) await cluster.heal();
  }
}

/** Work goes on wherever the clocks of schedulers and runners stand, not only once they are right again. */
function leaveClocksWrong(cluster: Cluster, random: Random): void {
  for (const { name } of [...cluster.of('scheduler'), ...cluster.of('runner')])
    cluster.stepClock(name, random.pick([CLOCK_STEP_MS, -CLOCK_STEP_MS, 0]));
}

/** Those that were asked for, or all that the cluster is made for. */
function kindsFor(cluster: Cluster, asked: readonly FaultKind[]): readonly FaultKind[] {
  if (asked.length > 0) return asked;
  return FAULT_KINDS.filter((kind) => kind !== 'rolling-restart' && canHappen(kind, cluster));
}

async function heal(cluster: Cluster): Promise<void> {
  await cluster.heal();
  for (const one of cluster.processes) {
    if (one.frozen) one.resume();
    if (!one.lives) one.start();
  }
  await cluster.ready();
}

async function settle(
  journal: Journal,
  account: LoadAccount,
  doors: DoorAccount | undefined,
  ticks: TickAccount | undefined,
): Promise<void> {
  const deadline = AbortSignal.timeout(SETTLE_MS_MAX);
  const pushed = [...(doors?.deliveries.answered.values() ?? [])].flatMap((ids) => [...ids]);
  const ids = [...[...account.accepted, ...account.unanswered].map(({ id }) => id), ...pushed];
  try {
    for (; !deadline.aborted; await pause(LOOK_MS)) {
      await journal.read(deadline);
      const accepted = [...account.accepted.map(({ id }) => id), ...pushed].every((id) => journal.runs.has(id));
      const fired = ticksIn(journal.runs).filter(({ repository }) => ticks?.lines.has(repository));
      if (
        accepted &&
        fired.every(({ run }) => isOver(run)) &&
        ids.every((id) =>
          isOver(
            journal.runs.get(id) ?? { id, partition: 0, events: [{ type: 'run_completed', at: 0, status: 'SKIPPED' }] },
          ),
        )
      )
        return;
    }
  } catch (error) {
    if (!deadline.aborted) throw error;
  }
}

async function documentsOf(cluster: Cluster, journal: Journal, account: LoadAccount): Promise<Evidence['documents']> {
  const store = await openWhenPossible(cluster.store.directUrl);
  const documents = new Map<string, { version: number; status: string; open: boolean } | null>();
  const deadline = performance.now() + DOCUMENTS_MS_MAX;
  try {
    const runs = new RunsRepository(store);
    let missing = account.accepted.map(({ id }) => id);
    for (; missing.length > 0; await pause(LOOK_MS)) {
      const behind: string[] = [];
      for (const id of missing) {
        const document = await patiently(() => runs.get(id, { tenants: [SERVICE_TENANT] }));
        documents.set(
          id,
          document === null
            ? null
            : { version: document.events.length, status: document.state.status, open: document.open },
        );
        if (document === null || document.open || document.events.length !== journal.runs.get(id)?.events.length)
          behind.push(id);
      }
      missing = behind;
      if (performance.now() > deadline) break;
      if (missing.length > 0) await journal.read();
    }
  } finally {
    await store.close();
  }
  return documents;
}

function openWhenPossible(url: string): Promise<DocumentStore> {
  return patiently(() => openStore(storeAddressOf(url), runCollections));
}

/** A store that has just been healed still has the services' backlog to work off. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === STORE_TRIES_MAX || (error as { readonly retryable?: boolean }).retryable !== true) throw error;
      await pause(LOOK_MS * tries);
    }
  }
}

async function replaysOf(api: Api, account: LoadAccount): Promise<Evidence['replays']> {
  const watched = new Set(account.watched.map(({ runId }) => runId));
  const beside = account.accepted.filter(({ id }) => !watched.has(id)).slice(-REPLAYS_BESIDE);
  const waiting = [...watched, ...beside.map(({ id }) => id)];
  const replays = new Map<string, readonly StreamEvent[] | null>();
  const deadline = AbortSignal.timeout(REPLAYS_MS_MAX);
  await Promise.all(
    Array.from({ length: REPLAYS_AT_ONCE }, async () => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop())
        replays.set(id, await replayRun(api, id, deadline));
    }),
  );
  return replays;
}

/** Every run is over: what carries the token now has escaped. */
async function orphansOf(token: string): Promise<string[]> {
  const deadline = performance.now() + ORPHANS_MS_MAX;
  for (;;) {
    const orphans = processesWithToken(token);
    if (orphans.length === 0 || performance.now() > deadline) return orphans;
    await pause(LOOK_MS);
  }
}
