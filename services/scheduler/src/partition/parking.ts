/**
 * Runs that wait outside of memory: what is admitted by size must not be refused or restored by number. While the live runs take
 * nearly all that they may, a new run whose stages only wait is parked: it is not offered to runners, and leaves memory as soon as
 * its document is written. Parked runs come back as room comes. Owns who is parked, in which order they come, and what is read for it.
 *
 *  PARKING-1 A parked run is in memory, offered to nobody, or out of it; out of it, its document is all of it, and open (P6).
 *  PARKING-2 Runs of a key come back in the order in which they got to go on, which is that of their creation but for groups, and keys
 *     take turns; while one of a key is parked that goes on, its new runs are parked behind it.
 *  PARKING-3 A key with parked runs has at least one run that goes on, or one on its way, as long as there is any memory left; where
 *     others wait for the concurrency slots of parked ones, whatever memory is left.
 *  PARKING-5 A held run, which waits for its turn, stays outside until its turn has come: then it stands behind those that go on, unless
 *     its turn is taken back before it is on its way.
 *  PARKING-4 Whoever asks for a parked run gets it: it is read for the answer, or comes back for what is to happen to it. Keys take turns
 *     here too, and of what waits to be read each has its share.
 */
import { FairQueue, FairRoom } from '@penstock/async';
import type { RunId } from '@penstock/run';
import { Heap } from '../run/heap.ts';
import { invariant } from '../run/invariant.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { ParkedRun } from '../run/parked-run.ts';
import { hasNoBytesLeft, isTight, type SchedulerLoad } from '../run/scheduler-load.ts';
import { WideMap } from '../run/wide-map.ts';

/** Documents read at a time: each may be some MiB, and with its run twice that. */
const READS_AT_ONCE = 8;
/** Runs whose documents wait to be read; what comes on top is to be asked again. */
const READS = { shared: 1_000, own: 10 };
/** Askers of one of them. */
const ASKERS_MAX = 100;
/** Runs whose waits are over that come back in one tick, those that are found to be so, and runs or keys that are looked at in one turn. */
const DUE_AT_ONCE = 500;
const DUE_FOUND_AT_ONCE = 5_000;
const LOOKS_AT_ONCE = 256;
const DUE_ROOM = 1_024;

/** `unavailable`: the store does not answer, or too many ask. */
export type ReadRun = LiveRun | 'unavailable';

export interface ParkingHost {
  /** Counts also what is on its way. */
  readonly load: SchedulerLoad;
  bytesOfKey(key: string): number;
  /** How many runs of the key in memory have a concurrency slot, and whether others wait for one. */
  slotsOf(key: string): { readonly taken: number; readonly areWanted: boolean };
  read(runId: RunId, then: (run: ReadRun) => void): void;
  /** It is in memory, and goes on like any other from now on. */
  unparked(runId: RunId): void;
  /** It comes back, as it was when it left. */
  enter(run: LiveRun, parked: ParkedRun): void;
  /** Something may follow from what has come back by itself. */
  advance(): void;
  /** What the store has is not what was parked. */
  broken(error: unknown): void;
}

interface Entry {
  readonly id: RunId;
  readonly key: string;
  /** It waits for its turn, and in no line. */
  isHeld: boolean;
  /** Undefined: it is in memory still. */
  out: ParkedRun | undefined;
  /** It is on its way; these wait for it. */
  coming: ((isThere: boolean) => void)[] | undefined;
}

interface Line {
  /** Oldest first; those that are no entries any more, or on their way, are passed over. */
  readonly entries: Entry[];
  head: number;
  /** How many of the key are parked in memory, and how many on their way. */
  inMemory: number;
  coming: number;
  /** About what these take. */
  comingBytes: number;
}

export class Parking {
  readonly #host: ParkingHost;
  readonly #entries = new WideMap<RunId, Entry>((id) => id);
  readonly #lines = new Map<string, Line>();
  /** Keys whose next run may come, in turn; one that has all it may have is put back once something of it goes. */
  readonly #turns = new Set<string>();
  /** Keys of which nothing may be going on. */
  readonly #still = new Set<string>();
  /** Those that have come back are passed over. */
  #due = newDue();
  /** Those whose waits are over, which are to come back: keys take turns. */
  #toComeBack = new FairQueue<RunId>(Infinity, Infinity);
  readonly #reads = new Map<RunId, { readonly key: string; readonly askers: ((run: ReadRun) => void)[] }>();
  readonly #toRead = new FairQueue<RunId>(Infinity, Infinity);
  readonly #room = new FairRoom(READS);
  #reading = 0;
  #out = 0;
  #comingBytes = 0;
  #filling = false;
  #closed = false;

