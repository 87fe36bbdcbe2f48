/**
 * What must hold, by the rules of the protocols. It goes by the truth alone: what the broker has accepted, what the store
 * holds, which processes exist. It folds every run's committed events anew, independently of any owner's memory, and looks
 * at each step that depends on it. A partition whose log lost its end in a power cut is `disturbed`: what was promised on
 * lost commits is not held against anybody, but every run must still come to its end.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AttemptRef, CommittedEvents, LogEntry } from '@penstock/bus';
import {
  evolve,
  isEnded,
  closesRun,
  isSettled,
  newRun,
  planOf,
  viewOf,
  type Person,
  type RunEvent,
  type RunState,
  type StoredRunState,
  type RunView,
  type RunWaits,
  withNames,
} from '@penstock/run';
import { decodeCommit, type AttemptLogRef } from '@penstock/scheduler/testing';
import type { FoundCache } from '@penstock/artifacts';
import type { Checkpoint, EncodedRun } from '@penstock/store';
import type { Clients } from '../nodes/clients.ts';
import type { Processes } from '../nodes/processes.ts';
import { tenantsRunners } from '../nodes/fleet-door.ts';
import type { SimRunner } from '../nodes/runner-node.ts';
import type { SimScheduler } from '../nodes/scheduler-node.ts';
import { short, type Process } from '../world/attempts.ts';
import type { SimBroker } from '../world/broker.ts';
import type { SimStorage } from '../world/storage.ts';
import type { SimStore, StoredDocument } from '../world/store.ts';
import type { ToldMessage, Witness } from '../world/witness.ts';
import type { World } from '../world/world.ts';
import { checkAdded } from './added-rules.ts';
import { ControlRules } from './control-rules.ts';
import { checkEvent, checkLogEnd, checkQueued } from './event-rules.ts';
import { checkGateEvent, checkGates, mayDecide } from './gate-rules.ts';
import { DeletionRules } from './deletion-rules.ts';
import { FairSlots } from './fair-slots.ts';
import { GroupRules } from './group-rules.ts';
import { KeptRules } from './kept-rules.ts';
import { LogRules } from './log-rules.ts';
import { PartitionRules } from './partition-rules.ts';
import { checkReasons } from './reason-rules.ts';
import { checkTold } from './told-rules.ts';
import { checkWait } from './wait-rules.ts';
import { PullRules } from './pull-rules.ts';
import { QuotaRules } from './quota-rules.ts';
import { RerunRules } from './rerun-rules.ts';
import type { RunTruth } from './run-truth.ts';
import { HookRules } from './hook-rules.ts';
import { ScheduleRules } from './schedule-rules.ts';
import { SentRules } from './sent-rules.ts';
import { isTold } from './told-event.ts';

/** The parts of the world that it looks at by itself. */
interface Observed {
  readonly world: World;
  readonly broker: SimBroker;
  readonly store: SimStore;
  readonly storage: SimStorage;
  readonly processes: Processes;
  readonly schedulers: readonly SimScheduler[];
  readonly runners: readonly SimRunner[];
  readonly clients: Clients;
}

export class Oracle implements Witness {
  readonly #runs = new Map<string, RunTruth>();
  readonly #observed: Observed;
  readonly #world: World;
  readonly #partitions: PartitionRules;
  readonly #groups: GroupRules;
  readonly #spentCredits = new Set<string>();
  /** The first mark behind each attempt's log. */
  readonly #marks = new Map<string, number>();
  readonly #pulls: PullRules;
  readonly #quotas: QuotaRules;
  readonly #reruns: RerunRules;
  readonly #schedules: ScheduleRules;
  readonly #deletions: DeletionRules;
  readonly #hooks: HookRules;
  readonly #sent: SentRules;
  readonly #fairSlots: FairSlots;
  readonly #controls: ControlRules;
  readonly #logs: LogRules;
  readonly #kept: KeptRules;

