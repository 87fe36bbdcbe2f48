/**
 * Finds many byte strings in a text at once, at a fraction of the cost of looking at every byte (Wu and Manber): the last bytes
 * of a window that is as long as the shortest needle say how far the window may move before any needle can begin.
 *
 * SCANNER-1. At each position the longest needle that stands there is found; those that overlap are found each.
 * SCANNER-2. The time for a position is bounded by the logarithm of the number of needles and their length, whatever they are: they
 *     are whatever a tenant has set, and the output is whatever its stage prints.
 */

const WINDOW_MAX = 32;
const HASH_BITS = 16;
/** Knuth's: spreads what differs in few bits. */
const SPREAD = 0x9e3779b1;
/** In a window this long three bytes are looked at, else two: a text of three known bytes is rarer, and the step is shorter. */
const LONG_WINDOW = 6;

/** What a search consists of, made of its needles. */
export interface ScannerTables {
  /** Of all needles. */
  readonly text: Uint8Array;
  readonly starts: Int32Array;
  /** For each needle the longest other one that it begins with; -1: none. */
  readonly parents: Int32Array;
  /** Where the needles of two first bytes begin among all; they end where the next ones begin. */
  readonly buckets: Int32Array;
  /**
   * For each needle how much it has in common with the one just below and the one just above those that are left when the search
   * within its bucket comes to it.
   */
  readonly shared: Uint8Array;
  readonly shifts: Uint8Array;
  /** Of the longest needle. */
  readonly lengthMax: number;
  readonly window: number;
}

/** At least one, as `needlesOf` gives them. */
export function scannerTables(needles: readonly Buffer[]): ScannerTables {
  const starts = new Int32Array(needles.length + 1);
  for (const [index, needle] of needles.entries()) starts[index + 1] = (starts[index] ?? 0) + needle.length;
  const text = new Uint8Array(starts.at(-1) ?? 0);
  for (const [index, needle] of needles.entries()) text.set(needle, starts[index]);
  const lengths = lengthsOf(needles);
  const window = Math.min(WINDOW_MAX, ...lengths);
  const buckets = bucketsOf(needles);
  return {
    text,
    starts,
    buckets,
    parents: parentsOf(needles),
    shared: sharedOf(needles, buckets),
    shifts: shiftsOf(needles, window, window >= LONG_WINDOW),
    lengthMax: Math.max(...lengths),
    window,
  };
}

/** What finds values in a text. */
export interface Search {
  /** Of the longest needle. */
  readonly lengthMax: number;
  /** Calls back for each place where a needle stands, in their order. */
  find(text: Uint8Array, found: (start: number, end: number) => void): void;
  /** The first position from which on the text is the beginning of a needle, and not yet the whole; the text's length: none. */
  openFrom(text: Uint8Array): number;
}

export class MaskScanner implements Search {
  readonly lengthMax: number;
  readonly #text: Uint8Array;
  readonly #starts: Int32Array;
  readonly #parents: Int32Array;
  readonly #buckets: Int32Array;
  readonly #shared: Uint8Array;
  readonly #window: number;
  readonly #isLong: boolean;
  readonly #shifts: Uint8Array;

  constructor({ text, starts, parents, buckets, shared, shifts, lengthMax, window }: ScannerTables) {
    this.#text = text;
    this.#starts = starts;
    this.#parents = parents;
    this.#buckets = buckets;
    this.#shared = shared;
    this.#shifts = shifts;
    this.lengthMax = lengthMax;
    this.#window = window;
    this.#isLong = window >= LONG_WINDOW;
  }

  static of(needles: readonly Buffer[]): MaskScanner {
    return new MaskScanner(scannerTables(needles));
  }

