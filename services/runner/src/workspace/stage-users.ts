/**
 * The users that stages run as: a number for each key, from a range that nothing else on the machine uses, so that no stage
 * reaches what another key's stages have written, or signals their processes.
 *
 * STAGEUSERS-1. Two keys never have one number at a time, and no number that owns a folder is given to another key.
 * STAGEUSERS-2. A key keeps its number while it has a stage or a folder here. When the range is used up, the numbers of all other
 *     keys come back at once: however many keys there have been, only those that are in use count.
 */
import type { StageUser } from '@penstock/executor';
import type { UidRange } from '../executors/executor-source.ts';
import { NotPrepared } from './errors.ts';

/** What must keep its number. */
export interface NumbersInUse {
  /** With a stage that is being prepared or runs. */
  readonly keys: ReadonlySet<string>;
  /** The owners of the folders that are there. */
  readonly uids: ReadonlySet<number>;
}

export class StageUsers {
  readonly #range: UidRange;
  readonly #inUse: () => NumbersInUse;
  readonly #users = new Map<string, StageUser>();
  /** Not given to a key at this moment, the next one last. */
  #free: number[] = [];

  constructor(range: UidRange, inUse: () => NumbersInUse) {
    this.#range = range;
    this.#inUse = inUse;
    this.#collectFree();
  }

  /** Throws NotPrepared where all numbers are in use. */
  userOf(key: string): StageUser {
    const known = this.#users.get(key);
    if (known !== undefined) return known;
    if (this.#free.length === 0) this.#collectFree();
    const uid = this.#free.pop();
    if (uid === undefined)
      throw new NotPrepared(
        `all user numbers of this runner (${this.#range.first} to ${this.#range.last}) are in use; widen SERVICE_STAGE_UIDS, or try again when other runs have ended`,
      );
    const user = { uid, gid: uid };
    this.#users.set(key, user);
    return user;
  }

  /** One look at all folders for as many numbers as there are. */
  #collectFree(): void {
    const { keys, uids } = this.#inUse();
    for (const [key, { uid }] of this.#users) if (!keys.has(key) && !uids.has(uid)) this.#users.delete(key);
    const given = new Set([...this.#users.values()].map(({ uid }) => uid));
    const { first, last } = this.#range;
    const found: number[] = [];
    for (let uid = first; uid <= last && found.length < COLLECTED_MAX; uid += 1)
      if (!given.has(uid) && !uids.has(uid)) found.push(uid);
    this.#free = found.reverse();
  }
}

/** A range may hold billions; so many last for a while. */
const COLLECTED_MAX = 65_536;
