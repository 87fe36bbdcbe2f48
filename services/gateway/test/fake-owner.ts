/**
 * The owner of all partitions, as far as a gateway can tell: it answers on the real broker from runs in its memory, and
 * a test says what happens to them. What it commits is folded by the real `evolve`.
 */
import { createHash } from 'node:crypto';
import {
  subjects,
  type Bus,
  type BusSubscription,
  type ApproveReply,
  type ApproveRequest,
  type CancelReply,
  type CancelRequest,
  type Committing,
  type CreateReply,
  type CreateRequest,
  type DecideReply,
  type DecideRequest,
  type DeleteReply,
  type DeleteRequest,
  type GetReply,
  type GetRequest,
  type WatchReply,
  type WatchRequest,
  type WaitsReply,
  type WaitsRequest,
} from '@penstock/bus';
import { parsePipeline, resolveInputs, type ParseResult } from '@penstock/pipeline';
import {
  adoptionOf,
  adoptionsOf,
  bitsOf,
  evolve,
  isEnded,
  matchesFilter,
  newRun,
  partitionOf,
  planOf,
  viewOf,
  waitsOf,
  type Lineage,
  type Plan,
  type RunCreated,
  type RunEvent,
  type RunState,
  type TriggerOrigin,
} from '@penstock/run';
import { RunActor } from '@penstock/run/machine';
import type { RunDocument, RunsRepository } from '@penstock/store';

/** A run that others wait for. */
export const HOLDER = '0192f0c1-2b3c-7abc-8def-0123456789ab';

interface OwnedRun {
  readonly plan: Plan;
  readonly state: RunState;
  readonly events: RunEvent[];
}

export class FakeOwner {
  epoch = 1;
  /** Answers nothing to these verbs, as an owner that is frozen. */
  readonly mute = new Set<string>();
  /** Refuses these verbs. */
  readonly refusals = new Map<
    string,
    { code: 'UNAVAILABLE' | 'QUOTA_EXCEEDED' | 'CONFLICT'; message: string; retryAfterSecs?: number }
  >();
  /** The verb of every request, in order. */
  readonly asked: string[] = [];
  /** Something that happens while a view is asked for. */
  beforeGet: (() => Promise<void>) | undefined;
  /** Answers a `create` as one that has let the run go. */
  hasLetGo = false;
  /** Something that happens while a run's events are asked for. */
  beforeWatch: (() => void) | undefined;
  readonly created: CreateRequest[] = [];
  /** The tenants with which waits were asked for. */
  readonly waitsAskedBy: (readonly string[])[] = [];
  /** Runs whose waits it tells in one answer. */
  waitsAtOnce = Infinity;
  /** Called for a new run, before its answer is sent. */
  onCreate: (runId: string) => void = () => {};
  /** The number of events in one answer to `watch`. */
  watchPage = Infinity;
  readonly #bus: Bus;
  readonly #store: RunsRepository;
  readonly #partitions: number;
  readonly #runs = new Map<string, OwnedRun>();
  #subscriptions: BusSubscription[] = [];
  #sequence = 1;
  #commits = 0;
  readonly #changes = new Map<string, number>();

  constructor(bus: Bus, store: RunsRepository, partitions: number) {
    this.#bus = bus;
    this.#store = store;
    this.#partitions = partitions;
  }

