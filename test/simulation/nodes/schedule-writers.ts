/**
 * Pushes that say what is to be started at which times, also late and twice, and people who pause and resume it (P28). In a healed
 * world each repository says in the end that nothing is.
 */
import type { PauseReply, PauseRequest, SchedulesReply, SetScheduleReply, SetScheduleRequest } from '@penstock/bus';
import type { ScheduleLine } from '@penstock/pipeline';
import { partitionOfKey } from '@penstock/run';
import { drawPipeline } from '../world/pipelines.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { OwnerRequests } from './owner-requests.ts';

interface Dependencies {
  readonly world: World;
  readonly owners: OwnerRequests;
  readonly gateways: readonly SimNode[];
  readonly labels: readonly (readonly string[])[];
}

const TENANT = 'tenant';
const LINES: readonly ScheduleLine[] = [
  { cron: '* * * * *' },
  { cron: '*/2 * * * *' },
  { cron: '* * * * *', inputs: { unknown: 'to the file' } },
  { cron: '0 * * * *' },
  { cron: '7 7 7 7 *' },
];

interface Repository {
  readonly key: string;
  readonly partition: number;
  readonly name: string;
  last: SetScheduleRequest | undefined;
  isOver: boolean;
}

export class ScheduleWriters {
  readonly #dependencies: Dependencies;
  readonly #repositories: readonly Repository[];
  #sequence = 0;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    const { profile, random } = dependencies.world;
    this.#repositories = Array.from({ length: profile.schedules }, (_, index) => {
      const key = `key${random.int(profile.keys)}`;
      const partition = partitionOfKey(key, profile.partitions);
      return { key, partition, name: `o/r${index}`, last: undefined, isOver: false };
    });
  }

  start(): void {
    const { world } = this.#dependencies;
    const { quietMs, illMs } = world.profile;
    for (const repository of this.#repositories) {
      const end = quietMs + illMs;
      for (let at = quietMs * world.random.between(0, 1); at < end; at += world.random.exponential(9_000))
        world.after(at, () => this.#push(repository));
      world.after(end, () => this.#end(repository));
      this.#pauseLater(repository);
    }
  }

  missing(): string | undefined {
    const open = this.#repositories.find(({ isOver }) => !isOver);
    return open && `the schedule of ${open.name} has not ended`;
  }

  #push(repository: Repository): void {
    const { world, labels } = this.#dependencies;
    const { random, profile } = world;
    const lines = LINES.filter(() => random.chance(0.4));
    const yaml = drawPipeline(random, {
      name: 'nightly',
      labels,
      groups: ['g0', 'g1'],
      poison: false,
      unrestorable: false,
      stageMs: Math.min(2_000, profile.stageMs),
      gates: 0,
      generates: 0,
      keeps: 0,
      length: 0,
    });
    const request = this.#requestOf(repository, lines, yaml);
    const { last } = repository;
    repository.last = request;
    if (last !== undefined && random.chance(0.3)) this.#set(repository, last);
    const lateMs = random.chance(0.2) ? random.exponential(5_000) : 0;
    world.after(lateMs, () => this.#set(repository, request));
  }

  #requestOf(repository: Repository, lines: readonly ScheduleLine[], yaml: string): SetScheduleRequest {
    const { world } = this.#dependencies;
    this.#sequence += 1;
    return {
      tenant: TENANT,
      key: repository.key,
      provider: 'git_host_a',
      repository: repository.name,
      delivery: { sequence: this.#sequence, storedAt: world.wallClock() - world.random.int(200_000) },
      ref: 'refs/heads/main',
      commit: String(this.#sequence).padStart(40, '0'),
      cloneUrl: '',
      source: '.pipeline.yaml',
      yaml: lines.length === 0 ? '' : yaml,
      lines,
      idKey: 'key',
    };
  }

  #set(repository: Repository, request: SetScheduleRequest, then: () => void = () => {}): void {
    const { world, owners, gateways } = this.#dependencies;
    const gateway = world.random.pick(gateways);
    owners.ask<SetScheduleReply>(gateway, repository.partition, 'schedule', request, (answer) => {
      if (answer?.ok === true) {
        world.mark('schedule set');
        then();
        return;
      }
      if (answer !== undefined)
        world.check(answer.code === 'UNAVAILABLE', 'P28', `a schedule is answered ${answer.code}: ${answer.message}`);
      world.after(1_000, () => this.#set(repository, request, then));
    });
  }

  #end(repository: Repository): void {
    this.#set(repository, this.#requestOf(repository, [], ''), () => {
      repository.isOver = true;
    });
  }

  #pauseLater(repository: Repository): void {
    const { world } = this.#dependencies;
    world.after(world.random.exponential(12_000), () => {
      if (world.healed) return;
      this.#pause(repository);
      this.#pauseLater(repository);
    });
  }

  #pause({ partition, name }: Repository): void {
    const { world, owners, gateways } = this.#dependencies;
    const gateway = world.random.pick(gateways);
    owners.ask<SchedulesReply>(gateway, partition, 'schedules', { tenants: [TENANT] }, (answer) => {
      if (answer?.ok !== true) return;
      const lines = answer.schedules.filter(({ repository }) => repository === name);
      if (lines.length === 0) return;
      const { id, paused } = world.random.pick(lines);
      const request: PauseRequest = { id, tenants: [TENANT], paused: !paused };
      owners.ask<PauseReply>(gateway, partition, 'pause', request, (reply) => {
        if (reply?.ok === true) world.mark(paused ? 'schedule resumed' : 'schedule paused');
      });
    });
  }
}
