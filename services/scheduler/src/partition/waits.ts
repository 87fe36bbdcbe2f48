/**
 * What runs wait for, as their owner knows it: from the turns of groups and quotas, the queues of the dispatch, what is parked, and
 * the commit that is under way. Decides and changes nothing; owns nothing.
 *
 *  WAITS-1 The answer takes bounded time, however many runs wait: so many stages are told, and so many of what stands before them
 *     are looked at. Runs behind those are left to be asked about again; of one run alone a place is not said, nor which label is missing.
 *  WAITS-2 What is told of the run itself is committed (PARTITION-3); what stands in its way is as it is now.
 *  WAITS-3 Other runs are named to who asks with their tenant alone.
 */
import type { Control, WaitsReply, WaitsRequest } from '@penstock/bus';
import {
  awaitsRunner,
  isRunId,
  waitsOf,
  type Epoch,
  type RunId,
  type RunState,
  type RunWaits,
  type StagePicture,
  type Wait,
  type WaitSource,
} from '@penstock/run';
import { turnOf, type ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { Controls } from '../controls/controls.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { Looks } from '../dispatch/place.ts';
import { PickOrders, StandingStages, type Standing } from '../dispatch/standing-stages.ts';
import { ExpectedLine } from '../run/expected-line.ts';
import { runLengthName, stageLengthName } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { ParkedRun } from '../run/parked-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { mayGrant, type SchedulerLoad } from '../run/scheduler-load.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parking } from './parking.ts';

/** Stages of one answer: it is made and sent between two commits. */
const ANSWER_STAGES_MAX = 2_000;
/** What stands before its runs is looked at for one answer: some 20 ms. */
const ANSWER_LOOKS_MAX = 20_000;
/** Runs of one answer. */
const RUNS_MAX = 100;
/** Runs in one answer that are read for it. */
const OUTSIDE_MAX = 16;
/** A commit takes some milliseconds; of one that takes longer it is told. */
const COMMIT_SLOW_MS = 2_000;
/** Runs in the line of parked ones that are counted. */
const PARKED_LOOKED_AT_MAX = 10_000;

export interface WaitsHost {
  readonly epoch: Epoch;
  readonly ports: Pick<PartitionPorts, 'now' | 'bootNow'>;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly parking: Pick<Parking, 'find' | 'has' | 'read' | 'before'>;
  readonly slots: Pick<ConcurrencySlots, 'placeOf'>;
  readonly dispatch: Pick<Dispatch, 'queues' | 'lengths'>;
  readonly cycle: Pick<CommitCycle, 'whenAllCommitted' | 'waitsSince'>;
  readonly load: SchedulerLoad;
  readonly controls: Pick<Controls, 'areKnown' | 'pauseOf'>;
  mayAnswer(): boolean;
  /** It is about to be another owner's. */
  isReleasing(): boolean;
}

export class Waits {
  readonly #host: WaitsHost;

  constructor(host: WaitsHost) {
    this.#host = host;
  }

  ask({ runIds, tenants }: WaitsRequest, reply: (reply: WaitsReply) => void): void {
    const { parking } = this.#host;
    if (!this.#host.mayAnswer()) return;
    const asked = [...new Set(runIds)];
    const ids = asked.slice(0, RUNS_MAX);
    const rest = asked.slice(RUNS_MAX);
    const toRead: RunId[] = [];
    for (const id of ids) {
      const parked = parking.find(id);
      if (parked === undefined || parked.held) continue;
      if (toRead.length < OUTSIDE_MAX) toRead.push(id);
      else rest.push(id);
    }
    const read = new Map<RunId, LiveRun | 'unavailable'>();
    let left = toRead.length;
    const later = new Set(rest);
    const answer = (): void =>
      this.#answer(
        ids.filter((id) => !later.has(id)),
        { read, rest, tenants },
        reply,
      );
    if (left === 0) answer();
    for (const id of toRead)
      parking.read(id, (run) => {
        read.set(id, run);
        left -= 1;
        if (left === 0) answer();
      });
  }

