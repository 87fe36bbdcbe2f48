/**
 * A mixed load through the public API: triggers with ids of their own, repeated with the same id until they are answered;
 * cancels, watches and reads of what was accepted. It owns the account of what clients were answered; whether that is true is
 * the checker's to say.
 *
 * CHAOS-LOAD-1. `accepted` holds every run whose trigger was answered with it, and nothing else.
 * CHAOS-LOAD-2. A call whose outcome is unknown is repeated until it is known, or until `finish` gives up.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { keyOf, newRunId, SERVICE_TENANT } from '@penstock/run';
import { Random } from '../support/random.ts';
import type { Api, RunAnswer } from './api.ts';
import type { DoorRates } from './doors/door-load.ts';
import { makePipeline, type ChaosPipeline, type Shapes } from './pipelines.ts';
import type { Approver, Client } from './steer/client.ts';
import type { AcceptedRun, LoadAccount, UnansweredRun } from './load-account.ts';
import { GateLoad } from './steer/gate-load.ts';
import { ID_REFUSED, RerunLoad } from './steer/rerun-load.ts';
import type { BrokenAnswer } from './violations.ts';
import { watchRun, type Watched } from './watcher.ts';

export interface LoadProfile {
  readonly ratePerSec: number;
  /** Of the accepted runs, 0 to 1. */
  readonly cancelShare: number;
  readonly watchShare: number;
  readonly readShare: number;
  /** Of the triggers, that wait for the end. */
  readonly waitShare: number;
  /** Of the connections of watchers, that they cut themselves. */
  readonly cutShare: number;
  /** Of the accepted runs, that are run again; half as many of those that are repeats themselves. */
  readonly rerunShare?: number;
  /** Repositories have schedules. */
  readonly ticks?: boolean;
  readonly cancelAfterMsMax: number;
  readonly shapes: Shapes;
  /** What comes in by the other doors; default nothing. */
  readonly doors?: DoorRates;
}

const REPEAT_MS_MIN = 150;
const REPEAT_MS_MAX = 700;
/** Triggers under way; more would only wait in the gateways. */
const PENDING_MAX = 200;
const WAIT_SECS = 10;
const READS_OF_A_RUN = 6;
const BROKEN_KEPT = 50;
const OLDER_MS = 8_000;

export interface LoadOptions {
  readonly api: Api;
  readonly profile: LoadProfile;
  readonly seed: number;
  readonly marksFolder: string;
  readonly token: string;
  /** A gateway whose clock is behind takes an id of now for one of the future, and refuses it (P7): another one takes it. */
  readonly clocksStepped?: boolean;
  /** Who decides at gates that name somebody. */
  readonly approvers?: readonly Approver[];
}

