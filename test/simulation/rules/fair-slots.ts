/**
 * Slots are shared between keys (SERVICE_KEY_SLOTS): while another key waits for a slot that it could take, a key that has its share
 * gets none; and who waits below its share is overtaken by no other key more often than turns allow. By the log alone: what an owner
 * decides is committed a moment later, so this is looked at in worlds only in which that moment is short, and what it knew of a
 * moment ago is held against it.
 */
import { isEnded, type RunEvent } from '@penstock/run';
import type { RunnerLease } from '@penstock/bus';
import type { SimBroker } from '../world/broker.ts';
import { leased } from '../world/leases.ts';
import { isCalm } from '../world/profile.ts';
import type { World } from '../world/world.ts';
import type { PartitionRules, PartitionTruth } from './partition-rules.ts';
import type { RunTruth } from './run-truth.ts';

/** From a decision to its commit, and from a commit to what its owner makes of it, in a calm world. */
const MOMENT_MS = 1_500;
/** Turns go by keys, and those of equals in any order. */
const TURNS_MAX = 3;

type Started = Extract<RunEvent, { type: 'stage_started' }>;

interface Waiting {
  readonly run: RunTruth;
  readonly stage: string;
  readonly index: number;
}

interface FairSlotsParts {
  readonly world: World;
  readonly broker: SimBroker;
  readonly partitions: PartitionRules;
  readonly runs: ReadonlyMap<string, RunTruth>;
}

export class FairSlots {
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #partitions: PartitionRules;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  readonly #looks: boolean;
  /** When a key had an attempt begun or ended last. */
  readonly #changedAt = new Map<string, number>();
  /** Of a waiting key, how often each other one got a slot since its own last one. */
  readonly #overtaken = new Map<string, Map<string, number>>();

  constructor({ world, broker, partitions, runs }: FairSlotsParts) {
    this.#world = world;
    this.#broker = broker;
    this.#partitions = partitions;
    this.#runs = runs;
    // Who is paused waits for nobody's slot, and those of a tenant's own runner nobody else could use.
    this.#looks = isCalm(world.profile) && world.profile.pauses === 0 && world.profile.fleet === 0;
  }

