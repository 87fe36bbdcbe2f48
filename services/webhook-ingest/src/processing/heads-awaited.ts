/**
 * How long a delivery of a pull request is held for its ref to stand at its commit (P27): hosts tell of a head and move its ref in any order.
 *
 *  HEADS-1 A ref that gets there within a minute of the time at which the delivery was first seen here is seen there. The minute is of a clock
 *     that nobody sets, and passes while the delivery waits for its turn as well: many that moved on take one minute together.
 *  HEADS-2 Not waited for is a head that moved on: by what the host has told since, the commit at which the ref stands came after it.
 *     What it has told without the commit before, or has not told yet, says nothing.
 *  HEADS-3 So many are waited for of a key: whoever has more costs nobody else a head.
 */
import { bootMs } from '@penstock/async';
import type { Delivery } from '../model/delivery.ts';

/** For so long a ref is looked at that does not stand at the delivery's commit. */
const HEAD_MS = 60_000;
/** Of one key; more are looked at once. */
const AWAITED_OF_KEY_MAX = 500;
/** Of all keys, of which one takes no more than a hundredth. */
const AWAITED_MAX = 100 * AWAITED_OF_KEY_MAX;
/** What nobody asks for any more by then was decided elsewhere. */
const FORGOTTEN_MS = 10 * HEAD_MS;

export class HeadsAwaited {
  readonly #now: () => number;
  /** By their deliveries' ids, the first first. */
  readonly #awaited = new Map<string, { readonly key: string; readonly since: number }>();
  /** How many of each key. */
  readonly #ofKey = new Map<string, number>();

  constructor(now: () => number = bootMs) {
    this.#now = now;
  }

  /** Whether the ref, which stands at `head`, may get to the delivery's commit yet. `behind`: what waits after it, in order. */
  mayMove(delivery: Delivery, head: string | null, behind: readonly Delivery[]): boolean {
    const later = behind.filter((each) => isOfSame(each, delivery));
    for (const each of [delivery, ...later]) this.#await(each);
    const since = this.#awaited.get(delivery.id)?.since;
    return since !== undefined && this.#now() - since < HEAD_MS && !hasMovedOn(delivery.commit, head, later);
  }

  /** It is decided about. */
  forget(id: string): void {
    const key = this.#awaited.get(id)?.key;
    if (key === undefined) return;
    this.#awaited.delete(id);
    const left = (this.#ofKey.get(key) ?? 1) - 1;
    if (left > 0) this.#ofKey.set(key, left);
    else this.#ofKey.delete(key);
  }

  #await({ id, key }: Delivery): void {
    if (this.#awaited.has(id)) return;
    const now = this.#now();
    for (const [oldest, { since }] of this.#awaited) {
      if (now - since < FORGOTTEN_MS) break;
      this.forget(oldest);
    }
    const ofKey = this.#ofKey.get(key) ?? 0;
    if (ofKey >= AWAITED_OF_KEY_MAX || this.#awaited.size >= AWAITED_MAX) return;
    this.#awaited.set(id, { key, since: now });
    this.#ofKey.set(key, ofKey + 1);
  }
}

/** Lanes are shared by several. */
function isOfSame({ key, provider, repository, pullRequest }: Delivery, other: Delivery): boolean {
  return (
    pullRequest?.number === other.pullRequest?.number &&
    key === other.key &&
    provider === other.provider &&
    repository === other.repository
  );
}

/** HEADS-2 */
function hasMovedOn(commit: string, head: string | null, later: readonly Delivery[]): boolean {
  const after = new Set([commit]);
  for (const { pullRequest, commit: next } of later)
    if (pullRequest?.before !== undefined && after.has(pullRequest.before)) after.add(next);
  return head !== null && head !== commit && after.has(head);
}