export class Load {
  readonly #options: LoadOptions;
  readonly #random: Random;
  readonly #accepted = new Map<string, AcceptedRun>();
  readonly #unanswered = new Map<string, UnansweredRun>();
  readonly #watched: Watched[] = [];
  readonly #broken: BrokenAnswer[] = [];
  readonly #tasks = new Set<Promise<void>>();
  readonly #givenUp = new AbortController();
  readonly #gates: GateLoad;
  readonly #reruns: RerunLoad;
  #triggering: Promise<void> = Promise.resolve();
  #stopped = false;
  #reads = 0;
  #cancels = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    const client: Client = {
      api: options.api,
      givenUp: this.#givenUp.signal,
      isStopped: () => this.#stopped,
      clocksStepped: options.clocksStepped === true,
      report: (kind, runId, detail) => this.#report(kind, runId, detail),
      judge: (runId, what, refusal) => this.#judge(runId, what, refusal),
      beforeRepeat: (random) => this.#beforeRepeat(random),
    };
    this.#gates = new GateLoad(client, options.approvers ?? []);
    this.#reruns = new RerunLoad(client);
  }

  start(): void {
    this.#triggering = this.#triggerForLong();
  }

  /** No new triggers; waits for everything that is under way, at most so long. */
  async finish(limitMs: number): Promise<LoadAccount> {
    this.#stopped = true;
    await this.#triggering;
    const late = setTimeout(() => this.#givenUp.abort(), limitMs);
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    clearTimeout(late);
    return {
      accepted: [...this.#accepted.values()],
      unanswered: [...this.#unanswered.values()],
      watched: this.#watched,
      broken: this.#broken,
      gates: this.#gates.answers,
      reruns: this.#reruns.account(),
      reads: this.#reads,
      cancels: this.#cancels,
    };
  }

  async #triggerForLong(): Promise<void> {
    const { profile, marksFolder, token, approvers: people = [] } = this.#options;
    const approvers = people.map(({ name }) => name);
    while (!this.#stopped) {
      await pause(Math.min(2_000, this.#random.exponential(1_000 / profile.ratePerSec)));
      if (this.#stopped || this.#unanswered.size >= PENDING_MAX) continue;
      const pipeline = makePipeline({ random: this.#random, marksFolder, token, shapes: profile.shapes, approvers });
      const key = keyOf({ tenant: SERVICE_TENANT, pipelineName: pipeline.name });
      const id = newRunId({ now: Date.now(), key, random: this.#random.bytes(8) });
      this.#spawn(this.#client(id, pipeline, new Random(this.#random.int(2 ** 31))));
    }
  }

  /** One client and its run. */
  async #client(id: string, pipeline: ChaosPipeline, random: Random): Promise<void> {
    this.#unanswered.set(id, { id, pipeline });
    const run = await this.#trigger(id, pipeline, random);
    if (run !== null) this.#use(run, random);
  }

  /** What clients do with a run that they were promised. */
  #use(run: AcceptedRun, random: Random): void {
    const { profile } = this.#options;
    const { id } = run;
    const wants = {
      watch: random.chance(profile.watchShare),
      cancel: random.chance(profile.cancelShare),
      read: random.chance(profile.readShare),
    };
    if (wants.watch) this.#spawn(this.#watch(id, random));
    if (wants.cancel) this.#spawn(this.#cancel(run, random));
    if (wants.read) this.#spawn(this.#read(run, random));
    if (run.pipeline.stages.some(({ gate }) => gate !== undefined))
      this.#spawn(this.#gates.decideAll(id, run.pipeline, new Random(random.int(2 ** 31))));
    const { rerunShare = 0 } = profile;
    const isRepeated = random.chance(run.rerun === undefined ? rerunShare : rerunShare / 2);
    if (isRepeated && !this.#stopped && RerunLoad.canRepeat(run.pipeline))
      this.#spawn(this.#repeat(run, new Random(random.int(2 ** 31))));
  }

  async #repeat(parent: AcceptedRun, random: Random): Promise<void> {
    const repeated = await this.#reruns.repeat(parent, random, (id, pipeline, rerun) =>
      this.#unanswered.set(id, { id, pipeline, rerun }),
    );
    if (repeated === null) return;
    const run: AcceptedRun = { ...repeated, acceptedAt: Date.now() };
    this.#unanswered.delete(run.id);
    this.#accepted.set(run.id, run);
    this.#use(run, random);
  }

  async #trigger(id: string, pipeline: ChaosPipeline, random: Random): Promise<AcceptedRun | null> {
    const { api, profile } = this.#options;
    const waitSeconds = random.chance(profile.waitShare) ? WAIT_SECS : 0;
    while (!this.#givenUp.signal.aborted) {
      const outcome = await api.trigger(pipeline.yaml, id, waitSeconds);
      if (outcome.ok) {
        const run: AcceptedRun = { id, pipeline, acceptedAt: Date.now() };
        this.#unanswered.delete(id);
        this.#accepted.set(id, run);
        if (outcome.value.id !== id)
          this.#report('refused', id, `the trigger was answered with the run ${outcome.value.id}`);
        this.#shown(run, outcome.value);
        return run;
      }
      const isAhead = this.#options.clocksStepped === true && outcome.message.startsWith(ID_REFUSED);
      if (!isAhead) this.#judge(id, 'trigger', outcome);
      if (outcome.failure === 'refused' && !isAhead) return null;
      await this.#beforeRepeat(random);
    }
    return null;
  }

  async #cancel(run: AcceptedRun, random: Random): Promise<void> {
    const { api, profile } = this.#options;
    await pause(random.next() * profile.cancelAfterMsMax);
    for (let tries = 0; !this.#givenUp.signal.aborted; tries++) {
      run.cancelRepeated = tries > 0;
      const outcome = await api.cancel(run.id);
      this.#cancels += 1;
      if (outcome.ok) {
        run.cancel = 'cancelled';
        if (outcome.value.status !== 'CANCELLED')
          this.#report('refused', run.id, `its cancel was answered with the status ${outcome.value.status}`);
        this.#shown(run, outcome.value);
        return;
      }
      if (outcome.code === 'CONFLICT') {
        run.cancel = 'had ended';
        return;
      }
      if (outcome.code === 'NOT_FOUND') return this.#report('not found', run.id, 'by cancel');
      this.#judge(run.id, 'cancel', outcome);
      await this.#beforeRepeat(random);
    }
  }

  async #watch(id: string, random: Random): Promise<void> {
    const { api, profile } = this.#options;
    this.#watched.push(await watchRun(api, id, random, profile.cutShare, this.#givenUp.signal));
  }

  /** Reads a run again and again: it is there from its acceptance on, and never goes back. */
  async #read(run: AcceptedRun, random: Random): Promise<void> {
    const { api } = this.#options;
    let before: RunAnswer | null = null;
    for (let read = 0; read < READS_OF_A_RUN && !this.#givenUp.signal.aborted; read++) {
      const outcome = await api.run(run.id);
      if (outcome.ok) {
        this.#reads += 1;
        const now = outcome.value;
        if (now === null) return this.#report('not found', run.id, 'by run(id), after its acceptance');
        if (before !== null && wentBack(before, now))
          this.#report('went back', run.id, `from ${JSON.stringify(before)} to ${JSON.stringify(now)}`);
        this.#shown(run, now);
        before = now;
      } else {
        this.#judge(run.id, 'run', outcome);
      }
      if (random.chance(0.2)) await this.#readList(run, before);
      if (random.chance(0.5)) await this.#readOlder(random);
      await this.#beforeRepeat(random);
    }
  }

  /** Of a run that has most likely left its owner's memory, so that the database alone has it. */
  async #readOlder(random: Random): Promise<void> {
    const until = Date.now() - OLDER_MS;
    const older = [...this.#accepted.values()].filter(({ acceptedAt }) => acceptedAt < until);
    if (older.length === 0) return;
    const run = random.pick(older);
    const outcome = await this.#options.api.run(run.id);
    if (!outcome.ok) return this.#judge(run.id, 'run', outcome);
    this.#reads += 1;
    if (outcome.value === null) return this.#report('not found', run.id, 'by run(id), long after its acceptance');
    this.#shown(run, outcome.value);
  }

  async #readList(run: AcceptedRun, before: RunAnswer | null): Promise<void> {
    const outcome = await this.#options.api.newest(20);
    if (!outcome.ok) return this.#judge(run.id, 'runs', outcome);
    this.#reads += 1;
    const listed = outcome.value.find(({ id }) => id === run.id);
    if (listed !== undefined && before !== null && wentBack(before, listed))
      this.#report('went back', run.id, `in a list, from ${JSON.stringify(before)} to ${JSON.stringify(listed)}`);
  }

  #shown(run: AcceptedRun, answer: RunAnswer): void {
    if (rankOf(answer.status) < ENDED) return;
    if (run.shownEnd !== undefined && run.shownEnd !== answer.status)
      this.#report('went back', run.id, `shown as ${run.shownEnd}, then as ${answer.status}`);
    run.shownEnd = answer.status;
  }

  #judge(
    runId: string,
    what: string,
    { failure, code, message }: { readonly failure: string; readonly code: string; readonly message: string },
  ): void {
    if (failure === 'refused' || failure === 'internal') this.#report(failure, runId, `${what}: ${code} ${message}`);
  }

  #report(kind: BrokenAnswer['kind'], runId: string, detail: string): void {
    if (this.#broken.length < BROKEN_KEPT)
      this.#broken.push({ kind, runId, detail: `${new Date().toISOString()} ${detail}` });
  }

  #beforeRepeat(random: Random): Promise<void> {
    return pause(random.between(REPEAT_MS_MIN, REPEAT_MS_MAX));
  }

  #spawn(task: Promise<void>): void {
    const guarded = task
      .catch((error: unknown) => this.#report('internal', '', `the client itself failed: ${String(error)}`))
      .finally(() => this.#tasks.delete(guarded));
    this.#tasks.add(guarded);
  }
}

const ENDED = 2;

function rankOf(status: string): number {
  if (status === 'PENDING' || status === 'QUEUED') return 0;
  return status === 'RUNNING' ? 1 : ENDED;
}

/**
 * A stage goes from RUNNING back to PENDING when it is retried or its grant returned. Its attempts only grow, but for the one of a
 * grant that came to nothing, which does not count (P12).
 */
export function wentBack(before: RunAnswer, now: RunAnswer): boolean {
  const ranks = [rankOf(before.status), rankOf(now.status)] as const;
  if (ranks[1] < ranks[0] || (ranks[0] === ENDED && before.status !== now.status)) return true;
  return before.stages.some((stage) => {
    const later = now.stages.find(({ name }) => name === stage.name);
    if (later === undefined) return true;
    // By the time of the later answer its run may have been cancelled as well, or no runner have been left for it.
    const returned = stage.status === 'RUNNING' && !['RUNNING', 'SUCCESS'].includes(later.status) ? 1 : 0;
    if (later.attempt < stage.attempt - returned) return true;
    return rankOf(stage.status) === ENDED && later.status !== stage.status;
  });
}