  /** Before the event is applied to the run's state. */
  happens(run: RunTruth, event: RunEvent): void {
    if (!this.#looks || this.#world.healed) return;
    if (event.type === 'stage_started') this.#granted(run, event);
    if ('attempt' in event && event.type !== 'stage_stopping') this.#changedAt.set(run.state.key, this.#world.now);
  }

  #granted(run: RunTruth, event: Started): void {
    const { key } = run.state;
    const partition = this.#partitions.of(run.partition);
    const labels = this.#labelsOf(event.runner);
    this.#overtaken.delete(key);
    if (labels === undefined || !this.#isSettled(partition)) return;
    const isFull = this.#isFull(run, event);
    const others = this.#othersWaiting(key, partition, event.runner, labels);
    if (others.length > 0) this.#world.mark('key granted while another waits');
    for (const waiting of others) {
      const other = waiting.run.state.key;
      if (isFull)
        this.#unlessGrantedSoon(
          waiting,
          `${key} has its share of the slots and gets another of ${event.runner}, for which ${other} waits`,
        );
      else if (this.#world.profile.runners === 1 && run.state.priority <= waiting.run.state.priority)
        this.#overtakes(key, other, waiting);
    }
  }

  #overtakes(key: string, other: string, waiting: Waiting): void {
    let counts = this.#overtaken.get(other);
    if (counts === undefined) this.#overtaken.set(other, (counts = new Map()));
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count > TURNS_MAX)
      this.#unlessGrantedSoon(waiting, `${other} waits below its share, and ${key} has had ${count} slots meanwhile`);
  }

  /** A grant that was decided before may be under way to the log. */
  #unlessGrantedSoon({ run, stage, index }: Waiting, message: string): void {
    const world = this.#world;
    const { epoch } = this.#partitions.of(run.partition);
    const { key } = run.state;
    world.after(MOMENT_MS, () => {
      const state = run.state.stages.get(index);
      if (world.healed || this.#partitions.of(run.partition).epoch !== epoch || isEnded(run.state.status)) return;
      // Its turn, if for another of its stages.
      if ((this.#changedAt.get(key) ?? 0) > world.now - 2 * MOMENT_MS) return;
      if (this.#isOpenFor(run, index) && state?.name === stage) world.check(false, 'fair slots', message);
    });
  }

  /** One stage of each other key below its share that has waited for a moment, and could take this slot. */
  #othersWaiting(
    key: string,
    { owner }: PartitionTruth,
    runner: string,
    labels: ReadonlySet<string>,
  ): readonly Waiting[] {
    const found = new Map<string, Waiting>();
    for (const run of this.#runs.values()) {
      const partition = this.#partitions.of(run.partition);
      const other = run.state.key;
      if (other === key || found.has(other) || partition.owner !== owner || !this.#isSettled(partition)) continue;
      if (isEnded(run.state.status) || run.state.held) continue;
      for (const [index, { definition, labelSet }] of run.state.stages.plan.stages.entries()) {
        const { name, runsOn, workspace } = definition;
        if (!this.#isOpenFor(run, index) || definition.matrix?.maxParallel !== undefined) continue;
        const since = run.waits.get(`${name}\nqueue`);
        if (since?.epoch !== partition.epoch || since.at > this.#world.now - MOMENT_MS) continue;
        const holder = workspace === 'shared' ? run.state.workspaces[labelSet] : undefined;
        if (holder !== undefined && holder !== runner) continue;
        if (!runsOn.every((label) => labels.has(label)) || this.#mayBeFull(other, runsOn, holder)) continue;
        found.set(other, { run, stage: name, index });
        break;
      }
    }
    return [...found.values()];
  }

  /** It waits and was never granted. */
  #isOpenFor(run: RunTruth, index: number): boolean {
    const stage = run.state.stages.get(index);
    return (
      stage?.status === 'QUEUED' &&
      stage.gateDueAt === undefined &&
      stage.attempt === 0 &&
      stage.live === undefined &&
      !run.state.held
    );
  }

  /** For sure: by the attempts that live since a moment ago, of the largest pool that there may have been. */
  #isFull(run: RunTruth, event: Started): boolean {
    const planned = run.state.stages.plan.stages[run.state.stages.plan.indexOf.get(event.stage) ?? -1];
    if (planned === undefined) return false;
    const { runsOn, workspace } = planned.definition;
    const bound = workspace === 'shared' ? run.state.workspaces[planned.labelSet] : undefined;
    const { most, surely } = this.#poolOf(runsOn, bound);
    return this.#liveOf(run.state.key, (runner) => surely.has(runner)) >= this.#shareOf(most);
  }

  #mayBeFull(key: string, runsOn: readonly string[], bound: string | undefined): boolean {
    if ((this.#changedAt.get(key) ?? 0) > this.#world.now - MOMENT_MS) return true;
    return this.#liveOf(key, () => true) >= this.#shareOf(this.#poolOf(runsOn, bound).least);
  }

  #shareOf(slots: number): number {
    return this.#world.profile.keySlots ?? Math.max(1, Math.floor(slots / 2));
  }

  #liveOf(key: string, isCounted: (runner: string) => boolean): number {
    let count = 0;
    for (const { state } of this.#runs.values()) {
      if (state.key !== key || state.liveAttempts === 0) continue;
      for (const { live } of state.stages) if (live !== undefined && isCounted(live.runner)) count += 1;
    }
    return count;
  }

  /** Of the sessions that can take such a stage: all of the last moment, and those that were there throughout. */
  #poolOf(
    runsOn: readonly string[],
    bound: string | undefined,
  ): { readonly most: number; readonly least: number; readonly surely: ReadonlySet<string> } {
    const surely = new Set<string>();
    let most = 0;
    let least = 0;
    for (const { lease, isOld } of this.#leases()) {
      if ((bound !== undefined && bound !== lease.runner) || !runsOn.every((label) => lease.labels.includes(label)))
        continue;
      most += lease.slots;
      if (!isOld) continue;
      least += lease.slots;
      surely.add(lease.runner);
    }
    return { most, least, surely };
  }

  *#leases(): Iterable<{ readonly lease: RunnerLease; readonly isOld: boolean }> {
    for (const { value, isPresent, since } of this.#broker.keysOf('runners', MOMENT_MS))
      yield { lease: leased<RunnerLease>(value), isOld: isPresent && since <= this.#world.now - MOMENT_MS };
  }

  #labelsOf(runner: string): ReadonlySet<string> | undefined {
    for (const { lease } of this.#leases()) if (lease.runner === runner) return new Set(lease.labels);
    return undefined;
  }

  /** Its owner has had it for a while, and has committed since. */
  #isSettled({ kind, activeSince, disturbed }: PartitionTruth): boolean {
    return !disturbed && kind === 'runs' && activeSince !== undefined && activeSince <= this.#world.now - MOMENT_MS;
  }
}
