/**
 * How a run comes to be in its partition: whether its id is free (P7), whether there is room for it, and its first decision.
 * Owns nothing: the run goes to its partition, what it takes to the counts and the concurrency slots of its key.
 */
import type { CreateReply, CreateRequest, OwnerRefusal } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { adoptionsOf, spares, viewOf, type RunCommand, type RunId, type TakenStage } from '@penstock/run';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import { isBehind, refOf, type PullRequests } from '../admission/pull-requests.ts';
import { BadPipeline, type DefinitionSource } from '../run/definitions.ts';
import { COMMIT_RUNS_MAX } from '../run/commit.ts';
import type { LiveRun } from '../run/live-run.ts';
import { mayPark } from '../run/parked-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import type { HeldBytes } from '../run/held-bytes.ts';
import { isKeyFull, overloadOf, type SchedulerLoad } from '../run/scheduler-load.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { limitOf, MonthUsedUp, newRunOf, supersededRequest, type NewRun } from './new-run.ts';
import type { Parents } from './parents.ts';
import type { Parking } from './parking.ts';
import type { PartitionSettings } from './partition-settings.ts';
import type { Reads } from './reads.ts';
import { refusal, unavailable } from './refusals.ts';
import type { RememberedIds } from './remembered-ids.ts';
import { RerunRefused } from './rerun.ts';

/** Of older heads, as many as the commit of the new one has room for: whoever owns its run finds them cancelled (P27). */
const HEADS_CANCELLED_AT_ONCE = COMMIT_RUNS_MAX - 1;

type Reply = (reply: CreateReply) => void;

export interface RunCreationDependencies {
  readonly settings: PartitionSettings;
  readonly ports: Pick<PartitionPorts, 'isStored' | 'headInStore'>;
  readonly load: SchedulerLoad;
  readonly held: Pick<HeldBytes, 'ofKey'>;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly parking: Pick<Parking, 'isWanted' | 'park' | 'find' | 'read'>;
  readonly ids: Pick<RememberedIds, 'has' | 'mayBeStored'>;
  readonly slots: ConcurrencySlots;
  readonly counts: KeyCounts;
  readonly pulls: PullRequests;
  readonly cycle: CommitCycle;
  readonly reads: Pick<Reads, 'whenCommitted'>;
  now(): number;
  /** Whether the partition still decides. */
  accepts(): boolean;
  /** Whether it is sure to be the owner (P4). */
  mayAnswer(): boolean;
  /** Takes a new run into memory. */
  remember(run: LiveRun): void;
  /** Tells a new run its first command; its creation and what it decides join the next commit. */
  begin(run: LiveRun, start: RunCommand): void;
  readonly parents: Pick<Parents, 'read'>;
  /** What a rerun takes over from its parent, as much as a commit holds in each list. */
  adopt(run: LiveRun, lists: readonly (readonly TakenStage[])[]): void;
  /** A newer run of its group takes its place: it is cancelled, in memory at once. */
  supersede(runIds: readonly RunId[]): void;
  /** A newer head of its pull request takes its place. */
  cancel(run: LiveRun): void;
  giveUp(run: LiveRun): void;
  bootNow(): number;
  /** Something may follow from what was decided. */
  advance(): void;
}

export class RunCreation {
  readonly #partition: RunCreationDependencies;

  constructor(partition: RunCreationDependencies) {
    this.#partition = partition;
  }

