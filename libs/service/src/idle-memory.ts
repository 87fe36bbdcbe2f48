/**
 * Gives memory back to the machine when a thread has little to do. V8 collects when memory is asked for, so a thread that nobody asks
 * anything keeps for good what its last busy moment has left: a start, a backlog, a large log.
 *
 * IDLEMEMORY-1 Nothing is collected while the thread has work: a collection holds it up, and work brings collections of its own.
 * IDLEMEMORY-2 Nothing is collected where little has come since the last time, nor where the heap is so large that going through it would
 *     be felt: it is full of what lives then.
 */
import { performance } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const LOOK_MS = 5_000;
/** Of the time since the last look. A server that waits takes a hundredth; one that works off runs one at a time, half. */
const IDLE_SHARE_MAX = 0.1;
const WORTH_BYTES = 8 * 1024 * 1024;
/** A collection of 30 MiB of small objects takes 30 ms on two busy cores, of 64 MiB 77, of 128 MiB 94, of 192 MiB 187: nobody is to wait for 100. */
const USED_BYTES_MAX = 96 * 1024 * 1024;

export interface HeapOfThread {
  /** The share of the time since the last call in which the thread has worked. */
  busyShare(): number;
  /** What it holds of the machine's memory, and how much of that is in use. */
  bytes(): { readonly held: number; readonly used: number };
  collect(): void;
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
    const { held, used } = this.#heap.bytes();
    // What V8 has given back by itself is worth as much when it comes again.
    this.#heldBytes = Math.min(this.#heldBytes, held);
    if (share > IDLE_SHARE_MAX || held - this.#heldBytes < WORTH_BYTES || used > USED_BYTES_MAX) return false;
    this.#heap.collect();
    this.#heldBytes = this.#heap.bytes().held;
    return true;
  }
}

/** Of the thread that calls it, until the process or the thread ends. */
export function giveBackWhenIdle(): void {
  const memory = new IdleMemory(heapOfThread());
  setInterval(() => memory.look(), LOOK_MS).unref();
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
      return { held: heap + outside, used };
    },
    collect: () => {
      // Other flags than those of the start would make what Node has compiled and kept worthless.
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc') as () => void;
      setFlagsFromString('--no-expose-gc');
      collect();
    },
  };
}
