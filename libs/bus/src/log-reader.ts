import type { Bus, BusSubscription } from './bus.ts';
import type { Chunk } from './chunk.ts';

export interface StoredChunk {
  readonly sequence: number;
  readonly runner: string;
  readonly chunk: Chunk;
}

export interface LiveChunk extends StoredChunk {
  /** Of the chunk before it on the same subject (run and runner); 0: it is the first. A gap means: read again. */
  readonly lastSequenceOfSubject: number;
}

/** A run's chunks with a sequence >= `fromSequence`, of all runners, in stored order, up to the last at the time of the call. */
export declare function readChunks(bus: Bus, runId: string, fromSequence: number, signal?: AbortSignal): AsyncIterable<StoredChunk>;

/** The last stored chunk of each runner that wrote for the run. */
export declare function lastChunks(bus: Bus, runId: string): Promise<readonly StoredChunk[]>;

/** Chunks as they are stored, at most once (core NATS). */
export declare function subscribeLiveChunks(bus: Bus, runId: string, handler: (chunk: LiveChunk) => void): BusSubscription;