  /** `definitions`: where the meaning of this request's text stands. */
  create(request: CreateRequest, reply: Reply, definitions: DefinitionSource): void {
    const { runs, parking, ids, ports, settings, now, accepts } = this.#partition;
    const { epoch } = settings;
    if (!accepts()) return;
    const known = runs.get(request.runId);
    if (known !== undefined) {
      this.#answerKnown(known, request, reply);
      return;
    }
    if (parking.find(request.runId) !== undefined) {
      parking.read(request.runId, (run) => {
        if (run === 'unavailable') reply(unavailable(epoch, 'the store does not answer'));
        // It may be back by now, and more than what was read.
        else if (parking.find(request.runId) === undefined) this.create(request, reply, definitions);
        else this.#answerKnown(run, request, reply);
      });
      return;
    }
    if (this.#asksForHead(request, reply, definitions)) return;
    if (!ids.mayBeStored(request.runId, now())) {
      this.#createNew(request, reply, definitions);
      return;
    }
    ports.isStored(request.runId, (stored) => {
      if (!accepts()) return;
      // What the store was asked before another's request made the run may come after that has left memory again.
      if (runs.has(request.runId) || parking.find(request.runId) !== undefined)
        this.create(request, reply, definitions);
      else if (stored === 'unavailable') reply(unavailable(epoch, 'the store does not answer'));
      else if (stored || ids.has(request.runId)) reply({ ok: true, created: false, epoch, run: null });
      else this.#createNew(request, reply, definitions);
    });
  }

  /**
   * A run that the partition makes by itself, of an id that nobody has; its creation stands in a commit to come. Undefined: there is
   * no room for it now. Throws BadPipeline, MonthUsedUp and Unavailable.
   */
  createOwn(request: CreateRequest, definitions: DefinitionSource): LiveRun | undefined {
    if (this.#noRoomFor(request) !== undefined) return undefined;
    const { settings, slots, counts, now } = this.#partition;
    const { run } = newRunOf(request, { now: now(), settings, definitions, slots, counts });
    this.#take(run, request);
    return run;
  }

  /** PULLS-2. True: the store is asked, and the request comes again. */
  #asksForHead(request: CreateRequest, reply: Reply, definitions: DefinitionSource): boolean {
    const { pulls, ports, settings, accepts } = this.#partition;
    const of = refOf(request);
    if (of === undefined || pulls.head(of) !== undefined) return false;
    ports.headInStore(of, (head) => {
      if (!accepts()) return;
      if (head === 'unavailable') {
        reply(unavailable(settings.epoch, 'the store does not answer'));
        return;
      }
      pulls.learned(of, head);
      this.create(request, reply, definitions);
    });
    return true;
  }

  #answerKnown(run: LiveRun, { key, tenant }: CreateRequest, reply: Reply): void {
    const { reads, settings } = this.#partition;
    const { epoch } = settings;
    if (run.state.key !== key || run.state.tenant !== tenant)
      reply(refusal(epoch, 'CONFLICT', 'another run has this id'));
    else reads.whenCommitted(run, () => reply({ ok: true, created: false, epoch, run: viewOf(run.committedState()) }));
  }

