/**
 * The next push of a lane, decided about while the one before it is carried out, and the commits of those behind it, fetched meanwhile: the
 * store, the broker, git and the thread with the mirrors are waited for one beside the other, and not one after the other.
 *
 * PUSHAHEAD-1 Nothing of it is stored or told before its turn (PROCESSING-1). What is taken over then is a run alone, and one that was found a moment
 *     ago: what could not be read is read again in its turn, and so is the head of a pull request.
 * PUSHAHEAD-2 Of a lane one is decided about ahead, and one fetch is under way, after a push before it became a run: its host answers. None of it is
 *     begun while others want the time (PROCESSING-5, PROCESSING-6).
 * PUSHAHEAD-3 Of all lanes together `DECIDED_MAX` are: a decision holds a file, and where many lanes take turns it is an old one when its turn comes.
 *     `FETCHING_MAX` fetches are under way: those of pushes in their turn and of stages wait in the same line, which is not endless.
 */
import type { Decision } from '../model/decision.ts';
import type { Delivery } from '../model/delivery.ts';

export interface AheadOptions {
  /** `behind`: what waits behind it. */
  decide(delivery: Delivery, behind: readonly Delivery[]): Promise<Decision>;
  /** Has its commit fetched, and those behind it. */
  fetch(delivery: Delivery, behind: readonly Delivery[]): Promise<void>;
  /** Whether there is time for it. */
  isFree(): boolean;
  now(): number;
}

interface Ahead {
  readonly id: string;
  readonly decided: Promise<Decision | null>;
  /** When it was known; undefined: it is under way. */
  decidedAt: number | undefined;
}

/** Where the one before it fails, or its run finds no room, its own turn may come much later. */
const FRESH_MS = 2_000;
/** PUSHAHEAD-3 */
const DECIDED_MAX = 8;
const FETCHING_MAX = 4;
/** As many as one fetch brings along are processed meanwhile. */
const FETCHED_AHEAD = 15;
/** Behind the one that is fetched: a fetch of fewer is a process more for each of them. */
const WORTH_A_FETCH = 7;

export class DecidingAhead {
  readonly #options: AheadOptions;
  /** By lane. */
  readonly #ahead = new Map<string, Ahead>();
  /** By lane: the last that came along, or is to. */
  readonly #fetched = new Map<string, string>();
  readonly #fetching = new Set<string>();

  constructor(options: AheadOptions) {
    this.#options = options;
  }

  /** A push of the lane has become a run; `behind`: what is behind it, the next first. */
  begin(lane: string, behind: readonly Delivery[]): void {
    if (!this.#options.isFree()) return;
    this.#decide(lane, behind);
    this.#fetch(lane, behind);
  }

  /** Null: it is to be decided about now. */
  async take(lane: string, { id }: Delivery): Promise<Decision | null> {
    const ahead = this.#ahead.get(lane);
    this.#ahead.delete(lane);
    return ahead?.id === id && this.#isFresh(ahead) ? await ahead.decided : null;
  }

  /** Nothing is in it any more. */
  forget(lane: string): void {
    this.#ahead.delete(lane);
    this.#fetched.delete(lane);
  }

  #decide(lane: string, [next, ...behind]: readonly Delivery[]): void {
    if (next === undefined || !isPush(next)) return;
    for (const [other, ahead] of this.#ahead) if (!this.#isFresh(ahead)) this.#ahead.delete(other);
    if (this.#ahead.size >= DECIDED_MAX) return;
    const ahead: Ahead = {
      id: next.id,
      decidedAt: undefined,
      decided: this.#options.decide(next, behind).then(
        (decision) => {
          ahead.decidedAt = this.#options.now();
          return decision.kind === 'run' ? decision : null;
        },
        () => null,
      ),
    };
    this.#ahead.set(lane, ahead);
  }

  #isFresh({ decidedAt }: Ahead): boolean {
    return decidedAt === undefined || this.#options.now() - decidedAt < FRESH_MS;
  }

  #fetch(lane: string, behind: readonly Delivery[]): void {
    if (this.#fetching.has(lane) || this.#fetching.size >= FETCHING_MAX) return;
    const last = this.#fetched.get(lane);
    // The first fetch of a lane is that of a push in its turn, with those that come along.
    const from = last === undefined ? FETCHED_AHEAD : 1 + behind.findIndex(({ id }) => id === last);
    const [next, ...others] = from > FETCHED_AHEAD ? [] : behind.slice(from, from + 1 + FETCHED_AHEAD);
    if (next === undefined || !isPush(next) || others.length < WORTH_A_FETCH) return;
    this.#fetched.set(lane, others.at(-1)?.id ?? next.id);
    this.#fetching.add(lane);
    this.#options
      .fetch(next, others)
      // In its turn it says why.
      .catch(() => {})
      .finally(() => this.#fetching.delete(lane));
  }
}

function isPush({ pullRequest, ended }: Delivery): boolean {
  return pullRequest === undefined && ended === undefined;
}