  find(text: Uint8Array, found: (start: number, end: number) => void): void {
    const shifts = this.#shifts;
    const back = this.#window - 1;
    const last = text.length;
    const isLong = this.#isLong;
    for (let at = back; at < last;) {
      const hash = isLong
        ? hashOf(((text[at - 2] as number) << 16) | ((text[at - 1] as number) << 8) | (text[at] as number))
        : ((text[at - 1] as number) << 8) | (text[at] as number);
      const shift = shifts[hash] as number;
      if (shift > 0) {
        at += shift;
        continue;
      }
      const end = this.#matchAt(text, at - back);
      if (end > 0) found(at - back, end);
      at += 1;
    }
  }

  openFrom(text: Uint8Array): number {
    for (let at = Math.max(0, text.length - this.lengthMax + 1); at < text.length; at += 1)
      if (this.#isBeginning(text, at)) return at;
    return text.length;
  }

  /** Where the longest needle ends that stands at this position; 0: none does. */
  #matchAt(text: Uint8Array, at: number): number {
    const bucket = ((text[at] as number) << 8) | (text[at + 1] as number);
    const from = this.#buckets[bucket] as number;
    // The last needle that is not behind the text in the order: what stands here is that one or what it begins with.
    let [low, high] = [from, this.#buckets[bucket + 1] as number];
    const end = high;
    // How much the text has in common with the needles just below and above those that are left: what these have in common with the
    // one in the middle mostly tells on which side of it the text is, and no byte is looked at twice.
    let [below, above] = [0, 0];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const isByLow = below >= above;
      const known = isByLow ? below : above;
      const shared = (isByLow ? low === from : high === end)
        ? known
        : (this.#shared[2 * middle + (isByLow ? 0 : 1)] as number);
      const common = shared === known ? this.#commonLength(middle, text, at, known) : Math.min(shared, known);
      const isNotBehind =
        shared === known ? this.#isNotBehind(middle, text, at, common) : isByLow ? shared > known : shared < known;
      if (isNotBehind) {
        low = middle + 1;
        below = common;
      } else {
        high = middle;
        above = common;
      }
    }
    for (let needle = low - 1; needle >= from; needle = this.#parents[needle] as number) {
      const length = this.#lengthOf(needle);
      if (length <= below) return at + length;
    }
    return 0;
  }

  #isBeginning(text: Uint8Array, at: number): boolean {
    const first = text[at] as number;
    const second = text[at + 1];
    // Of a single byte every needle that begins with it.
    let low = this.#buckets[second === undefined ? first << 8 : (first << 8) | second] as number;
    const end = this.#buckets[second === undefined ? (first + 1) << 8 : ((first << 8) | second) + 1] as number;
    let high = end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const common = this.#commonLength(middle, text, at);
      if (this.#isNotBehind(middle, text, at, common) && !(common === text.length - at)) low = middle + 1;
      else high = middle;
    }
    // The needles that begin with it follow each other; the first may be all of it.
    for (let needle = low; needle < end && needle <= low + 1; needle += 1) {
      const length = text.length - at;
      if (this.#lengthOf(needle) > length && this.#commonLength(needle, text, at) === length) return true;
    }
    return false;
  }

  /** Whether a needle is what stands here, or the beginning of it, or before it in the order; `common`: so long they are alike. */
  #isNotBehind(needle: number, text: Uint8Array, at: number, common: number): boolean {
    if (common === this.#lengthOf(needle)) return true;
    if (at + common === text.length) return false;
    return (this.#text[(this.#starts[needle] as number) + common] as number) < (text[at + common] as number);
  }

  /** `from`: so long they are known to be alike. */
  #commonLength(needle: number, text: Uint8Array, at: number, from = 0): number {
    const start = this.#starts[needle] as number;
    const length = Math.min(this.#lengthOf(needle), text.length - at);
    let common = from;
    while (common < length && this.#text[start + common] === text[at + common]) common += 1;
    return common;
  }

  #lengthOf(needle: number): number {
    return (this.#starts[needle + 1] as number) - (this.#starts[needle] as number);
  }
}

/** Those of several searches, as of one. */
export function joinedSearch(searches: readonly Search[]): Search | null {
  const [first, second, ...rest] = searches;
  if (first === undefined || second === undefined) return first ?? null;
  const both: Search = {
    lengthMax: Math.max(first.lengthMax, second.lengthMax),
    find: (text, found) => {
      const spans: (readonly [start: number, end: number])[] = [];
      first.find(text, (start, end) => void spans.push([start, end]));
      let next = 0;
      const tellUpTo = (before: number): void => {
        for (let span = spans[next]; span !== undefined && span[0] <= before; span = spans[next]) {
          found(...span);
          next += 1;
        }
      };
      second.find(text, (start, end) => {
        tellUpTo(start);
        found(start, end);
      });
      tellUpTo(text.length);
    },
    openFrom: (text) => Math.min(first.openFrom(text), second.openFrom(text)),
  };
  return joinedSearch([both, ...rest]);
}

function lengthsOf(needles: readonly Buffer[]): Set<number> {
  return new Set(needles.map(({ length }) => length));
}

function hashOf(bytes: number): number {
  return Math.imul(bytes, SPREAD) >>> (32 - HASH_BITS);
}

function shiftsOf(needles: readonly Buffer[], window: number, isLong: boolean): Uint8Array {
  const block = isLong ? 3 : 2;
  const shifts = new Uint8Array(2 ** HASH_BITS).fill(window - block + 1);
  for (const needle of needles) {
    for (let at = block - 1; at < window; at += 1) {
      const low = ((needle[at - 1] as number) << 8) | (needle[at] as number);
      const hash = isLong ? hashOf(((needle[at - 2] as number) << 16) | low) : low;
      shifts[hash] = Math.min(shifts[hash] as number, window - 1 - at);
    }
  }
  return shifts;
}

/** Those that a needle begins with stand before it, and so on the way to it. */
function parentsOf(needles: readonly Buffer[]): Int32Array {
  const parents = new Int32Array(needles.length);
  const open: number[] = [];
  for (const [index, needle] of needles.entries()) {
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const above = needles[top] as Buffer;
      if (above.compare(needle, 0, Math.min(above.length, needle.length)) === 0) break;
      open.pop();
    }
    parents[index] = open.at(-1) ?? -1;
    open.push(index);
  }
  return parents;
}

function bucketsOf(needles: readonly Buffer[]): Int32Array {
  const buckets = new Int32Array(2 ** 16 + 1);
  for (const needle of needles) {
    const bucket = needle.readUInt16BE(0) + 1;
    buckets[bucket] = (buckets[bucket] as number) + 1;
  }
  for (let bucket = 1; bucket < buckets.length; bucket += 1)
    buckets[bucket] = (buckets[bucket] as number) + (buckets[bucket - 1] as number);
  return buckets;
}

/** Needles are shorter than 256 bytes. */
function sharedOf(needles: readonly Buffer[], buckets: Int32Array): Uint8Array {
  const shared = new Uint8Array(2 * needles.length);
  for (let bucket = 0; bucket + 1 < buckets.length; bucket += 1) {
    const from = buckets[bucket] as number;
    const end = buckets[bucket + 1] as number;
    const fill = (low: number, high: number): void => {
      if (low >= high) return;
      const middle = (low + high) >>> 1;
      if (low > from) shared[2 * middle] = commonOf(needles[low - 1] as Buffer, needles[middle] as Buffer);
      if (high < end) shared[2 * middle + 1] = commonOf(needles[middle] as Buffer, needles[high] as Buffer);
      fill(low, middle);
      fill(middle + 1, high);
    };
    fill(from, end);
  }
  return shared;
}

function commonOf(one: Buffer, other: Buffer): number {
  const length = Math.min(one.length, other.length);
  let common = 0;
  while (common < length && one[common] === other[common]) common += 1;
  return common;
}
