/**
 * Gives memory back to the machine when a thread has little to do. V8 collects when memory is asked for, so a thread that nobody asks
 * anything keeps for good what its last busy moment has left: a start, a backlog, a large log.
 *
 * IDLEMEMORY-1 Nothing is collected while the thread has work: a collection holds it up, and work brings collections of its own.
 * IDLEMEMORY-2 Nothing is collected where little has come since the last time, nor where the heap is so large that going through it would
 *     be felt: it is full of what lives then.
 * IDLEMEMORY-3 The room for what has just been made is given back whatever the rest is: V8 keeps it at a collection that comes soon
 *     after much was made, as after a start, and one of the young alone takes a millisecond or two.
 */
import { flushCompileCache } from 'node:module';
import { performance } from 'node:perf_hooks';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MS = 5_000;
/** A start leaves more than most of what follows, and V8 keeps the freed pages for 8 s more. */
const FIRST_LOOK_MS = 1_500;
/** Of the time since the last look. A server that waits takes a hundredth; one that works off runs one at a time, half. */
const IDLE_SHARE_MAX = 0.1;
const WORTH_BYTES = 8 * 1024 * 1024;
const YOUNG_BYTES_MAX = 4 * 1024 * 1024;
/** A collection of 30 MiB of small objects takes 30 ms on two busy cores, of 64 MiB 77, of 128 MiB 94, of 192 MiB 187: nobody is to wait for 100. */
const USED_BYTES_MAX = 96 * 1024 * 1024;

export interface HeapOfThread {
  /** The share of the time since the last call in which the thread has worked. */
  busyShare(): number;
  /** What it holds of the machine's memory, how much of that is in use, and what of it is room for what has just been made. */
  bytes(): { readonly held: number; readonly used: number; readonly young: number };
  /** False: it could not be done now. */
  collect(which: 'all' | 'young'): boolean;
}

export class IdleMemory {
  readonly #heap: HeapOfThread;
  /** After the last collection. */
  #heldBytes = 0;

  constructor(heap: HeapOfThread) {
    this.#heap = heap;
  }

  /** Whether it has collected. */
  look(): boolean {
    const share = this.#heap.busyShare();
    const { held, used, young } = this.#heap.bytes();
    // What V8 has given back by itself is worth as much when it comes again.
    this.#heldBytes = Math.min(this.#heldBytes, held);
    if (share > IDLE_SHARE_MAX) return false;
    if (held - this.#heldBytes < WORTH_BYTES || used > USED_BYTES_MAX) {
      if (young > YOUNG_BYTES_MAX) this.#heap.collect('young');
      return false;
    }
    if (!this.#heap.collect('all')) return false;
    this.#heldBytes = this.#heap.bytes().held;
    return true;
  }
}

/** Of the thread that calls it, once it has started, until the process or the thread ends. */
export function giveBackWhenIdle(): void {
  const memory = new IdleMemory(heapOfThread());
  setTimeout(() => memory.look(), FIRST_LOOK_MS).unref();
  setInterval(() => memory.look(), LOOK_MS).unref();
}

/**
 * Node keeps in memory what it has read of compiled code though it is read once: 22 MB of `serve`, which what comes is given room in
 * thereby. What a start has compiled anew is written, not only at the end of the process.
 */
export function forgetCompiled(): void {
  flushCompileCache();
}

export function heapOfThread(): HeapOfThread {
  let last = performance.eventLoopUtilization();
  return {
    busyShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    bytes: () => {
      const { total_heap_size: heap, external_memory: outside, used_heap_size: used } = getHeapStatistics();
      const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
      return { held: heap + outside, used, young };
    },
    collect: (which) => {
      if (which === 'all') forgetCompiled();
      // Other flags than those of the start would make what Node has compiled and kept worthless.
      setFlagsFromString('--expose-gc');
      // Flags are the process's: another thread that does the same may have taken this one back meanwhile.
      const collect = runInNewContext('globalThis.gc') as ((how?: { readonly type: 'minor' }) => void) | undefined;
      setFlagsFromString('--no-expose-gc');
      if (which === 'all') collect?.();
      else collect?.({ type: 'minor' });
      return collect !== undefined;
    },
  };
}