  constructor(observed: Observed) {
    const { world } = observed;
    this.#observed = observed;
    this.#world = world;
    this.#pulls = new PullRules(world, this.#runs, (runId) => observed.clients.requestOf(runId));
    this.#quotas = new QuotaRules(world);
    this.#groups = new GroupRules(world, this.#runs);
    this.#reruns = new RerunRules(world, this.#runs, observed.clients);
    this.#schedules = new ScheduleRules(world);
    this.#deletions = new DeletionRules(world, this.#runs);
    this.#hooks = new HookRules(world);
    this.#partitions = new PartitionRules(world, observed.broker);
    this.#kept = new KeptRules({
      ...observed,
      runs: this.#runs,
      isDeleted: (runId) => this.isDeleted(runId),
      isDisturbed: (runId) => this.isDisturbed(runId),
    });
    this.#logs = new LogRules(observed);
    this.#controls = new ControlRules(world, observed.clients.administrators);
    this.#fairSlots = new FairSlots({ ...observed, runs: this.#runs, partitions: this.#partitions });
    this.#sent = new SentRules({ ...observed, runs: this.#runs, partitions: this.#partitions });
  }

  stateOf(runId: string): RunState | undefined {
    return this.#runs.get(runId)?.state;
  }

  gatesOf(runId: string): readonly string[] | undefined {
    const plan = this.#runs.get(runId)?.state.stages.plan;
    return plan?.gates.map((index) => plan.stages[index]?.definition.name ?? '');
  }

  mayDecide(runId: string, stage: string, person: Person): boolean {
    const run = this.#runs.get(runId);
    return run !== undefined && mayDecide(run, stage, person);
  }

  isDeleted(runId: string): boolean {
    return this.#deletions.has(runId);
  }

  isPartitionDisturbed(partition: number): boolean {
    return this.#partitions.isDisturbed(partition);
  }

  isDisturbed(runId: string): boolean {
    const run = this.#runs.get(runId);
    return run !== undefined && this.#partitions.isDisturbed(run.partition);
  }

  /** The most that the key has had in any month; undefined: its log has lost something. */
  runsOfMonth(key: string): number | undefined {
    return this.#quotas.runsOfMonth(key, (partition) => this.#partitions.isDisturbed(partition));
  }

  logMarked({ runId, runner, stage, attempt }: AttemptLogRef, sequence: number): number {
    const world = this.#world;
    const alive = this.#observed.processes.ofStage(runId, stage);
    world.check(
      this.isDisturbed(runId) || alive?.ref.attempt !== attempt,
      'P21',
      `the log of attempt ${attempt} of ${stage} is closed while its process lives`,
    );
    const first = this.#marks.get(`${runId}/${stage}/${attempt}`);
    if (first !== undefined) world.mark('log closed again');
    this.#marks.set(`${runId}/${stage}/${attempt}`, first ?? sequence);
    world.trace(
      () => `the log of ${stage}/${attempt} of run ${runId.slice(-4)} at ${runner} is closed at ${first ?? sequence}`,
    );
    return first ?? sequence;
  }

  // --- The log -------------------------------------------------------------------------------------------------------

  committed(partition: number, entry: LogEntry): void {
    const world = this.#world;
    const commit = decodeCommit(entry.bytes);
    world.trace(
      () =>
        `partition ${partition}: ${commit.kind} ${commit.number} of ${commit.owner} (epoch ${commit.epoch}) at ${entry.sequence}: ${commit.runs.map(({ id, from, events }) => `${id.slice(-4)}@${from} ${events.map(describe).join(' ')}`).join('; ')}`,
    );
    const truth = this.#partitions.committed(partition, entry.sequence, commit);
    this.#deletions.committed(partition, commit, entry.sequence, truth.disturbed);
    for (const { id, from, events } of commit.runs)
      this.#apply(id, partition, from, events, entry.sequence, truth.disturbed);
    this.#groups.order(commit);
    if (!truth.disturbed) this.#groups.checkTurns(commit);
    if (!truth.disturbed) this.#reruns.committed(commit);
    this.#schedules.committed(partition, commit, entry.sequence, truth.disturbed);
    this.#pulls.checkStep(commit, truth.disturbed);
    this.#quotas.checkStep((run) => run.state.group === undefined || this.#groups.isFirst(run), truth.disturbed);
  }

  #apply(
    id: string,
    partition: number,
    from: number,
    events: readonly RunEvent[],
    sequence: number,
    disturbed: boolean,
  ): void {
    const world = this.#world;
    let run = this.#runs.get(id);
    if (run !== undefined && disturbed && from <= run.events.length) {
      this.#runs.delete(id);
      this.#quotas.forgotten(run);
      this.#hooks.forgotten(id);
      const earlier = run.events.slice(0, from - 1);
      run = undefined;
      if (earlier.length > 0) this.#apply(id, partition, 1, earlier, sequence, true);
      run = this.#runs.get(id);
    }
    for (const [index, event] of events.entries()) {
      if (event.type === 'run_created') {
        world.check(run === undefined && from + index === 1, 'P7', `run ${id} is created twice`);
        const plan = planOf(world.definitions.truly(event));
        run = {
          id,
          partition,
          state: newRun(id, event, plan),
          events: [event],
          versions: [],
          observed: 0,
          storedVersion: 0,
          waits: new Map(),
          told: new Set(),
        };
        this.#runs.set(id, run);
        this.#hooks.happened(run);
        this.#reruns.created(run, event, disturbed);
        if (event.group !== undefined && event.held === undefined) this.#groups.join(run);
        this.#quotas.happened(run, event, this.#observed.clients.limitsOf(id), disturbed);
        continue;
      }
      if (run === undefined) {
        world.check(disturbed, 'P6', `events of run ${id}, which was never created`);
        return;
      }
      world.check(
        disturbed || from + index === run.state.version + 1,
        'P20',
        `version ${from + index} of run ${id} follows version ${run.state.version}`,
      );
      if (!disturbed) this.#checkEvent(run, event, events[index + 1]);
      const epoch = this.#partitions.of(partition).epoch;
      checkWait(run, event, { at: world.now, epoch, ...world.profile }, (message) =>
        world.check(disturbed, 'P5', message),
      );
      this.#fairSlots.happens(run, event);
      if (!disturbed) this.#controls.happens(run, event);
      try {
        evolve(run.state, event);
      } catch (error) {
        if (!disturbed) world.fail(error instanceof Error ? error : new Error(String(error)));
      }
      if (event.type === 'run_approved' && run.state.group !== undefined) this.#groups.join(run);
      run.events.push(event.type === 'stages_added' ? withNames(event) : event);
      this.#hooks.happened(run);
      this.#kept.happened(run, event, disturbed);
      this.#quotas.happened(run, event, undefined, disturbed);
      if (isSettled(run.state)) this.#groups.leave(run);
    }
    if (run !== undefined && !disturbed) {
      const { id: about } = run;
      checkGates(run, (message) => world.check(false, 'P26', `run ${about.slice(-4)}: ${message}`));
      checkQueued(run, (message) => world.check(false, 'P23', `run ${about.slice(-4)}: ${message}`));
    }
    run?.versions.push({ sequence, version: run.events.length });
  }

  #checkEvent(run: RunTruth, event: RunEvent, next: RunEvent | undefined): void {
    const world = this.#world;
    const fail = (rule: string, message: string): void =>
      world.check(false, rule, `run ${run.id.slice(-4)}: ${message}`);
    checkEvent(run, event, fail, (condition) => world.mark(condition));
    checkGateEvent(run, event, fail, (condition) => world.mark(condition));
    checkAdded(
      run,
      event,
      next,
      (stage, attempt) => world.added.of({ runId: run.id, stage, attempt }),
      (message) => fail('P29', message),
      (condition) => world.mark(condition),
    );
    this.#reruns.checkEvent(run, event, next, (message) => fail('P30', message));
    checkTold(run, event, fail);
    checkLogEnd(event, (stage, attempt) => this.#marks.get(`${run.id}/${stage}/${attempt}`), fail);
    if (event.type === 'stage_started') {
      const credit = `${event.session}/${event.credit}`;
      world.check(!this.#spentCredits.has(credit), 'P11', `credit ${credit} is taken a second time`);
      this.#spentCredits.add(credit);
      const tenant = tenantsRunners.get(event.runner) ?? run.state.tenant;
      if (tenantsRunners.has(event.runner)) world.mark("stage granted to its tenant's own runner");
      world.check(
        tenant === run.state.tenant,
        'P37',
        `stage ${event.stage} of ${run.state.tenant} goes to a runner of ${tenant}`,
      );
      const labels = this.#observed.runners.find(({ name }) => name === event.runner)?.labels ?? [];
      const stage = run.state.stages.plan.stages[run.state.stages.plan.indexOf.get(event.stage) ?? -1];
      world.check(
        stage?.definition.runsOn.every((label) => labels.includes(label)) === true,
        'P11',
        `stage ${event.stage} goes to ${event.runner}, which lacks its labels`,
      );
    }
    if ('attempt' in event && event.attempt > 0 && event.type !== 'stage_started' && event.type !== 'stage_stopping') {
      const process = this.#observed.processes.ofStage(run.id, event.stage);
      world.check(
        process === undefined,
        'P15',
        `${event.type} of attempt ${event.attempt} of ${run.id}/${event.stage}, whose process lives${process === undefined ? '' : `: ${short(process.ref)}`}`,
      );
      const lost = 'reason' in event && event.reason === 'runner_lost';
      const live = run.state.stages.get(run.state.stages.plan.indexOf.get(event.stage) ?? -1)?.live;
      if (lost && live !== undefined) {
        world.mark('attempt lost');
        world.check(
          this.#observed.broker.get('runners', `${live.runner}.${live.session}`) === undefined,
          'P5',
          `attempt ${event.attempt} of ${run.id}/${event.stage} is declared lost while the lease of ${live.session} lives`,
        );
      }
    }
  }

  acknowledged(partition: number, bytes: Uint8Array, commitId: string, sequence: number): void {
    const entry = this.#observed.broker.log(partition).findLast((candidate) => candidate.sequence === sequence);
    if (entry === undefined) return;
    this.#world.check(
      entry.commitId === commitId && entry.bytes === bytes,
      'P2',
      `commit ${commitId} is answered as stored at ${sequence}, where ${entry.commitId} stands`,
    );
  }

  lostEnd(partition: number, last: LogEntry | undefined, lost: readonly LogEntry[]): void {
    this.#partitions.lostEnd(partition, last, lost);
  }

  purged(partition: number, upTo: number): void {
    this.#partitions.purged(partition, upTo);
  }

  checkPurges(): void {
    this.#partitions.checkPurges();
  }

  // --- The store -----------------------------------------------------------------------------------------------------

  documented(document: EncodedRun): void {
    const world = this.#world;
    const run = this.#runs.get(document.id);
    if (this.#partitions.isDisturbed(document.partition) || run === undefined) {
      world.check(
        run !== undefined || this.#partitions.isDisturbed(document.partition),
        'P1',
        `a document of run ${document.id}, which was never committed`,
      );
      return;
    }
    this.#deletions.documented(run.id);
    const { state, events } = JSON.parse(document.story) as { state: StoredRunState; events: RunEvent[] };
    world.check(
      events.length <= run.events.length,
      'P1',
      `a document of run ${run.id} at version ${events.length}, committed are ${run.events.length}`,
    );
    run.storedVersion = events.length;
    if (events.length !== run.events.length) return;
    if (!run.state.pipelineName.endsWith('unrestorable'))
      world.check(
        isSameJson(state, run.state),
        'replay',
        () =>
          `the document of run ${run.id} is not what its events make: ${JSON.stringify(state)} / ${JSON.stringify(run.state)}`,
      );
    world.check(document.open || isSettled(run.state), 'P6', `the document of run ${run.id} says that it is closed`);
  }

  checkpointed({ partition, sequence }: Checkpoint): void {
    this.#partitions.checkpointed(partition, sequence);
    if (this.#partitions.isDisturbed(partition)) return;
    this.#quotas.checkpointed(partition, sequence, this.#observed.store.counters);
    this.#schedules.checkpointed(partition, sequence, this.#observed.store);
    this.#deletions.checkpointed(partition, sequence, this.#observed.store);
    for (const run of this.#runs.values()) {
      if (run.partition !== partition) continue;
      const covered = run.versions.findLast((version) => version.sequence <= sequence)?.version ?? 0;
      this.#world.check(
        run.storedVersion >= covered,
        'P6',
        `the checkpoint of partition ${partition} at ${sequence} covers version ${covered} of run ${run.id}, stored is ${run.storedVersion}`,
      );
      this.#hooks.checkpointed(run, covered, this.#observed.store);
    }
  }

  runClosed(runId: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined || this.isDisturbed(runId)) return;
    this.#world.check(isSettled(run.state), 'P6', `run ${runId} is closed before it has settled`);
    this.#world.check(
      run.storedVersion === run.events.length,
      'P6',
      `run ${runId} is closed at version ${run.events.length}, stored is ${run.storedVersion}`,
    );
  }

  // --- What is sent, said and started --------------------------------------------------------------------------------

  jobSent(ref: AttemptRef & { readonly partition: number }, epoch: number): void {
    this.#sent.job(ref, epoch);
  }

  stopSent(ref: AttemptRef): void {
    this.#sent.stop(ref);
  }

  processStarts(process: Process): void {
    this.#sent.processStarts(process);
  }

  resultAnswered(ref: AttemptRef, answer: 'committed' | 'obsolete'): void {
    this.#sent.resultAnswered(ref, answer);
  }

  runnerAnswered(asked: AttemptRef, verb: 'job' | 'stop', answer: string): void {
    this.#sent.runnerAnswered(asked, verb, answer);
  }

  workspaceRemoved(runId: string, runner: string): void {
    this.#sent.workspaceRemoved(runId, runner);
  }

  /** Events go out to watchers. */
  shown({ runId, version, events }: CommittedEvents): void {
    if (this.isDisturbed(runId)) return;
    const known = this.#runs.get(runId)?.events.length ?? 0;
    this.#world.check(version <= known, 'P1', `version ${version} of run ${runId} is shown, committed are ${known}`);
    events.forEach((event, index) => this.eventSeen(runId, version - events.length + 1 + index, event));
  }

  eventSeen(runId: string, version: number, event: RunEvent): void {
    const run = this.#runs.get(runId);
    if (run === undefined || this.isDisturbed(runId)) return;
    const truth = run.events[version - 1];
    this.#world.check(
      truth !== undefined && isTold(run, truth, event),
      'P20',
      () =>
        `version ${version} of run ${runId} is shown as ${JSON.stringify(event)}, committed is ${JSON.stringify(truth)}`,
    );
    run.observed = Math.max(run.observed, version);
  }

  told(reader: string, runId: string, told: ToldMessage): void {
    const run = this.#runs.get(runId);
    if (run !== undefined && !this.isDisturbed(runId)) this.#logs.told(reader, run, told);
  }

  /** What any client has seen of the run so far: no later answer may be older. */
  observed(runId: string): number {
    return this.#runs.get(runId)?.observed ?? 0;
  }

  waitsTold(run: RunState, waits: RunWaits): void {
    const world = this.#world;
    checkReasons(
      run,
      waits,
      world.profile.pauses > 0,
      (message) => world.check(false, 'WAITING-1', `run ${run.id}: ${message}`),
      (name) => world.mark(name),
    );
  }

  viewSeen(view: RunView, floor: number, where: string): void {
    const run = this.#runs.get(view.id);
    const world = this.#world;
    if (run === undefined || this.isDisturbed(view.id)) {
      world.check(run !== undefined, 'P1', `${where} shows run ${view.id}, which was never committed`);
      return;
    }
    world.check(
      view.version <= run.events.length,
      'P1',
      `${where} shows version ${view.version} of run ${view.id}, committed are ${run.events.length}`,
    );
    world.check(
      view.version >= floor,
      'P4',
      `${where} shows version ${view.version} of run ${view.id}, version ${floor} was seen before`,
    );
    run.observed = Math.max(run.observed, view.version);
    if (view.version === run.events.length && !run.state.pipelineName.endsWith('unrestorable')) {
      world.check(
        view.status === run.state.status && isDeepStrictEqual(view, viewOf(run.state)),
        'replay',
        () => `${where} shows run ${view.id} as ${JSON.stringify(view)}`,
      );
    }
  }

  // --- What stages keep ----------------------------------------------------------------------------------------------

  objectDeleted(key: string): void {
    this.#kept.objectDeleted(key);
  }

  changed(collection: string, before: StoredDocument | undefined, after: StoredDocument | undefined): void {
    this.#kept.changed(collection, before, after);
  }

  keptMissing(runId: string, manifest: string, why: string): void {
    this.#kept.keptMissing(runId, manifest, why);
  }

  cacheRestored(runId: string, found: FoundCache, bytes: Uint8Array): void {
    this.#kept.cacheRestored(runId, found, bytes);
  }

  // --- The end -------------------------------------------------------------------------------------------------------

  /** What is still to be done in a healed world; undefined: nothing. */
  missing(): string | undefined {
    const { store, broker } = this.#observed;
    for (const run of this.#runs.values()) {
      const document = store.documents.get(run.id);
      if (this.#partitions.isDisturbed(run.partition)) {
        if (document?.open === true) return `run ${run.id} (disturbed) is open in the store`;
        continue;
      }
      if (!isEnded(run.state.status))
        return `run ${run.id} has not ended: ${JSON.stringify(run.state.stages.filter(({ status }) => !isEnded(status)))} ${run.state.held ? '(held)' : ''}`;
      if (!isSettled(run.state))
        return `run ${run.id} has ended, but not settled: ${JSON.stringify(run.state.stages.filter(({ live }) => live !== undefined))}`;
      if (!run.events.some(closesRun)) return `the event stream of run ${run.id} has no end`;
      if (this.isDeleted(run.id)) {
        if (document !== undefined) return `run ${run.id} is deleted, and in the store`;
        continue;
      }
      if (document === undefined || document.open) return `run ${run.id} is not closed in the store`;
    }
    const unsaid = this.#quotas.missing(store.counters, (partition) => this.#partitions.isDisturbed(partition));
    if (unsaid !== undefined) return unsaid;
    const stray = this.#world.profile.keeps > 0 ? this.#kept.missing() : undefined;
    if (stray !== undefined) return stray;
    const unclosed = this.#observed.schedulers.find(({ liveRuns }) => liveRuns > 0);
    if (unclosed !== undefined) return `${unclosed.node.name} keeps ${unclosed.liveRuns} runs in memory`;
    const queued = this.#observed.schedulers.find(({ dispatch }) => dispatch.waiting > 0);
    if (queued !== undefined) return `${queued.node.name} keeps ${queued.dispatch.waiting} stages in its queues`;
    for (const { name, disk } of this.#observed.runners) {
      if (disk.results.size > 0)
        return `${name} keeps ${disk.results.size} results: ${[...disk.results.keys()].join(', ')}`;
      if (disk.workspaces.size > 0) return `${name} keeps workspaces of ${[...disk.workspaces.keys()].join(', ')}`;
    }
    for (const { name } of this.#observed.runners) {
      const leases = [...broker.all('runners').keys()].filter((key) => key.startsWith(`${name}.`));
      if (leases.length > 1) return `${name} keeps the leases of ${leases.length} sessions: ${leases.join(', ')}`;
    }
    if (this.#observed.processes.count > 0) return `${this.#observed.processes.count} processes live`;
    return this.#observed.clients.missing();
  }

  checkEnd(): void {
    const world = this.#world;
    for (const run of this.#runs.values()) {
      if (this.#partitions.isDisturbed(run.partition) || this.isDeleted(run.id)) continue;
      const events = this.#observed.store.events(run.id);
      world.check(
        events?.length === run.events.length &&
          run.events.every((event, index) => isTold(run, event, events[index] as RunEvent)),
        'replay',
        `the stored events of run ${run.id} are not the committed ones`,
      );
      world.check(
        this.#observed.store.view(run.id)?.status === run.state.status,
        'replay',
        `run ${run.id} is stored as ${this.#observed.store.view(run.id)?.status ?? 'nothing'}, it is ${run.state.status}`,
      );
      world.mark(`run ended ${run.state.status}`);
      if (run.state.outcome !== undefined) world.mark(`run ended ${run.state.outcome}`);
    }
  }
}

function describe(event: RunEvent): string {
  if (event.type === 'stages_queued') return `queued(${event.stages.join(',')})`;
  return 'stage' in event
    ? `${event.type}(${event.stage}${'attempt' in event ? `#${event.attempt}` : ''}${'reason' in event && event.reason !== undefined ? ` ${event.reason}` : ''})`
    : event.type;
}

/** Whether what was read is what would be written of this state; the texts alone nearly always tell. */
function isSameJson(read: StoredRunState, truth: RunState): boolean {
  const text = JSON.stringify(truth);
  return JSON.stringify(read) === text || isDeepStrictEqual(read, JSON.parse(text));
}