  constructor(host: ParkingHost) {
    this.#host = host;
  }

  /** Parked, in memory or out of it. */
  get size(): number {
    return this.#entries.size;
  }

  /** Those out of memory. */
  get out(): number {
    return this.#out;
  }

  has(runId: RunId): boolean {
    return this.#entries.has(runId);
  }

  /** What is known of one that is out of memory. */
  find(runId: RunId): ParkedRun | undefined {
    return this.#entries.get(runId)?.out;
  }

  /** How many of its key are to come before it, at most `max`; undefined: it is in no line. */
  before(runId: RunId, max: number): number | undefined {
    const entry = this.#entries.get(runId);
    const line = entry === undefined || entry.isHeld ? undefined : this.#lines.get(entry.key);
    if (line === undefined) return undefined;
    let before = 0;
    for (let index = line.head; index < line.entries.length && before < max; index++) {
      const other = line.entries[index] as Entry;
      if (other === entry) return before;
      if (this.#entries.get(other.id) === other) before += 1;
    }
    return before;
  }

  /** Whether a run of the key that begins to go on, or one that is to be held, has to wait outside. */
  isWanted(key: string, isHeld: boolean): boolean {
    const { load, bytesOfKey, slotsOf } = this.#host;
    return this.#lines.has(key) || (isTight(load, bytesOfKey(key)) && (isHeld || slotsOf(key).taken > 0));
  }

  /** Parks a run that is in memory. The youngest of those of its key that go on, or they come in their order. */
  park(run: LiveRun, isHeld: boolean): void {
    this.#add({ id: run.id, key: run.state.key, isHeld, out: undefined, coming: undefined });
  }

  /** The turn of a held run outside has come. */
  admitted(runId: RunId): void {
    const entry = this.#entries.get(runId);
    if (entry === undefined || !entry.isHeld) return;
    entry.isHeld = false;
    const line = this.#enterLine(entry);
    if (entry.out !== undefined) line.inMemory -= 1;
  }

  /** Its turn is taken back. What is on its way already comes, and waits in memory. */
  recalled(runId: RunId): void {
    const entry = this.#entries.get(runId);
    if (entry === undefined || entry.isHeld || entry.coming !== undefined) return;
    // The one in the line is passed over.
    this.#entries.set(runId, { ...entry, isHeld: true });
    this.#tidy(entry.key);
  }

  /** The run is out of memory. It may have been parked in it before. */
  left(parked: ParkedRun): void {
    let entry = this.#entries.get(parked.id);
    if (entry === undefined) {
      entry = { id: parked.id, key: parked.key, isHeld: parked.held, out: undefined, coming: undefined };
      this.#add(entry);
    }
    if (entry.out === undefined && !entry.isHeld) this.#lineOf(entry.key).inMemory -= 1;
    entry.out = parked;
    this.#out += 1;
    this.#pushDue(parked);
    if (this.#due.size > 2 * this.#out + DUE_ROOM) this.#tidyDue();
    if (!entry.isHeld) this.#mayCome(entry.key);
  }

  /** A run in memory that is to be parked no more: it has ended. */
  forget(runId: RunId): void {
    const entry = this.#entries.get(runId);
    if (entry !== undefined && entry.out === undefined) this.#remove(entry);
  }

  /** Something of the key has gone: the next one may come. */
  freed(key: string): void {
    if (this.#lines.has(key)) this.#mayCome(key);
  }

  /** About every second: those whose waits are over come back, so that they hear of it, and what did not answer is asked again. */
  tick(boot: number): void {
    for (let left = DUE_FOUND_AT_ONCE; left > 0; left -= 1) {
      const next = this.#due.peek();
      if (next === undefined || next.at > boot) break;
      this.#due.pop();
      const parked = this.find(next.id);
      if (parked !== undefined) this.#toComeBack.add(parked.key, next.id);
    }
    // What does not come is asked for again by the next tick.
    for (let left = Math.min(DUE_AT_ONCE, this.#toComeBack.size); left > 0; left -= 1) this.#comeBack();
    this.fill();
  }

  #comeBack(): void {
    const id = this.#toComeBack.next();
    const parked = id === undefined ? undefined : this.find(id);
    if (parked === undefined) return;
    this.bringBack(parked.id, (isThere) => {
      if (!isThere) this.#toComeBack.add(parked.key, parked.id);
    });
  }

  /** Brings back what there is room for. */
  fill(): void {
    if (this.#filling || this.#entries.size === 0) return;
    this.#filling = true;
    try {
      for (let left = LOOKS_AT_ONCE; left > 0 && this.#reading < READS_AT_ONCE; left -= 1) {
        const entry = this.#next();
        if (entry === undefined) return;
        this.#bring(entry);
      }
    } finally {
      this.#filling = false;
    }
  }

  /** The run comes back whatever room there is. False: not now. */
  bringBack(runId: RunId, then: (isThere: boolean) => void): void {
    const entry = this.#entries.get(runId);
    if (entry === undefined) {
      then(false);
      return;
    }
    if (entry.coming === undefined) this.#bring(entry, then);
    else entry.coming.push(then);
  }

  /** The run as it is parked, for an answer: nothing may be decided on it. */
  read(runId: RunId, then: (run: ReadRun) => void): void {
    const asked = this.#reads.get(runId);
    const key = this.#entries.get(runId)?.key ?? '';
    if (asked === undefined ? !this.#room.take(key, 1) : asked.askers.length >= ASKERS_MAX) then('unavailable');
    else if (asked === undefined) {
      this.#reads.set(runId, { key, askers: [then] });
      this.#toRead.add(key, runId);
      this.#readOn();
    } else asked.askers.push(then);
  }

  clear(): void {
    this.#closed = true;
    this.#host.load.liveBytes -= this.#comingBytes;
    this.#comingBytes = 0;
    this.#entries.clear();
    this.#lines.clear();
    this.#turns.clear();
    this.#still.clear();
    this.#out = 0;
  }

  /** `has`: whether a run is in memory. Throws InvariantBroken. */
  assertInvariants(has: (runId: RunId) => boolean): void {
    let out = 0;
    for (const entry of this.#entries.values()) {
      const facts = (): Record<string, unknown> => ({ run: entry.id, isOut: entry.out !== undefined });
      invariant(
        'PARKING-1',
        has(entry.id) === (entry.out === undefined),
        'a parked run is in two places or none',
        facts,
      );
      invariant('PARKING-1', entry.isHeld || this.#lines.has(entry.key), 'a parked run is in no line', facts);
      if (entry.out !== undefined) out += 1;
    }
    invariant('PARKING-1', out === this.#out, 'the runs outside are not those counted', () => ({
      out,
      counted: this.#out,
    }));
  }

  #add(entry: Entry): void {
    this.#entries.set(entry.id, entry);
    if (!entry.isHeld) this.#enterLine(entry);
  }

  #enterLine(entry: Entry): Line {
    const line = this.#lines.get(entry.key) ?? newLine();
    this.#lines.set(entry.key, line);
    line.entries.push(entry);
    line.inMemory += 1;
    this.#mayCome(entry.key);
    return line;
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.id);
    if (entry.out !== undefined) this.#out -= 1;
    else if (!entry.isHeld) this.#lineOf(entry.key).inMemory -= 1;
    this.#tidy(entry.key);
  }

  #pushDue({ id, dueAt }: ParkedRun): void {
    if (dueAt !== Number.POSITIVE_INFINITY) this.#due.push({ at: dueAt, id });
  }

  #tidy(key: string): void {
    const line = this.#lines.get(key);
    if (line === undefined) return;
    const { entries } = line;
    for (
      let entry = entries[line.head];
      entry !== undefined && this.#entries.get(entry.id) !== entry;
      entry = entries[line.head]
    )
      line.head += 1;
    if (line.head === entries.length && line.coming === 0) {
      this.#lines.delete(key);
      this.#turns.delete(key);
      this.#still.delete(key);
    } else if (line.head > 1_024 && line.head * 2 > entries.length) {
      entries.splice(0, line.head);
      line.head = 0;
    }
  }