  #answer(
    ids: readonly RunId[],
    more: {
      readonly read: ReadonlyMap<RunId, LiveRun | 'unavailable'>;
      readonly rest: readonly RunId[];
      readonly tenants: readonly string[];
    },
    reply: (reply: WaitsReply) => void,
  ): void {
    const { epoch, runs, cycle } = this.#host;
    const answer = (): void => {
      if (!this.#host.mayAnswer()) return;
      const told: RunWaits[] = [];
      const rest = [...more.rest];
      const looking = this.#looking();
      let stages = 0;
      const isOver = (): boolean => stages >= ANSWER_STAGES_MAX || (looking.left <= 0 && told.length > 0);
      for (const id of ids) {
        const found = isOver() ? undefined : this.#ofRun(id, more.read.get(id), looking);
        // What was not looked at to its end is looked at anew: its places are known then.
        if (isOver()) rest.push(id);
        if (found === undefined || isOver()) continue;
        stages += 1 + (found.run.stages?.length ?? 0);
        told.push(more.tenants.includes(found.tenant) ? found.run : withoutRuns(found.run));
      }
      reply({ ok: true, epoch, runs: told, ...(rest.length === 0 ? {} : { rest }) });
    };
    if (ids.every((id) => runs.get(id)?.isCommitted !== false)) answer();
    else cycle.whenAllCommitted(answer);
  }

  /** Undefined: nothing of it goes on here. */
  #ofRun(id: RunId, read: LiveRun | 'unavailable' | undefined, looking: Looking): Told | undefined {
    const { runs, parking } = this.#host;
    const live = runs.get(id);
    if (live !== undefined) return live.committedVersion === 0 ? undefined : this.#ofState(live, looking);
    const parked = parking.find(id);
    if (parked === undefined) return undefined;
    const { tenant, version } = parked;
    if (parked.held) {
      const turn = this.#turn(parked, parked.createdAt, looking);
      return { tenant, run: { id, version, waits: [...this.#inTheWay(), turn] } };
    }
    if (read === undefined || read === 'unavailable')
      return { tenant, run: { id, version, waits: [storeAway(parked)] } };
    return this.#ofState(read, looking);
  }

  #looking(): Looking {
    const { dispatch, ports } = this.#host;
    const looks = { left: ANSWER_LOOKS_MAX };
    return Object.assign(looks, { orders: new PickOrders(dispatch, ports.bootNow(), looks) });
  }

  #ofState(run: LiveRun, looking: Looking): Told {
    const state = run.committedState();
    return { tenant: state.tenant, run: waitsOf(state, this.#sourceOf(run, state, looking)) };
  }

  #sourceOf(run: LiveRun, state: RunState, looking: Looking): WaitSource {
    const { ports, dispatch } = this.#host;
    let standing: StandingStages | undefined;
    const find = (stage: StagePicture) => {
      const waiting = (): string[] => state.stages.filter(awaitsRunner).map(({ name }) => name);
      standing ??= new StandingStages(dispatch.queues, looking.orders, run, waiting());
      return standing.of(stage.name);
    };
    // Of all of its stages the same.
    let line: { readonly before: number | undefined } | undefined;
    const parked = (stage: StagePicture): Wait | undefined => {
      line ??= { before: this.#before(run.id, looking) };
      return line.before === undefined ? undefined : parkedWait(line.before, stage);
    };
    return {
      now: ports.now(),
      inTheWay: this.#inTheWay(),
      turn: () => this.#turn(state, turnOf(state), looking),
      runner: (stage) => this.#paused(state, stage) ?? parked(stage) ?? runnerWait(stage, find(stage), state),
      remainingOf: (stage, ageMs) => dispatch.lengths.remaining(stageLengthName(run, stage), ageMs),
    };
  }

  #inTheWay(): readonly Wait[] {
    const { load, cycle, ports } = this.#host;
    const waits: Wait[] = [];
    if (!mayGrant(load))
      waits.push({
        kind: 'store',
        message:
          'The journal is nearly full, since the store has not taken what was done: nothing goes to runners until it has.',
      });
    if (!this.#host.controls.areKnown)
      waits.push({
        kind: 'broker',
        message: 'The broker has not said for some seconds what is paused: nothing goes to runners until it has.',
      });
    const waitedMs = cycle.waitsSince === undefined ? 0 : ports.bootNow() - cycle.waitsSince;
    if (waitedMs >= COMMIT_SLOW_MS)
      waits.push({
        kind: 'broker',
        since: ports.now() - waitedMs,
        message: `The broker has not stored what was decided last, for ${Math.round(waitedMs / 1000)} seconds.`,
      });
    if (this.#host.isReleasing())
      waits.push({
        kind: 'broker',
        message: 'Its scheduler is handing it over to another one: it goes on in a moment.',
      });
    return waits;
  }

  /** Of a run that is held. */
  #turn(run: Pick<RunState, 'id' | 'key'>, since: number, looks: Looks): Wait {
    const place = this.#host.slots.placeOf(run.key, run.id);
    if (place === undefined)
      return { kind: 'broker', since, message: 'Its turn has come: it goes on as soon as that is stored.' };
    const { kind, goesOn, ahead, position, group = '', limit = 0 } = place;
    looks.left -= goesOn.length + ahead.length;
    const [holder] = goesOn;
    const etaMs = position - 1 === ahead.length ? this.#turnMs(kind === 'group' ? 1 : limit, goesOn, ahead) : undefined;
    return {
      kind: kind === 'group' ? 'concurrency' : 'quota',
      position,
      since,
      ...(holder === undefined ? {} : { holder }),
      ...(etaMs === undefined ? {} : { etaMs }),
      message:
        kind === 'group'
          ? `Runs of its group '${group}' go one at a time; it is number ${position} of those that wait.`
          : `No more than ${limit} of its owner's runs go at a time; it is number ${position} of those that wait.`,
    };
  }

  /** Until a place is free for it, as earlier runs of the same pipelines tell. */
  #turnMs(places: number, goesOn: readonly RunId[], ahead: readonly RunId[]): number | undefined {
    const { runs, parking, ports, dispatch } = this.#host;
    const [now, boot] = [ports.now(), ports.bootNow()];
    const pictureOf = (id: RunId) => runs.get(id)?.state ?? parking.find(id);
    const lengthOf = (id: RunId): number | undefined => {
      const run = pictureOf(id);
      return run === undefined ? undefined : dispatch.lengths.median(runLengthName(run));
    };
    const remaining = goesOn.map((id) => {
      const run = pictureOf(id);
      if (run === undefined) return undefined;
      const beganAt = runs.get(id)?.beganAt;
      const ageMs = beganAt === undefined ? now - run.createdAt : boot - beganAt;
      return dispatch.lengths.remaining(runLengthName(run), Math.max(0, ageMs));
    });
    const line = new ExpectedLine(places, remaining);
    for (const id of ahead) line.push(lengthOf(id));
    return line.nextMs;
  }

  /** An administrator holds it up. */
  #paused(run: RunState, { name, queuedAt }: StagePicture): Wait | undefined {
    const { plan } = run.stages;
    const wanted = plan.stages[plan.indexOf.get(name) ?? -1]?.wanted;
    const { labels = [] } = (run.origin.trusted === false ? wanted?.untrusted : wanted?.trusted) ?? {};
    const control = this.#host.controls.pauseOf({ key: run.key, labels });
    if (control === undefined) return undefined;
    return { kind: 'paused', since: Math.max(control.since, queuedAt ?? 0), message: pausedSentence(control) };
  }

  /** Of one that is not offered to runners: how many are to come before it. Undefined: it is offered. */
  #before(id: RunId, looks: Looks): number | undefined {
    const before = this.#host.parking.before(id, PARKED_LOOKED_AT_MAX);
    // Each of them is a look at one entry.
    looks.left -= (before ?? 0) / 10;
    return before;
  }
}