  async open(): Promise<void> {
    for (let partition = 0; partition < this.#partitions; partition++) {
      this.#subscriptions.push(
        this.#bus.respond<CreateRequest, CreateReply>(
          subjects.owner(partition, 'create'),
          this.#answer('create', (request) => this.#create(request)),
        ),
        this.#bus.respond<CancelRequest, CancelReply>(
          subjects.owner(partition, 'cancel'),
          this.#answer('cancel', (request) => this.#cancel(request)),
        ),
        this.#bus.respond<ApproveRequest, ApproveReply>(
          subjects.owner(partition, 'approve'),
          this.#answer('approve', (request) => this.#approve(request)),
        ),
        this.#bus.respond<DecideRequest, DecideReply>(
          subjects.owner(partition, 'decide'),
          this.#answer('decide', (request) => this.#decide(request)),
        ),
        this.#bus.respond<DeleteRequest, DeleteReply>(
          subjects.owner(partition, 'delete'),
          this.#answer('delete', (request) => this.#delete(partition, request)),
        ),
        this.#bus.respond<GetRequest, GetReply>(
          subjects.owner(partition, 'get'),
          this.#answer('get', async (request) => {
            await this.beforeGet?.();
            return this.#get(request);
          }),
        ),
        this.#bus.respond<WatchRequest, WatchReply>(
          subjects.owner(partition, 'watch'),
          this.#answer('watch', (request) => {
            this.beforeWatch?.();
            return this.#watch(request);
          }),
        ),
        this.#bus.respond<WaitsRequest, WaitsReply>(
          subjects.owner(partition, 'waits'),
          this.#answer('waits', (request) => this.#waitsOf(request)),
        ),
      );
    }
    this.#subscriptions.push(this.#bus.respond<null, Committing>(subjects.committing, () => ({ scheduler: 'fake' })));
    await this.#bus.flush();
  }

  /** Nobody answers any more: "no responders". */
  async leave(): Promise<void> {
    for (const subscription of this.#subscriptions) subscription.stop();
    this.#subscriptions = [];
    await this.#bus.flush();
  }

  announce(): void {
    for (let partition = 0; partition < this.#partitions; partition++)
      this.#bus.publish(subjects.opened(partition), { partition, epoch: this.epoch, owner: 'fake' });
  }

  /** Commits events of a run, and tells the watchers unless `silently`. */
  commit(runId: string, events: readonly RunEvent[], options: { readonly silently?: boolean } = {}): void {
    const run = this.#run(runId);
    for (const event of events) {
      run.events.push(event);
      evolve(run.state, event);
    }
    this.#changes.set(run.state.tenant, (this.#commits += 1));
    if (options.silently !== true) this.tell(runId, run.events.length - events.length + 1);
  }

  /** Tells the watchers the events from this version on. */
  tell(runId: string, first: number, epoch = this.epoch): void {
    const { events, state } = this.#run(runId);
    const { tenant, pipelineName, status, origin } = state;
    const { provider, repository } = origin;
    this.#bus.publish(subjects.events(runId), {
      runId,
      epoch,
      version: events.length,
      events: events.slice(first - 1),
      run: { tenant, pipelineName, status, ...(repository === undefined ? {} : { provider, repository }) },
    });
  }

  /** Puts the run's document into the store; with `keep` it also stays in memory. */
  async project(runId: string, options: { readonly keep?: boolean } = {}): Promise<void> {
    await this.#store.saveBatch([this.document(runId)]);
    if (options.keep !== true) this.#runs.delete(runId);
  }

  document(runId: string): RunDocument {
    const { state, events } = this.#run(runId);
    return {
      partition: partitionOf(runId, this.#partitions),
      open: false,
      incarnation: 1,
      sequence: this.#sequence++,
      state,
      events,
      view: viewOf(state),
    };
  }

  /** As of a run that has left its memory and was deleted. */
  forget(runId: string): void {
    this.#runs.delete(runId);
  }

  /** As if it had been created by a trigger. */
  adopt(
    runId: string,
    yaml: string,
    tenant = 'service',
    origin: TriggerOrigin = { kind: 'api' },
    held?: 'approval',
  ): void {
    const reply = this.#create({ runId, tenant, key: `${tenant}/demo`, yaml, origin, held });
    if (!reply.ok || reply.run === null) throw new Error('not created');
  }

  /** As the ingest creates what comes of a delivery that is decided anew. */
  repeat(parent: string, runId: string, yaml: string): void {
    const [tenant, origin] = ['service', { kind: 'webhook' } as const];
    this.#create({ runId, tenant, key: `${tenant}/demo`, yaml, origin, rerun: { parent } });
  }

  /** As an owner would without any runner, whose queues are empty. */
  #waitsOf({ runIds, tenants }: WaitsRequest): WaitsReply {
    this.waitsAskedBy.push(tenants);
    const held = {
      kind: 'quota',
      holder: HOLDER,
      position: 1,
      etaMs: 1_200,
      message: 'It waits for its turn.',
    } as const;
    const rest = runIds.slice(this.waitsAtOnce);
    const runs = runIds
      .slice(0, this.waitsAtOnce)
      .flatMap((id) => this.#runs.get(id) ?? [])
      .map(({ state }) =>
        waitsOf(state, {
          now: Date.now(),
          inTheWay: [],
          turn: () => held,
          runner: () => ({ kind: 'no_runner', message: 'No runner is connected.' }),
          remainingOf: () => undefined,
        }),
      );
    return { ok: true, epoch: this.epoch, runs, ...(rest.length === 0 ? {} : { rest }) };
  }

  #run(runId: string): OwnedRun {
    const run = this.#runs.get(runId);
    if (run === undefined) throw new Error(`the fake owner has no run ${runId}`);
    return run;
  }

  #answer<Req, Rep>(
    verb: string,
    handle: (request: Req) => Rep | Promise<Rep>,
  ): (request: Req, call: { drop(): void }) => Promise<Rep> {
    return async (request, call) => {
      this.asked.push(verb);
      const refusal = this.refusals.get(verb);
      if (refusal !== undefined) return { ok: false, epoch: this.epoch, ...refusal } as Rep;
      if (!this.mute.has(verb)) return handle(request);
      call.drop();
      return new Promise<Rep>(() => {});
    };
  }

  #create(request: CreateRequest): CreateReply {
    this.created.push(request);
    const known = this.#runs.get(request.runId);
    if (known !== undefined) return { ok: true, created: false, epoch: this.epoch, run: viewOf(known.state) };
    const none: ParseResult = { ok: true, definition: { name: 'none', schedule: [], stages: [] } };
    const parsed =
      request.yaml === ''
        ? none
        : parsePipeline(request.yaml, { template: true, extensions: request.extensions ?? [] });
    if (!parsed.ok) throw new Error('the gateway let a bad file pass');
    const plan = planOf(parsed.definition);
    const { tenant, key, yaml, origin } = request;
    const repeated = request.rerun === undefined ? undefined : this.#runs.get(request.rerun.parent);
    const adoption = repeated && adoptionOf(repeated, plan, request.rerun ?? {});
    if (adoption?.ok === false) return { ...adoption, epoch: this.epoch };
    const declared = new Set(parsed.definition.inputs?.map(({ name }) => name));
    const inherited = Object.entries(repeated?.state.inputs ?? {}).filter(([name]) => declared.has(name));
    const inputs = resolveInputs(parsed.definition, new Map([...inherited, ...(request.inputs ?? [])]));
    if (!inputs.ok) throw new Error('the gateway let bad inputs pass');
    const created: RunCreated = {
      type: 'run_created',
      at: Date.now(),
      tenant,
      key,
      yaml,
      origin,
      ...(parsed.definition.inputs === undefined ? {} : { inputs: inputs.values }),
      fingerprint: createHash('sha256').update(yaml).digest('hex'),
      pipelineName: parsed.definition.name,
      priority: request.priority ?? 0,
      ...(request.held === undefined ? {} : { held: request.held }),
      ...(repeated === undefined ? {} : { lineage: lineageOf(repeated, adoption?.stages ?? []) }),
    };
    const run: OwnedRun = { plan, state: newRun(request.runId, created, plan), events: [created] };
    this.#runs.set(request.runId, run);
    this.#changes.set(tenant, (this.#commits += 1));
    for (const adopted of (repeated && adoptionsOf(repeated, run.state)) ?? [])
      this.commit(request.runId, [{ type: 'stages_adopted', at: Date.now(), adopted }], { silently: true });
    this.onCreate(request.runId);
    return { ok: true, created: true, epoch: this.epoch, run: this.hasLetGo ? null : viewOf(run.state) };
  }

  #cancel(request: CancelRequest): CancelReply {
    const run = this.#runs.get(request.runId);
    if (run === undefined || !request.tenants.includes(run.state.tenant))
      return { ok: false, code: 'NOT_FOUND', message: 'no such run', epoch: this.epoch };
    if (run.state.finishedAt !== undefined)
      return { ok: false, code: 'CONFLICT', message: 'it has ended', epoch: this.epoch };
    const cancelledStages = run.state.openStages;
    this.commit(request.runId, [{ type: 'run_cancelled', at: Date.now(), cancelledStages }]);
    if (run.state.liveAttempts === 0)
      this.commit(request.runId, [{ type: 'run_stopped', at: Date.now(), status: 'CANCELLED', cancelledStages }]);
    return { ok: true, epoch: this.epoch, cancelledStages, run: viewOf(run.state) };
  }

  #approve({ runId, tenants, by }: ApproveRequest): ApproveReply {
    const run = this.#runs.get(runId);
    if (run === undefined || !tenants.includes(run.state.tenant))
      return { ok: false, code: 'NOT_FOUND', message: 'no such run', epoch: this.epoch };
    if (run.state.awaitsApproval !== true)
      return { ok: false, code: 'CONFLICT', message: 'the run does not wait for an approval', epoch: this.epoch };
    this.commit(runId, [{ type: 'run_approved', at: Date.now(), by }]);
    return { ok: true, epoch: this.epoch, run: viewOf(run.state) };
  }

  /** Of a run that is in the store alone. */
  async #delete(partition: number, { runId, tenants }: DeleteRequest): Promise<DeleteReply> {
    const { epoch } = this;
    const run = this.#runs.get(runId);
    if (run !== undefined && !isEnded(run.state.status))
      return { ok: false, code: 'CONFLICT', message: 'the run has not ended', epoch };
    const standing = await this.#store.standingOf(runId);
    if (standing === null || !tenants.includes(standing.tenant))
      return { ok: false, code: 'NOT_FOUND', message: 'no such run', epoch };
    const sequence = this.#sequence++;
    await this.#store.saveTombstones([
      { id: runId, partition, ...standing, deletedAt: Date.now(), incarnation: 1, sequence },
    ]);
    return { ok: true, epoch };
  }

  /** By the real machine. */
  #decide({ runId, stage, decision, comment, person }: DecideRequest): DecideReply {
    const run = this.#runs.get(runId);
    if (run === undefined) return { ok: false, code: 'NOT_FOUND', message: 'no such run', epoch: this.epoch };
    const actor = new RunActor({ run: run.state, settings: { queueTimeoutMs: 60_000 } });
    const given = { stage, decision, comment, person: person.id, by: person.by };
    const decided = actor.tell({ type: 'decide-gate', at: Date.now(), ...given });
    if (decided === undefined)
      return { ok: false, code: 'CONFLICT', message: 'the stage is decided', epoch: this.epoch };
    run.events.push(...decided.events);
    this.tell(runId, run.events.length - decided.events.length + 1);
    return { ok: true, epoch: this.epoch, run: viewOf(run.state) };
  }

  #get(request: GetRequest): GetReply {
    const found = new Set(request.runIds.flatMap((id) => this.#runs.get(id) ?? []));
    const theirs = [...this.#runs.values()]
      .filter(({ state }) => request.tenants?.includes(state.tenant) ?? false)
      .filter(({ state }) => request.before === undefined || state.id < request.before)
      .filter(({ state }) => matchesFilter({ ...state.origin, ...state }, request.filter ?? {}))
      .sort((a, b) => (a.state.id < b.state.id ? 1 : -1));
    for (const run of theirs.slice(0, request.newest ?? 0)) found.add(run);
    const changed = Math.max(0, ...(request.changesOf ?? []).map((tenant) => this.#changes.get(tenant) ?? 0));
    return { ok: true, epoch: this.epoch, runs: [...found].map(({ state }) => viewOf(state)), changed };
  }

  #watch({ runId, after }: WatchRequest): WatchReply {
    const run = this.#runs.get(runId);
    if (run === undefined) return { ok: true, epoch: this.epoch, run: null };
    const events = run.events.slice(after, after + this.watchPage);
    return {
      ok: true,
      epoch: this.epoch,
      run: {
        tenant: run.state.tenant,
        version: run.events.length,
        events,
        more: after + events.length < run.events.length,
      },
    };
  }
}

function lineageOf({ state, events }: OwnedRun, adopted: readonly number[]): Lineage {
  const { id, lineage } = state;
  return { parent: id, version: events.length, root: lineage?.root ?? id, actors: [], adopts: bitsOf(adopted) };
}
