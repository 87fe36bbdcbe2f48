/**
 * How often each client has asked within the last minute. It owns the counts of one tier, in memory, and nothing else;
 * whose request it is and what becomes of a refused one is for others.
 *
 * RATELIMIT-1 A sliding window: of any 60 s, a client is granted at most `budget` requests, wherever those 60 s begin. (A window
 *     with fixed borders would grant twice as many around a border, a bucket that refills as it is emptied the 241st.)
 * RATELIMIT-2 A refused request counts for nothing: a client that goes on asking is granted again as soon as one that waits.
 * RATELIMIT-3 Requests of about two seconds are kept as one count with the time of the last of them, which all leave the window
 *     with: a client costs at most 31 counts, whatever its budget, and is never granted more than RATELIMIT-1.
 * RATELIMIT-4 At most `clientsMax` clients are known: those heard of since the last turn, and in the turn before. A turn ends after
 *     a minute, or with half of that many clients. (One map in the order of use would do the same, but the first entry of
 *     a map that is emptied from its front is slow to find.) Who can make others forgotten has as many addresses, and
 *     each of them a budget anyway.
 */

export const WINDOW_MS = 60_000;
/** RATELIMIT-3: a thirtieth of the window is what a client may have to wait longer than with exact times. */
const CELL_MS = 2_000;
/** Each holds 0.3 to 0.5 KiB, so 15 to 26 MiB for a tier under attack from everywhere (measured); far more clients than a gateway really has. */
export const CLIENTS_MAX = 50_000;

export interface Decision {
  readonly granted: boolean;
  /** Of the budget, after this request. */
  readonly remaining: number;
  /** Where it is refused: whole seconds until one would be granted, 1 to 60. Else 0. */
  readonly retryAfterSecs: number;
}

export class RateLimiter {
  readonly #turnClientsMax: number;
  #turn = new Map<string, Window>();
  #turnBefore = new Map<string, Window>();
  #turnSinceMs = Number.NEGATIVE_INFINITY;

  constructor(clientsMax = CLIENTS_MAX) {
    this.#turnClientsMax = Math.max(1, Math.floor(clientsMax / 2));
  }

  /** Clients that are remembered (RATELIMIT-4). */
  get size(): number {
    return this.#turn.size + this.#turnBefore.size;
  }

  /** `nowMs` of a clock that never goes back; `budget` is 1 or more. */
  ask(client: string, budget: number, nowMs: number): Decision {
    const window = this.#windowOf(client, nowMs);
    window.forgetBefore(nowMs - WINDOW_MS);
    const granted = window.count < budget;
    if (granted) window.add(nowMs);
    return {
      granted,
      remaining: Math.max(0, budget - window.count),
      retryAfterSecs: granted
        ? 0
        : Math.max(1, Math.ceil((window.timeOf(window.count - budget) + WINDOW_MS - nowMs) / 1000)),
    };
  }

  /** What was granted at that time counts for nothing after all. */
  giveBack(client: string, atMs: number): void {
    (this.#turn.get(client) ?? this.#turnBefore.get(client))?.giveBack(atMs);
  }

  #windowOf(client: string, nowMs: number): Window {
    if (nowMs - this.#turnSinceMs >= WINDOW_MS) this.#beginTurn(nowMs);
    const known = this.#turn.get(client);
    if (known !== undefined) return known;
    if (this.#turn.size >= this.#turnClientsMax) this.#beginTurn(nowMs);
    const window = this.#turnBefore.get(client) ?? new Window();
    this.#turnBefore.delete(client);
    this.#turn.set(client, window);
    return window;
  }

  #beginTurn(nowMs: number): void {
    this.#turnBefore = this.#turn;
    this.#turn = new Map();
    this.#turnSinceMs = nowMs;
  }
}

/** One client's granted requests of the last minute, oldest first: pairs of a time and a count in one flat list. */
class Window {
  readonly #cells: number[] = [];
  count = 0;

  /** Of the newest request; before the first, never. */
  get lastMs(): number {
    return this.#cells.at(-2) ?? Number.NEGATIVE_INFINITY;
  }

  add(nowMs: number): void {
    this.count += 1;
    const end = this.#cells.length;
    if (end > 0 && Math.floor(this.lastMs / CELL_MS) === Math.floor(nowMs / CELL_MS)) {
      this.#cells[end - 2] = nowMs;
      this.#cells[end - 1] = (this.#cells[end - 1] ?? 0) + 1;
    } else {
      this.#cells.push(nowMs, 1);
    }
  }

  giveBack(timeMs: number): void {
    const cell = Math.floor(timeMs / CELL_MS);
    for (let at = this.#cells.length - 2; at >= 0; at -= 2) {
      const ofCell = Math.floor((this.#cells[at] ?? 0) / CELL_MS);
      if (ofCell < cell) return;
      if (ofCell > cell) continue;
      const left = (this.#cells[at + 1] ?? 0) - 1;
      this.count -= 1;
      if (left > 0) this.#cells[at + 1] = left;
      else this.#cells.splice(at, 2);
      return;
    }
  }

  /** Requests at `timeMs` or before are not of the window any more. */
  forgetBefore(timeMs: number): void {
    let gone = 0;
    while (gone < this.#cells.length && (this.#cells[gone] ?? 0) <= timeMs) {
      this.count -= this.#cells[gone + 1] ?? 0;
      gone += 2;
    }
    if (gone > 0) this.#cells.splice(0, gone);
  }

  /** The time that the request with this index, from the oldest, is counted at. */
  timeOf(index: number): number {
    let before = 0;
    for (let at = 0; at < this.#cells.length; at += 2) {
      before += this.#cells[at + 1] ?? 0;
      if (before > index) return this.#cells[at] ?? 0;
    }
    return this.lastMs;
  }
}
