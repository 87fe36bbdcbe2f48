/**
 * Gateways and their clients: they create (also twice, also again after no answer), cancel, read and watch, and hold what
 * they are answered against the oracle. A gateway drops what comes from a lower epoch than it has seen (P4).
 */
import {
  type ApproveReply,
  type CancelReply,
  type CreateReply,
  type CreateRequest,
  type GetReply,
} from '@penstock/bus';
import { isEnded, newRunId, partitionOf } from '@penstock/run';
import type { Network } from '../world/network.ts';
import { drawPipeline } from '../world/pipelines.ts';
import { lastsHours } from '../world/profile.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import { TENANT } from './fleet-door.ts';
import type { NodeDependencies } from './dependencies.ts';
import { Administrators } from './administrators.ts';
import { GateVisitors } from './gate-visitors.ts';
import { LogWatchers } from './log-watchers.ts';
import { KeptReaders } from './kept-readers.ts';
import { OwnerRequests } from './owner-requests.ts';
import { RunDeleters } from './run-deleters.ts';
import { RunWatchers } from './run-watchers.ts';
import { ScheduleWriters } from './schedule-writers.ts';
import { PullRequestDraws } from './pull-request-draws.ts';
import { RerunDraws } from './rerun-draws.ts';

/** No shorter file is too large for a commit. */
const TOO_LARGE_FROM = 400_000;
const EARLY_MS = 10 * 60 * 1000;
const OLD_ID_MS = 2 * 60 * 60 * 1000;
const UNLIMITED = 2_147_483_647;
const ENDS = [
  { status: 'SKIPPED' },
  { status: 'FAILED', reason: 'checkout' },
  { status: 'FAILED', reason: 'pipeline_file' },
] as const;

/** Of reruns: asking again does not help. */
const REFUSED_FOR_GOOD: ReadonlySet<string> = new Set(['BAD_USER_INPUT', 'CONFLICT', 'NOT_FOUND']);

export type Limits = NonNullable<CreateRequest['limits']>;

interface Intent {
  request: CreateRequest;
  readonly partition: number;
  /** Answered with success. */
  acknowledged: boolean;
  /** To be deleted once it has ended. */
  readonly isDoomed: boolean;
  /** Creates under way or to be tried again. */
  pending: number;
}

export class Clients {
  readonly #world: World;
  readonly #network: Network;
  readonly #owners: OwnerRequests;
  readonly #logWatchers: LogWatchers;
  readonly #gateVisitors: GateVisitors;
  readonly #scheduleWriters: ScheduleWriters;
  readonly #deleters: RunDeleters;
  readonly administrators: Administrators;
  readonly #gateways: readonly SimNode[];
  /** Of each runner; a stage asks for some that one of them has. */
  readonly #labels: readonly (readonly string[])[];
  readonly #intents: Intent[] = [];
  readonly #watchers: RunWatchers;
  /** Of keys, as last drawn. */
  readonly #limits = new Map<string, Limits>();
  readonly #onQuota = new Map<string, 'send as ended' | 'give up'>();
  readonly #pullRequests: PullRequestDraws;
  readonly #reruns: RerunDraws;
  readonly #keptReaders: KeptReaders;
  /** Runs that somebody has wanted cancelled. */
  readonly #cancelAsked = new Set<string>();