  #createNew(request: CreateRequest, reply: Reply, definitions: DefinitionSource): void {
    if (request.rerun === undefined) this.#createOf(request, reply, definitions, undefined);
    else this.#rerun(request, request.rerun.parent, reply, definitions);
  }

  /** The run that it repeats is read first (P30). */
  #rerun(request: CreateRequest, parentId: RunId, reply: Reply, definitions: DefinitionSource): void {
    const { parents, runs, parking, ids, settings, accepts, mayAnswer } = this.#partition;
    const { epoch } = settings;
    parents.read(parentId, request.key, (parent) => {
      if (!accepts()) return;
      // The same may have been asked for meanwhile.
      if (runs.has(request.runId) || parking.find(request.runId) !== undefined || ids.has(request.runId))
        this.create(request, reply, definitions);
      else if (parent === 'unavailable') reply(unavailable(epoch, 'the run that is to run again cannot be read now'));
      else if (parent !== null) this.#createOf(request, reply, definitions, parent);
      // What is not here is a read like any other: an owner that was frozen may have missed the run (P4).
      else if (mayAnswer()) reply(refusal(epoch, 'NOT_FOUND', 'there is no such run'));
    });
  }

  #createOf(request: CreateRequest, reply: Reply, definitions: DefinitionSource, parent: LiveRun | undefined): void {
    const { settings, pulls, cycle, cancel, advance } = this.#partition;
    const { epoch } = settings;
    const refused = this.#noRoomFor(request);
    if (refused !== undefined) {
      reply(refused);
      return;
    }
    const made = this.#newRun(request, reply, definitions, parent);
    if (made === undefined) return;
    const { run } = made;
    const superseded = isNewHead(run, made.request) ? pulls.supersededBy(run) : [];
    if (superseded.length > HEADS_CANCELLED_AT_ONCE) {
      // An owner that comes between could not tell that the rest is superseded: the head is created with the last of them.
      for (const each of superseded.slice(0, HEADS_CANCELLED_AT_ONCE)) cancel(each);
      cycle.whenAllCommitted(() => this.create(request, reply, definitions));
      advance();
      return;
    }
    this.#take(run, made.request, superseded);
    const { rerun } = made;
    if (rerun !== undefined) this.#partition.adopt(run, adoptionsOf(rerun.parent, run.state, rerun.grown) ?? []);
    cycle.whenCommitted(run, () => reply({ ok: true, created: true, epoch, run: viewOf(run.committedState()) }));
    advance();
  }

  /** Undefined: it is refused, and answered so. */
  #newRun(
    request: CreateRequest,
    reply: Reply,
    definitions: DefinitionSource,
    parent: LiveRun | undefined,
  ): (NewRun & { readonly request: CreateRequest }) | undefined {
    const { settings, slots, counts, pulls, runs, parking, now } = this.#partition;
    const isLive = (id: RunId): boolean => runs.get(id)?.settled === false || parking.find(id) !== undefined;
    const repeats = parent && { parent, isLive };
    const of = refOf(request);
    const head = of && pulls.head(of);
    try {
      const isSuperseded = head !== undefined && isBehind(request.origin, head);
      const wanted = isSuperseded ? supersededRequest(request, definitions) : request;
      return { request: wanted, ...newRunOf(wanted, { now: now(), settings, definitions, slots, counts, repeats }) };
    } catch (error) {
      if (error instanceof RerunRefused) reply(refusal(settings.epoch, error.code, error.message));
      else if (error instanceof BadPipeline) reply(refusal(settings.epoch, 'BAD_USER_INPUT', error.message));
      else if (error instanceof Unavailable) reply(unavailable(settings.epoch, error.message));
      else if (error instanceof MonthUsedUp) this.#answerMonthUsedUp(error, reply);
      else throw error;
      return undefined;
    }
  }

  /** `superseded`: the older heads whose place it takes; none for what is no new head. */
  #take(run: LiveRun, { limits, ended }: CreateRequest, superseded: readonly LiveRun[] = []): void {
    const { parking, slots, counts, pulls, remember, begin, supersede, cancel, giveUp, bootNow } = this.#partition;
    const { key, group, createdAt: at, awaitsApproval, lineage } = run.state;
    const supersedes = awaitsApproval !== true && run.definition.concurrency?.cancelInProgress === true;
    const isWantedOutside = (isHeld: boolean): boolean => mayPark(run) && parking.isWanted(key, isHeld);
    const waitsOutside = { going: isWantedOutside(false), held: isWantedOutside(true) };
    const before = group === undefined ? [] : slots.members(key, group);
    remember(run);
    counts.counts(run);
    pulls.enter(run, bootNow());
    slots.setLimit(key, limitOf(limits?.maxConcurrent));
    if (ended === undefined && awaitsApproval === undefined) {
      const held = slots.enter(run);
      const isHeld = held !== undefined;
      if (isHeld ? waitsOutside.held : waitsOutside.going) parking.park(run, isHeld);
      begin(run, { type: 'start', at, held });
    } else {
      slots.enterApart(run);
      begin(run, { type: 'start', at, ended });
    }
    const tooMany = awaitsApproval === true ? pulls.tooMany(run) : undefined;
    if (tooMany !== undefined) giveUp(tooMany);
    for (const each of superseded) if (!each.ended) cancel(each);
    if (supersedes) supersede(before.filter((id) => !spares(lineage, id)));
  }

  /** What is committed says so, and an owner that is sure to be it: what used the month up may never come to be (P4). */
  #answerMonthUsedUp({ message, retryAfterSecs }: MonthUsedUp, reply: Reply): void {
    const { cycle, settings, mayAnswer } = this.#partition;
    cycle.whenAllCommitted(() => {
      if (mayAnswer()) reply({ ...refusal(settings.epoch, 'QUOTA_EXCEEDED', message), retryAfterSecs });
    });
  }

  #noRoomFor({ key }: CreateRequest): OwnerRefusal | undefined {
    const { load, held, slots, settings, cycle } = this.#partition;
    const { epoch, liveRunsPerKeyMax } = settings;
    const overload = overloadOf(load);
    if (overload !== undefined) return unavailable(epoch, overload);
    if (slots.liveRuns(key) >= liveRunsPerKeyMax) return unavailable(epoch, `too many runs of '${key}' are live`);
    if (isKeyFull(load, held.ofKey(key)))
      return unavailable(epoch, `the live runs of '${key}' take all the memory that a key may have`);
    return cycle.isTooSlow ? unavailable(epoch, 'the journal is too slow') : undefined;
  }
}

/** Whether it takes the place of older heads. A rerun is no new head: it leaves the others of its pull request alone. */
function isNewHead({ state }: LiveRun, { keepsSuperseded, ended }: CreateRequest): boolean {
  return ended?.status !== 'CANCELLED' && keepsSuperseded !== true && state.lineage === undefined;
}
