/**
 * What must hold of the log of a partition: who writes to it, in which order, and what may be purged. A log that lost its end in a
 * power cut is `disturbed`: what was promised on lost commits is not held against anybody.
 */
import type { LogEntry } from '@penstock/bus';
import { decodeCommit, type Commit } from '@penstock/scheduler/testing';
import type { SimBroker } from '../world/broker.ts';
import type { World } from '../world/world.ts';

/** The first epoch of an incarnation is a multiple of this. */
const EPOCHS_PER_INCARNATION = 1_000_000_000;
const SOON_MS = 250;

export interface PartitionTruth {
  number: number;
  epoch: number;
  owner: string;
  kind: Commit['kind'] | undefined;
  disturbed: boolean;
  checkpoint: number;
  releasedAt: number;
  /** When its owner committed something about runs first. */
  activeSince: number | undefined;
}

export class PartitionRules {
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #partitions = new Map<number, PartitionTruth>();

  constructor(world: World, broker: SimBroker) {
    this.#world = world;
    this.#broker = broker;
  }

  of(partition: number): PartitionTruth {
    let truth = this.#partitions.get(partition);
    if (truth === undefined)
      this.#partitions.set(
        partition,
        (truth = {
          number: 0,
          epoch: 0,
          owner: '',
          kind: undefined,
          disturbed: false,
          checkpoint: 0,
          releasedAt: 0,
          activeSince: undefined,
        }),
      );
    return truth;
  }

  isDisturbed(partition: number): boolean {
    return this.of(partition).disturbed;
  }

  committed(partition: number, commit: Commit): PartitionTruth {
    const world = this.#world;
    const truth = this.of(partition);
    world.check(
      commit.number === truth.number + 1,
      'P6',
      `commit ${commit.number} of partition ${partition} follows commit ${truth.number}`,
    );
    if (commit.kind === 'opened') {
      const free =
        truth.kind === undefined ||
        truth.kind === 'released' ||
        truth.owner === commit.owner ||
        !this.#broker.mayLive('members', truth.owner);
      world.check(free, 'P3', `${commit.owner} opens partition ${partition}, which ${truth.owner} owns and lives`);
      world.check(
        commit.epoch > truth.epoch,
        'P3',
        `epoch ${commit.epoch} of partition ${partition} follows epoch ${truth.epoch}`,
      );
    } else {
      world.check(
        truth.kind !== 'released',
        'P3',
        `${commit.owner} writes to partition ${partition} after it was released`,
      );
      world.check(
        commit.epoch === truth.epoch && commit.owner === truth.owner,
        'P1',
        `${commit.owner} (epoch ${commit.epoch}) writes to partition ${partition} of ${truth.owner} (epoch ${truth.epoch})`,
      );
    }
    this.#markTurn(truth, commit);
    Object.assign(truth, { number: commit.number, epoch: commit.epoch, owner: commit.owner, kind: commit.kind });
    return truth;
  }

  lostEnd(partition: number, last: LogEntry | undefined, lost: readonly LogEntry[]): void {
    const truth = this.of(partition);
    const commit = last === undefined ? undefined : decodeCommit(last.bytes);
    Object.assign(truth, {
      number: commit?.number ?? 0,
      epoch: commit?.epoch ?? 0,
      owner: commit?.owner ?? '',
      kind: commit?.kind,
      disturbed: true,
    });
    this.#world.mark((last?.sequence ?? 0) < truth.checkpoint ? 'store ahead of its log' : 'log lost its end');
    this.#world.trace(() => `partition ${partition} loses ${lost.length} commits, back to ${last?.sequence ?? 0}`);
  }

  purged(partition: number, upTo: number): void {
    const truth = this.of(partition);
    this.#world.check(
      upTo < truth.checkpoint || truth.disturbed,
      'P8',
      `partition ${partition} is purged up to ${upTo}, its checkpoint is ${truth.checkpoint}`,
    );
  }

  #markTurn(truth: PartitionTruth, { kind, runs, epoch, owner }: Commit): void {
    const world = this.#world;
    if (runs.length > 1) world.mark('commit with several runs');
    if (kind === 'released') {
      world.mark('hand-over');
      truth.releasedAt = world.now;
    }
    if (kind === 'runs') truth.activeSince ??= world.now;
    else truth.activeSince = undefined;
    if (kind !== 'opened') return;
    if (epoch > truth.epoch + 1 && epoch % EPOCHS_PER_INCARNATION === 0) world.mark('new incarnation');
    // Nobody waits for a tick.
    if (truth.kind === 'released' && truth.owner !== owner && world.now - truth.releasedAt < SOON_MS)
      world.mark('opened soon after its release');
  }
}