  #tidyDue(): void {
    this.#due = newDue();
    this.#toComeBack = new FairQueue(Infinity, Infinity);
    for (const { out } of this.#entries.values()) if (out !== undefined) this.#pushDue(out);
  }

  #lineOf(key: string): Line {
    return this.#lines.get(key) ?? newLine();
  }

  #mayCome(key: string): void {
    this.#turns.add(key);
    this.#still.add(key);
  }

  /** The next to come, if any may. */
  #next(): Entry | undefined {
    const { load, bytesOfKey, slotsOf } = this.#host;
    let looks = LOOKS_AT_ONCE;
    for (const key of this.#still) {
      if ((looks -= 1) < 0) break;
      const line = this.#lines.get(key);
      this.#still.delete(key);
      if (line === undefined) continue;
      const { taken, areWanted } = slotsOf(key);
      if (taken - line.inMemory + line.coming > 0) continue;
      const entry = this.#oldest(line);
      if (entry === undefined) continue;
      if (!hasNoBytesLeft(load) || areWanted) return entry;
      this.#still.add(key);
    }
    if (isTight(load, 0)) return undefined;
    for (const key of this.#turns) {
      const line = this.#lines.get(key);
      this.#turns.delete(key);
      const isFull = line === undefined || isTight(load, bytesOfKey(key) + line.comingBytes);
      const entry = isFull ? undefined : this.#oldest(line);
      if (entry === undefined) continue;
      this.#turns.add(key);
      return entry;
    }
    return undefined;
  }

  #oldest(line: Line): Entry | undefined {
    for (let index = line.head; index < line.entries.length; index++) {
      const entry = line.entries[index] as Entry;
      if (this.#entries.get(entry.id) === entry && entry.coming === undefined) return entry;
    }
    return undefined;
  }

  #bring(entry: Entry, then?: (isThere: boolean) => void): void {
    const { id, out } = entry;
    if (out === undefined) {
      this.#remove(entry);
      this.#host.unparked(id);
      then?.(true);
      return;
    }
    entry.coming = then === undefined ? [] : [then];
    // Of a held one it is nobody's.
    const line = entry.isHeld ? newLine() : this.#lineOf(entry.key);
    this.#isComing(line, 1, out.bytes);
    this.read(id, (run) => {
      if (this.#closed) return;
      const waiting = entry.coming ?? [];
      entry.coming = undefined;
      this.#isComing(line, -1, -out.bytes);
      const isThere = run !== 'unavailable' && this.#isAsParked(run, out);
      if (isThere) {
        this.#remove(entry);
        this.#host.enter(run, out);
      }
      // What did not come is asked for again by the next tick.
      else if (!entry.isHeld) this.#mayCome(entry.key);
      for (const each of waiting) each(isThere);
      if (!isThere) return;
      this.fill();
      this.#host.advance();
    });
  }

  /** What is on its way counts as if it were there. */
  #isComing(line: Line, runs: number, bytes: number): void {
    line.coming += runs;
    line.comingBytes += bytes;
    this.#comingBytes += bytes;
    this.#host.load.liveBytes += bytes;
  }

  #isAsParked(run: LiveRun, { id, version }: ParkedRun): boolean {
    if (run.committedVersion === version) return true;
    this.#host.broken(
      new Error(`run ${id} was parked at version ${version}, and its document has ${run.committedVersion}`),
    );
    return false;
  }

  #readOn(): void {
    while (this.#reading < READS_AT_ONCE) {
      const id = this.#toRead.next();
      if (id === undefined) return;
      this.#reading += 1;
      this.#host.read(id, (run) => {
        this.#reading -= 1;
        const asked = this.#reads.get(id);
        this.#reads.delete(id);
        if (asked !== undefined) this.#room.giveBack(asked.key, 1);
        for (const then of asked?.askers ?? []) then(run);
        this.#readOn();
      });
    }
  }
}

function newDue(): Heap<{ readonly at: number; readonly id: RunId }> {
  return new Heap((a, b) => a.at < b.at);
}

function newLine(): Line {
  return { entries: [], head: 0, inMemory: 0, coming: 0, comingBytes: 0 };
}