/** What an answer may still look at, and what was looked at for it. */
type Looking = Looks & { readonly orders: PickOrders };

/** There is no room in memory for all that wait. */
function parkedWait(before: number, { queuedAt }: StagePicture): Wait {
  const isFar = before === PARKED_LOOKED_AT_MAX;
  const count = isFar ? `${PARKED_LOOKED_AT_MAX} runs or more` : before === 1 ? 'one run' : `${before} runs`;
  return {
    kind: 'runner',
    ...(isFar ? {} : { position: before + 1 }),
    ...(queuedAt === undefined ? {} : { since: queuedAt }),
    message: `More runs wait for runners than the scheduler has memory for: it is offered to runners after ${count} of its owner.`,
  };
}

interface Told {
  readonly tenant: string;
  readonly run: RunWaits;
}

function storeAway({ createdAt }: ParkedRun): Wait {
  return {
    kind: 'store',
    since: createdAt,
    message: 'It waits outside of the memory of its scheduler, and the store, which has it, does not answer.',
  };
}

function runnerWait(
  { queuedAt }: StagePicture,
  standing: Standing | undefined,
  { createdAt }: Pick<RunState, 'createdAt'>,
): Wait {
  const since = queuedAt ?? createdAt;
  if (standing?.isDrained === true)
    return { kind: 'paused', since, message: 'An administrator drains every runner that could take it.' };
  if (standing?.lacking !== undefined) return { kind: 'no_runner', since, message: standing.lacking };
  const place = standing?.place;
  if (place === undefined)
    return { kind: 'runner', since, message: 'It waits for a runner, and many stages wait before it.' };
  const { position, isFull, etaMs } = place;
  const slots = standing?.slots ?? 0;
  const taken =
    slots === 1
      ? 'The one slot that could take it is not free'
      : `None of the ${slots} slots that could take it is free`;
  const full = isFull ? ' Its owner has as many slots as it may have while others wait.' : '';
  return {
    kind: 'runner',
    position,
    since,
    ...(etaMs === undefined ? {} : { etaMs }),
    message: `${taken}; it is number ${position} of those that wait.${full}`,
  };
}

function pausedSentence({ target, since, reason }: Control): string {
  const what =
    target.kind === 'all'
      ? 'all stages'
      : target.kind === 'label'
        ? `stages that ask for the label '${target.label}'`
        : 'the stages of its owner';
  const why = reason === undefined ? '' : ` (${reason})`;
  return `An administrator has paused ${what} on ${new Date(since).toISOString()}${why}; it goes on when they are resumed.`;
}

/** Without the ids of other runs; names of stages are the run's own. */
function withoutRuns(run: RunWaits): RunWaits {
  const hidden = (waits: readonly Wait[]): Wait[] =>
    waits.map(({ holder, ...wait }) => (isRunId(holder ?? '') || holder === undefined ? wait : { ...wait, holder }));
  return {
    ...run,
    waits: hidden(run.waits),
    ...(run.stages === undefined ? {} : { stages: run.stages.map(([name, waits]) => [name, hidden(waits)] as const) }),
  };
}