  constructor(dependencies: NodeDependencies, gateways: readonly SimNode[], labels: readonly (readonly string[])[]) {
    const { world, network, exchange } = dependencies;
    this.#owners = new OwnerRequests(world, exchange);
    this.#logWatchers = new LogWatchers(dependencies, this.#owners, gateways);
    this.#watchers = new RunWatchers(dependencies, this.#owners, gateways);
    this.#gateVisitors = new GateVisitors({
      world,
      owners: this.#owners,
      gateways,
      runs: () => this.#intents.map(({ request, partition }) => ({ runId: request.runId, partition })),
    });
    this.#scheduleWriters = new ScheduleWriters({ world, owners: this.#owners, gateways, labels });
    this.#deleters = new RunDeleters({ world, owners: this.#owners, gateways });
    this.administrators = new Administrators({ world, network, gateways, labels });
    this.#world = world;
    this.#network = network;
    this.#gateways = gateways;
    this.#labels = labels;
    this.#pullRequests = new PullRequestDraws(world);
    this.#reruns = new RerunDraws(world);
    this.#keptReaders = new KeptReaders(dependencies, gateways);
  }

  start(): void {
    const { profile, random } = this.#world;
    this.#watchers.start();
    // Several at once now and then: they share a commit.
    let at = profile.quietMs;
    for (let index = 0; index < profile.runs; index++) {
      if (random.chance(0.6)) at = profile.quietMs + random.between(0, this.#spreadMs());
      this.#world.after(at, () => this.#newRun(index));
    }
    this.#readLater();
    if (profile.gates > 0) this.#gateVisitors.begin();
    this.#scheduleWriters.start();
    this.administrators.start();
    if (profile.keeps > 0) this.#keptReaders.start(() => this.#intents.map(({ request }) => request));
  }

  /** Over hours most runs come at the beginning: where they were is quiet for long. */
  #spreadMs(): number {
    const { profile, random } = this.#world;
    if (!lastsHours(profile)) return profile.illMs * 0.8;
    return random.chance(0.6) ? EARLY_MS : profile.illMs * 0.95;
  }

  missing(): string | undefined {
    for (const intent of this.#intents) {
      if (intent.pending > 0) return `the create of ${intent.request.runId} has no answer`;
      if (intent.acknowledged && this.#world.witness.stateOf(intent.request.runId) === undefined)
        return `run ${intent.request.runId} was acknowledged and is lost`;
    }
    return (
      this.#logWatchers.missing() ??
      this.#scheduleWriters.missing() ??
      this.#deleters.missing() ??
      this.administrators.missing() ??
      this.#watchers.missing()
    );
  }

  // --- Creating and cancelling ---------------------------------------------------------------------------------------

  #newRun(index: number): void {
    const world = this.#world;
    const { random, profile } = world;
    const key = `key${random.int(profile.keys)}`;
    const isOld = random.chance(0.05);
    const runId = newRunId({ now: world.wallClock() - (isOld ? OLD_ID_MS : 0), key, random: random.bytes(8) });
    const yaml = drawPipeline(random, {
      name: `p${index}`,
      labels: this.#labels,
      groups: ['g0', 'g1'],
      poison: random.chance(profile.poison),
      unrestorable: random.chance(profile.unrestorable),
      stageMs: profile.stageMs,
      gates: profile.gates,
      generates: profile.generates,
      keeps: profile.keeps,
      length: this.#drawLength(),
    });
    const limits = random.chance(profile.quotas) ? this.#drawLimits(key) : undefined;
    const ended = random.chance(profile.endedAtOnce) ? random.pick(ENDS) : undefined;
    const request: CreateRequest = this.#pullRequests.drawn({
      runId,
      tenant: TENANT,
      key,
      yaml: ended === undefined ? yaml : '',
      origin: drawOrigin(world),
      priority: random.chance(0.2) ? 1 + random.int(3) : 0,
      ...(limits === undefined ? {} : { limits }),
      ...(ended === undefined ? {} : { ended: { pipelineName: `p${index}`, ...ended } }),
    });
    const intent: Intent = {
      request,
      partition: partitionOf(runId, profile.partitions),
      acknowledged: false,
      isDoomed: profile.deletes > 0 && random.chance(profile.deletes) && request.origin.pullRequest === undefined,
      pending: 0,
    };
    this.#intents.push(intent);
    const lateMs = this.#pullRequests.drawLateness(request);
    if (lateMs === 0) this.#create(intent, random.pick(this.#gateways));
    else {
      intent.pending += 1;
      world.after(lateMs, () => {
        intent.pending -= 1;
        this.#create(intent, random.pick(this.#gateways));
      });
    }
    const approveMs = this.#pullRequests.drawApproval(request);
    if (approveMs !== undefined)
      world.after(lateMs + approveMs, () => this.#approve(intent, random.pick(this.#gateways)));
    if (random.chance(0.15)) this.#create(intent, random.pick(this.#gateways));
    if (random.chance(0.1))
      world.after(random.between(0, profile.illMs), () => this.#create(intent, random.pick(this.#gateways)));
    // A delivery is processed until it is created; who triggers by hand takes the refusal.
    this.#onQuota.set(runId, random.chance(0.5) ? 'send as ended' : 'give up');
    if (random.chance(profile.cancels))
      world.after(random.exponential(4_000), () => this.#cancel(intent, random.pick(this.#gateways)));
  }

  #drawLength(): number {
    const { random, profile } = this.#world;
    if (!random.chance(profile.large)) return 0;
    this.#world.mark('large file');
    return profile.largeLength;
  }

  /** Those of the key, now and then others: the newest hold. */
  #drawLimits(key: string): Limits {
    const { random } = this.#world;
    const known = this.#limits.get(key);
    if (known !== undefined && !random.chance(0.2)) return known;
    const limits = {
      maxConcurrent: random.chance(0.8) ? 1 + random.int(3) : UNLIMITED,
      pipelineRunLimit: random.chance(0.5) ? 1 + random.int(6) : UNLIMITED,
    };
    this.#limits.set(key, limits);
    return limits;
  }

  /** As it was sent first, or again with its end. */
  requestOf(runId: string): CreateRequest | undefined {
    return this.#intents.find(({ request }) => request.runId === runId)?.request;
  }

  /** As they were sent to the owner of its partition; infinite where there are none. */
  limitsOf(runId: string): Limits | undefined {
    const limits = this.requestOf(runId)?.limits;
    return (
      limits && {
        maxConcurrent: orInfinity(limits.maxConcurrent),
        pipelineRunLimit: orInfinity(limits.pipelineRunLimit),
      }
    );
  }

  #refused(intent: Intent, request: CreateRequest, gateway: SimNode): void {
    const world = this.#world;
    world.mark("create over the month's limit");
    world.check(
      request.limits !== undefined && request.limits.pipelineRunLimit < UNLIMITED && request.ended?.reason !== 'quota',
      'P23',
      `the create of ${request.runId} is refused for a limit that it does not have`,
    );
    const used = world.witness.runsOfMonth(request.key);
    world.check(
      used === undefined || used >= (request.limits?.pipelineRunLimit ?? 0),
      'P23',
      `the create of ${request.runId} is refused for a limit of ${request.limits?.pipelineRunLimit ?? 0}, its key has had ${used ?? 0}`,
    );
    if (this.#onQuota.get(request.runId) === 'give up') return;
    intent.request = { ...request, yaml: '', ended: { pipelineName: 'over', status: 'FAILED', reason: 'quota' } };
    this.#create(intent, gateway);
  }

  #create(intent: Intent, gateway: SimNode): void {
    const world = this.#world;
    const { request } = intent;
    const floor = world.witness.observed(request.runId);
    intent.pending += 1;
    this.#owners.ask<CreateReply>(gateway, intent.partition, 'create', request, (answer) => {
      intent.pending -= 1;
      if (answer?.ok === true) {
        world.check(
          world.witness.stateOf(request.runId) !== undefined,
          'P1',
          `the create of ${request.runId} is acknowledged, but not committed`,
        );
        if (answer.run !== null) world.witness.viewSeen(answer.run, floor, 'the answer to create');
        world.mark(answer.created ? 'created' : answer.run === null ? 'created before, and closed' : 'created before');
        this.#acknowledged(intent);
        return;
      }
      if (answer?.code === 'BAD_USER_INPUT' && world.definitions.newBuild && request.yaml.includes('unrestorable')) {
        world.mark('create refused by a newer build');
        return;
      }
      if (answer?.code === 'BAD_USER_INPUT' && request.yaml.length > TOO_LARGE_FROM) {
        world.mark('create refused for its size');
        return;
      }
      if (answer !== undefined && request.rerun !== undefined && REFUSED_FOR_GOOD.has(answer.code)) {
        const parent = this.#intents.find(({ request: { runId } }) => runId === request.rerun?.parent);
        if (answer.code === 'NOT_FOUND' && parent?.isDoomed === true) world.mark('rerun of a deleted run');
        else this.#reruns.checkRefusal(request, answer.code, answer.message);
        return;
      }
      if (answer?.code === 'QUOTA_EXCEEDED') {
        this.#refused(intent, request, gateway);
        return;
      }
      if (answer !== undefined)
        world.check(
          answer.code === 'UNAVAILABLE',
          'P7',
          `the create of ${request.runId} is answered ${answer.code}: ${answer.message}`,
        );
      // No answer, or not now: the client tries again with the same id.
      intent.pending += 1;
      world.mark(answer === undefined ? 'create without answer' : 'create unavailable');
      world.after(1_000, () => {
        intent.pending -= 1;
        this.#create(intent, world.random.pick(this.#gateways));
      });
    });
  }

  #acknowledged(intent: Intent): void {
    if (intent.acknowledged) return;
    intent.acknowledged = true;
    if (intent.isDoomed) {
      this.#deleters.doom(intent.request.runId, intent.partition);
      // Who repeats the create does not bring it back.
      const { random } = this.#world;
      this.#world.after(random.exponential(20_000), () => this.#create(intent, random.pick(this.#gateways)));
      // Of what it has kept its reruns have some still.
      if (this.#world.profile.keeps > 0) this.#rerunLater(intent);
      return;
    }
    const { random, profile } = this.#world;
    const readers = profile.logs ? random.int(3) : 0;
    for (let count = 0; count < readers; count++)
      this.#world.after(random.exponential(3_000), () => this.#logWatchers.watch(intent.request.runId));
    this.#rerunLater(intent);
    const watchers = random.int(3);
    for (let count = 0; count < watchers; count++) this.#watchers.watchLater(intent.request.runId, intent.partition);
  }

  #rerunLater(parent: Intent): void {
    const afterMs = this.#reruns.drawDelay(parent.request);
    if (afterMs !== undefined) this.#world.after(afterMs, () => this.#rerun(parent));
  }

  #rerun(parent: Intent): void {
    const request = this.#reruns.drawn(parent.request);
    if (request === undefined) return;
    const { deletes } = this.#world.profile;
    const isDoomed = deletes > 0 && this.#world.random.chance(deletes);
    const intent: Intent = { request, partition: parent.partition, acknowledged: false, isDoomed, pending: 0 };
    this.#intents.push(intent);
    this.#onQuota.set(request.runId, 'give up');
    this.#create(intent, this.#world.random.pick(this.#gateways));
  }

  isCancelAsked(runId: string): boolean {
    return this.#cancelAsked.has(runId);
  }

  #cancel(intent: Intent, gateway: SimNode): void {
    const world = this.#world;
    const { runId } = intent.request;
    this.#cancelAsked.add(runId);
    const wasAcknowledged = intent.acknowledged;
    const floor = world.witness.observed(runId);
    this.#owners.ask<CancelReply>(gateway, intent.partition, 'cancel', { runId, tenants: [TENANT] }, (answer) => {
      const truth = world.witness.stateOf(runId);
      if (answer === undefined) {
        if (world.random.chance(0.7)) world.after(500, () => this.#cancel(intent, gateway));
        return;
      }
      if (world.witness.isDisturbed(runId)) return;
      if (answer.ok) {
        world.mark('cancelled');
        world.check(
          truth?.status === 'CANCELLED',
          'P14',
          `the cancel of ${runId} is acknowledged, but the run is ${truth?.status ?? 'nothing'}`,
        );
        world.witness.viewSeen(answer.run, floor, 'the answer to cancel');
      } else if (answer.code === 'CONFLICT') {
        world.mark('cancel of an ended run');
        world.check(
          truth !== undefined && isEnded(truth.status),
          'P4',
          `the cancel of ${runId} says that it has ended, it is ${truth?.status ?? 'nothing'}`,
        );
      } else {
        world.mark('cancel of a run not in memory');
        world.check(
          !wasAcknowledged || (truth !== undefined && isEnded(truth.status)),
          'P4',
          `the cancel of ${runId}, which is ${truth?.status ?? 'lost'}, is answered ${answer.code}`,
        );
      }
    });
  }

  #approve(intent: Intent, gateway: SimNode): void {
    const world = this.#world;
    const { runId, key } = intent.request;
    const wasAcknowledged = intent.acknowledged;
    const floor = world.witness.observed(runId);
    const request = { runId, tenants: [TENANT], by: 'somebody' };
    this.#owners.ask<ApproveReply>(gateway, intent.partition, 'approve', request, (answer) => {
      const truth = world.witness.stateOf(runId);
      if (answer === undefined) {
        world.after(500, () => this.#approve(intent, gateway));
        return;
      }
      if (world.witness.isDisturbed(runId)) return;
      const fail = (holds: boolean, message: string): void =>
        world.check(holds, 'P27', `the approval of ${runId}, which is ${truth?.status ?? 'nothing'}, ${message}`);
      if (answer.ok) {
        world.mark('approved');
        fail(truth?.approvedAt !== undefined, 'is acknowledged and not committed');
        world.witness.viewSeen(answer.run, floor, 'the answer to approve');
      } else if (answer.code === 'QUOTA_EXCEEDED') {
        world.mark("approval over the month's limit");
        const limit = intent.request.limits?.pipelineRunLimit ?? Number.POSITIVE_INFINITY;
        fail((world.witness.runsOfMonth(key) ?? limit) >= limit, 'is refused for a limit that is not reached');
      } else if (answer.code === 'CONFLICT')
        fail(truth !== undefined && isEnded(truth.status), `is answered CONFLICT: ${answer.message}`);
      else if (answer.code === 'NOT_FOUND')
        fail(!wasAcknowledged || (truth !== undefined && isEnded(truth.status)), 'is answered NOT_FOUND');
      else world.after(500, () => this.#approve(intent, gateway));
    });
  }

  // --- Reading -------------------------------------------------------------------------------------------------------

  #readLater(): void {
    const { random } = this.#world;
    this.#world.after(random.between(200, 1_200), () => {
      if (this.#intents.length > 0) this.#read(random.pick(this.#intents), random.pick(this.#gateways));
      this.#readLater();
    });
  }

  #read(intent: Intent, gateway: SimNode): void {
    const world = this.#world;
    const { runId } = intent.request;
    const floor = world.witness.observed(runId);
    const wasAcknowledged = intent.acknowledged;
    this.#owners.ask<GetReply>(
      gateway,
      intent.partition,
      'get',
      { runIds: [runId], tenants: [TENANT], newest: 3 },
      (answer) => {
        if (answer?.ok !== true) return;
        for (const view of answer.runs) world.witness.viewSeen(view, view.id === runId ? floor : 0, 'the owner');
        if (answer.runs.some(({ id }) => id === runId)) return;
        this.#network.askStore(
          gateway,
          (store) => store.view(runId),
          (view) => {
            world.mark('read from the store');
            if (view !== undefined) world.witness.viewSeen(view, floor, 'the store');
            else
              world.check(
                !wasAcknowledged || world.witness.isDisturbed(runId) || world.witness.isDeleted(runId),
                'P6',
                `run ${runId} was acknowledged, and neither its owner nor the store knows it`,
              );
          },
          () => {},
        );
      },
    );
  }
}

/** Where stages leave caches, runs are of a branch whose other runs find them. */
function drawOrigin({ random, profile }: World): CreateRequest['origin'] {
  if (profile.keeps === 0) return { kind: 'api' };
  const ref = `refs/heads/${random.pick(['main', 'work'])}`;
  return { kind: 'api', provider: 'git_host_a', repository: 'acme/demo', ref, defaultBranch: 'main' };
}

function orInfinity(limit: number): number {
  return limit === UNLIMITED ? Number.POSITIVE_INFINITY : limit;
}
