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
const MINUTE_MS = 60_000;
/** P8: so long commits stay in the log. */
const KEPT_MS = 120 * MINUTE_MS;
/** A purge is looked for once a minute, and again where broker or store were away. */
const PURGED_WITHIN_MS = 5 * MINUTE_MS;

export interface PartitionTruth {
  number: number;
  epoch: number;
  owner: string;
  kind: Commit['kind'] | undefined;
  disturbed: boolean;
  checkpoint: number;
  /** Where it stood, since when, the oldest first. */
  readonly checkpoints: { readonly at: number; readonly sequence: number }[];
  /** Commits that are in the log, the oldest first. */
  readonly stored: { readonly at: number; readonly sequence: number }[];
  openedAt: number;
  /** It was purged while nothing happened in it. */
  isPurgedQuiet: boolean;
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
          checkpoints: [],
          stored: [],
          openedAt: 0,
          isPurgedQuiet: false,
          releasedAt: 0,
          activeSince: undefined,
        }),
      );
    return truth;
  }

  isDisturbed(partition: number): boolean {
    return this.of(partition).disturbed;
  }

  committed(partition: number, sequence: number, commit: Commit): PartitionTruth {
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
    truth.stored.push({ at: world.now, sequence });
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

  checkpointed(partition: number, sequence: number): void {
    const truth = this.of(partition);
    truth.checkpoint = sequence;
    truth.checkpoints.push({ at: this.#world.now, sequence });
  }

  purged(partition: number, upTo: number): void {
    const world = this.#world;
    const truth = this.of(partition);
    world.check(
      upTo < truth.checkpoint || truth.disturbed,
      'P8',
      `partition ${partition} is purged up to ${upTo}, its checkpoint is ${truth.checkpoint}`,
    );
    const kept = truth.stored.findIndex(({ sequence }) => sequence > upTo);
    const gone = truth.stored.splice(0, Math.max(0, kept));
    const { journalUsed, faults } = world.profile;
    if (gone.length === 0 || journalUsed > 0 || faults.journalFull > 0) return;
    world.check(
      gone.every(({ at }) => at < world.now - KEPT_MS) || truth.disturbed,
      'P8',
      `partition ${partition} is purged up to ${upTo}, which is younger than two hours`,
    );
    truth.isPurgedQuiet = truth.stored.length === 1;
    if (truth.isPurgedQuiet) world.mark('quiet partition purged');
  }

  /** What was projected two hours ago is gone, whether or not anything has been committed since. */
  checkPurges(): void {
    const world = this.#world;
    const due = world.now - KEPT_MS - PURGED_WITHIN_MS;
    for (const [partition, { checkpoints, stored, openedAt, disturbed }] of this.#partitions) {
      const covered = checkpoints.findLast(({ at }) => at < due)?.sequence ?? 0;
      const [first] = stored;
      world.check(
        disturbed || openedAt > due || first === undefined || first.sequence >= covered,
        'P8',
        `the log of partition ${partition} begins at ${first?.sequence ?? 0}, projected more than two hours ago was ${covered}`,
      );
    }
  }

  #markTurn(truth: PartitionTruth, { kind, runs, epoch, owner }: Commit): void {
    const world = this.#world;
    if (runs.length > 1) world.mark('commit with several runs');
    if (kind === 'released') {
      world.mark('hand-over');
      truth.releasedAt = world.now;
    }
    if (kind === 'runs') {
      truth.activeSince ??= world.now;
      truth.isPurgedQuiet = false;
    } else truth.activeSince = undefined;
    if (kind !== 'opened') return;
    truth.openedAt = world.now;
    if (truth.isPurgedQuiet && truth.owner !== owner) world.mark('quiet partition taken over after its purge');
    truth.isPurgedQuiet = false;
    if (epoch > truth.epoch + 1 && epoch % EPOCHS_PER_INCARNATION === 0) world.mark('new incarnation');
    // Nobody waits for a tick.
    if (truth.kind === 'released' && truth.owner !== owner && world.now - truth.releasedAt < SOON_MS)
      world.mark('opened soon after its release');
  }
}
