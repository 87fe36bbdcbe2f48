/**
 * Which partitions this scheduler has: takes those that should be its own and are free, hands back those that should be another's.
 * Owns its partition owners, from before their opening to their end.
 *
 *  MOVES-1 One move of a partition at a time; those of different partitions wait for nobody's but their own: a log that does not
 *     answer, or a long take-over, holds up no other hand-over.
 *  MOVES-2 Nothing is opened under an id whose membership is over, nor after `close`.
 *  MOVES-3 An owner that could not hand over is kept until it has: nobody else can open the partition while this member lives (P3).
 *  MOVES-4 A release is given up after RELEASE_MS, an opening after OPEN_MS or when its partition should be another's; both are tried
 *     again as things stand then.
 */
import { deadlineIn, type Time } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';
import type { PartitionOwner } from './partition-owner.ts';

/** Of commits under way and one more: a broker that takes longer is asked again. */
const RELEASE_MS = 30_000;
/** However many runs are taken over: hundreds of thousands take minutes. */
const OPEN_MS = 10 * 60_000;
/** How often the logs of others' partitions are looked at: one small read each. */
const LOOK_MS = 30_000;

export interface PartitionMovesHost {
  readonly partitions: number;
  readonly log: Log;
  readonly time: Time;
  /** Whether there is an id under which anything may be moved. */
  isMember(): boolean;
  /** Whether the partition should be this member's as things stand. */
  isMine(partition: number): boolean;
  /** Aborted when the membership is over under which a move began. */
  membershipOver(): AbortSignal;
  /** `lost` is called once, where the owner finds out that it has lost the partition. */
  ownerFor(partition: number, lost: (owner: PartitionOwner, reason: 'another' | 'failed') => void): PartitionOwner;
}

export class PartitionMoves {
  readonly #host: PartitionMovesHost;
  readonly #owners = new Map<number, PartitionOwner>();
  /** Partitions whose logs may still name this member although it does not answer for them: to be handed back. */
  readonly #leaving = new Map<number, PartitionOwner>();
  readonly #moves = new Map<number, Promise<void>>();
  /** To be looked at once more when their moves have ended. */
  readonly #again = new Set<number>();
  #lookedAtMs: number;
  #closed = false;

  constructor(host: PartitionMovesHost) {
    this.#host = host;
    this.#lookedAtMs = host.time.bootNow();
  }

  get owners(): Iterable<PartitionOwner> {
    return this.#owners.values();
  }

  /** Brings every partition to where it belongs by now; what is not free yet is tried again by the next call. */
  rebalance(): void {
    if (this.#closed || !this.#host.isMember()) return;
    this.#lookAtOthers();
    for (let partition = 0; partition < this.#host.partitions; partition++) this.#rebalance(partition);
  }

  /** Resolves when no partition is on its way. */
  async settled(): Promise<void> {
    while (this.#moves.size > 0) await Promise.all(this.#moves.values());
  }

  /** The membership is over: nothing is answered or sent from here on. */
  async forgetAll(): Promise<void> {
    const owners = [...this.#owners.values()];
    this.#owners.clear();
    this.#leaving.clear();
    await Promise.all(owners.map((owner) => owner.forget()));
  }

  /** Hands everything over; what is on its way is waited for until the signal aborts. */
  async close(signal: AbortSignal): Promise<void> {
    this.#closed = true;
    await Promise.race([
      this.settled(),
      new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true })),
    ]);
    await Promise.all(
      [...this.#owners.values(), ...this.#leaving.values()].map((owner) => this.#release(owner, signal)),
    );
    this.#owners.clear();
    this.#leaving.clear();
  }

  #rebalance(partition: number): void {
    const isMine = this.#host.isMine(partition);
    const owner = this.#owners.get(partition);
    if (this.#moves.has(partition)) {
      this.#again.add(partition);
      if (!isMine && owner !== undefined) owner.giveUpOpening();
      return;
    }
    if (isMine ? owner !== undefined : owner === undefined && !this.#leaving.has(partition)) return;
    const move = this.#move(partition)
      .catch((error: unknown) => {
        this.#host.log.error({ err: error, partition }, 'the partition could not be moved; tried again in a second');
      })
      .finally(() => {
        this.#moves.delete(partition);
        if (this.#again.delete(partition) && !this.#closed && this.#host.isMember()) this.#rebalance(partition);
      });
    this.#moves.set(partition, move);
  }

  async #move(partition: number): Promise<void> {
    if (this.#host.isMine(partition)) {
      this.#leaving.delete(partition);
      await this.#take(partition);
      return;
    }
    const owner = this.#owners.get(partition) ?? this.#leaving.get(partition);
    if (owner === undefined) return;
    this.#owners.delete(partition);
    this.#leaving.set(partition, owner);
    const { signal, end } = deadlineIn(this.#host.time, RELEASE_MS);
    try {
      const isFree = await this.#release(owner, AbortSignal.any([this.#host.membershipOver(), signal]));
      if (isFree && this.#leaving.get(partition) === owner) this.#leaving.delete(partition);
    } finally {
      end();
    }
  }

  /** False: to be tried again, for nobody else can open the partition while this member lives. */
  async #release(owner: PartitionOwner, signal: AbortSignal): Promise<boolean> {
    try {
      return await owner.release(signal);
    } catch (error) {
      this.#host.log.warn({ err: error, partition: owner.number }, 'the partition is not handed over yet');
      return false;
    }
  }

  async #take(partition: number): Promise<void> {
    const { log, time } = this.#host;
    const owner = this.#ownerFor(partition);
    this.#owners.set(partition, owner);
    const callOff = time.after(OPEN_MS, () => owner.giveUpOpening());
    try {
      if (await owner.open()) return;
    } catch (error) {
      // Where it belongs to another by now, this was called off.
      if (this.#host.isMine(partition))
        log.error({ err: error, partition }, 'the partition could not be opened; tried again in a second');
    } finally {
      callOff();
    }
    // Its log may name this member.
    if (this.#owners.get(partition) === owner) {
      this.#owners.delete(partition);
      this.#leaving.set(partition, owner);
    }
    await owner.forget();
  }

  #ownerFor(partition: number): PartitionOwner {
    return this.#host.ownerFor(partition, (owner, reason) => {
      if (this.#owners.get(partition) === owner) this.#owners.delete(partition);
      // What has failed here may fail at once again: such a partition is opened anew by the next tick.
      if (reason === 'another') this.rebalance();
    });
  }

  /**
   * A broker that lost its power may have forgotten that this member released a partition: then the log names a living
   * member who knows nothing of it. So each member looks at the partitions of the others from time to time.
   */
  #lookAtOthers(): void {
    const { time, partitions, isMine } = this.#host;
    const now = time.bootNow();
    if (now - this.#lookedAtMs < LOOK_MS) return;
    this.#lookedAtMs = now;
    for (let partition = 0; partition < partitions; partition++) {
      if (!isMine(partition) && !this.#owners.has(partition) && !this.#leaving.has(partition))
        this.#leaving.set(partition, this.#ownerFor(partition));
    }
  }
}
