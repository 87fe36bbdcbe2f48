/**
 * The users that stages run as: a number for each key, from a range that nothing else on the machine uses, so that no stage
 * reaches what another key's stages have written, or signals their processes.
 *
 * STAGEUSERS-1. Two keys never have one number at a time. Numbers that own a folder of an earlier start are not given out anew.
 * STAGEUSERS-2. A key has its number for as long as this runner lives.
 */
import type { StageUser } from '@penstock/executor';
import { NotPrepared } from './errors.ts';

export interface UidRange {
  readonly first: number;
  readonly last: number;
}

export class StageUsers {
  readonly #range: UidRange;
  readonly #reserved: ReadonlySet<number>;
  readonly #users = new Map<string, StageUser>();
  #next: number;

  /** `reserved`: the owners of folders that are there already. */
  constructor(range: UidRange, reserved: ReadonlySet<number>) {
    this.#range = range;
    this.#reserved = reserved;
    this.#next = range.first;
  }

  /** Throws NotPrepared where all numbers have been given away. */
  userOf(key: string): StageUser {
    const known = this.#users.get(key);
    if (known !== undefined) return known;
    while (this.#reserved.has(this.#next)) this.#next += 1;
    if (this.#next > this.#range.last)
      throw new NotPrepared(
        `this runner has given away all its user numbers (${this.#range.first} to ${this.#range.last}); widen SERVICE_STAGE_UIDS or start it again`,
      );
    const user = { uid: this.#next, gid: this.#next };
    this.#next += 1;
    this.#users.set(key, user);
    return user;
  }
}
