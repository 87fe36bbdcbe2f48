/** Reading a run's chunks: those that are stored, and new ones as they are stored (P20, P21). */
import type { Bus, BusSubscription } from '../wire/bus.ts';
import { type Chunk, decodeChunk } from '../contract/chunk.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { abortable, directBatch, type StoredMessage } from './stored.ts';
import { streams, subjects } from '../contract/subjects.ts';

export interface StoredChunk {
  readonly sequence: number;
  readonly runner: string;
  readonly chunk: Chunk;
}

export interface LiveChunk extends StoredChunk {
  /** Of the chunk before it on the same subject (run and runner); 0: it is the first. A gap means: read again. */
  readonly lastSequenceOfSubject: number;
}

/** Between two messages of a batch. */
const READ_TIMEOUT_MS = 5_000;
/** 64 of the largest chunks at most are in memory for one reader. */
const READ_CHUNKS = 256;
const READ_BYTES = 4 * 1024 * 1024;
/** What the broker answers at most for wildcards. */
const RUNNERS_MAX = 1_024;

/**
 * A run's chunks with a sequence >= `fromSequence`, of all runners, in stored order, up to the last at the time of the
 * call. Throws what a request throws, and `StoreRefused`; begin again behind the last one seen.
 */
export async function* readChunks(
  bus: Bus,
  runId: string,
  fromSequence: number,
  signal?: AbortSignal,
): AsyncIterable<StoredChunk> {
  const wire = wireOf(bus);
  const last = Math.max(0, ...(await abortable(lastMessages(bus, runId), signal)).map(({ sequence }) => sequence));
  let next = Math.max(1, fromSequence);
  while (next <= last) {
    const request = { seq: next, next_by_subj: subjects.logOfRun(runId), batch: READ_CHUNKS, max_bytes: READ_BYTES };
    const messages = await abortable(directBatch(wire, streams.logs, request, READ_TIMEOUT_MS), signal);
    // The oldest chunks make room for new ones: the last may have gone meanwhile.
    if (messages.length === 0) return;
    for (const message of messages) {
      if (message.sequence > last) return;
      yield storedChunk(message);
      next = message.sequence + 1;
    }
  }
}

/** The last stored chunk of each runner that wrote for the run. */
export async function lastChunks(bus: Bus, runId: string, signal?: AbortSignal): Promise<readonly StoredChunk[]> {
  return (await abortable(lastMessages(bus, runId), signal)).map(storedChunk);
}

function lastMessages(bus: Bus, runId: string): Promise<StoredMessage[]> {
  return directBatch(
    wireOf(bus),
    streams.logs,
    { multi_last: [subjects.logOfRun(runId)], batch: RUNNERS_MAX },
    READ_TIMEOUT_MS,
  );
}

/** Chunks as they are stored, at most once (core NATS). */
export function subscribeLiveChunks(bus: Bus, runId: string, handler: (chunk: LiveChunk) => void): BusSubscription {
  const { connection, log } = wireOf(bus);
  const subscription = connection.subscribe(subjects.liveLogOfRun(runId), {
    callback: (error, message) => {
      if (error !== null) return log.error({ err: error, runId }, 'a subscription to live chunks failed');
      const number = (name: string): number => Number(message.headers?.get(name) || 0);
      try {
        handler({
          sequence: number('Nats-Sequence'),
          lastSequenceOfSubject: number('Nats-Last-Sequence'),
          runner: lastToken(message.subject),
          chunk: decodeChunk(message.data),
        });
      } catch (cause) {
        log.error({ err: cause, subject: message.subject }, 'a live chunk could not be handled');
      }
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

function storedChunk(message: StoredMessage): StoredChunk {
  return { sequence: message.sequence, runner: lastToken(message.subject), chunk: decodeChunk(message.bytes) };
}

function lastToken(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}
