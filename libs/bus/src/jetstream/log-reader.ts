/**
 * Reading a run's chunks: those that are stored, and new ones as they are stored (P20, P21). They are read from any replica, which may be
 * behind; what the stream's leader has says whether it is. A leader may have been deposed and not know it: nothing counts as missing,
 * for good, but by what `readAllChunks` and `allLastChunks` answer.
 */
import { backoffMs, pause } from '@penstock/async';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus, BusSubscription } from '../wire/bus.ts';
import { decodeChunk } from '../contract/chunk.ts';
import type { StoredChunk } from '../contract/log-frame.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { StoreRefused } from '../contract/errors.ts';
import { type LastMessage, lastOfEach } from './last-of-each.ts';
import { type LastWanted, provedLast } from './proved-last.ts';
import { abortable, directBatch, leaderMessage, type StoredMessage } from './stored.ts';
import { streams, subjects } from '../contract/subjects.ts';

export interface LiveChunk extends StoredChunk {
  /** Of the chunk before it on the same subject (run and runner); 0: it is the first. A gap means: read again. */
  readonly lastSequenceOfSubject: number;
}

export interface LastChunk {
  readonly runner: string;
  readonly sequence: number;
}

/** Between two messages of a batch. */
const READ_TIMEOUT_MS = 5_000;
/** 64 of the largest chunks at most are in memory for one reader. */
const READ_CHUNKS = 256;
const READ_BYTES = 4 * 1024 * 1024;
/** Any replica answers, so a few tries find one that is not behind; beyond this the reader is told. */
const TRIES_MAX = 8;
const LOGS_SUBJECTS = 'log.>';

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
  yield* chunksUpTo(bus, runId, fromSequence, await abortable(lastAtLeader(bus, runId), signal), signal);
}

/** As `readChunks`, and none is missing that was stored before the call. Throws `StoreRefused` also while nobody can say so for sure. */
export async function* readAllChunks(
  bus: Bus,
  runId: string,
  fromSequence: number,
  signal?: AbortSignal,
): AsyncIterable<StoredChunk> {
  yield* chunksUpTo(bus, runId, fromSequence, await sureEnd(bus, runId, signal), signal);
}

async function* chunksUpTo(
  bus: Bus,
  runId: string,
  fromSequence: number,
  last: number,
  signal: AbortSignal | undefined,
): AsyncIterable<StoredChunk> {
  const wire = wireOf(bus);
  let next = Math.max(1, fromSequence);
  for (let tries = 1; next <= last;) {
    const request = { seq: next, next_by_subj: subjects.logOfRun(runId), batch: READ_CHUNKS, max_bytes: READ_BYTES };
    const messages = await abortable(directBatch(wire, streams.logs, request, READ_TIMEOUT_MS), signal);
    if (messages.length === 0) {
      // The oldest chunks make room for new ones: the last may have gone meanwhile.
      if ((await sureEnd(bus, runId, signal)) < next) return;
      await isBehind(runId, tries++, signal);
      continue;
    }
    tries = 1;
    for (const message of messages) {
      if (message.sequence > last) return;
      yield storedChunk(message);
      next = message.sequence + 1;
    }
  }
}

/**
 * The last stored chunk of each runner that wrote for the run; of those whose last is not behind `after` none need be told: whole chunks are
 * sent for it, of up to 64 KiB each.
 */
export async function lastChunks(
  bus: Bus,
  runId: string,
  signal?: AbortSignal,
  after = 0,
): Promise<readonly LastChunk[]> {
  for (let tries = 1; ; tries += 1) {
    const found = Promise.all([lastAtLeader(bus, runId), lastOfEach(wireOf(bus), { ...lastOfRun(runId), after })]);
    const [last, each] = await abortable(found, signal);
    if (last <= after) return [];
    if (each !== null && each.upTo >= last) return each.last.map(lastChunk);
    await isBehind(runId, tries, signal);
  }
}

/** As `lastChunks`, and of none is a later one missing that was stored before the call. Throws as `readAllChunks`. */
export async function allLastChunks(bus: Bus, runId: string, signal?: AbortSignal): Promise<readonly LastChunk[]> {
  for (let tries = 1; ; tries += 1) {
    const last = await abortable(provedLast(wireOf(bus), lastOfRun(runId)), signal);
    if (last !== null) return last.map(lastChunk);
    await isBehind(runId, tries, signal);
  }
}

/** The sequence of the run's last chunk, and no later one was stored before the call; 0: there is none. Throws as `readAllChunks`. */
async function sureEnd(bus: Bus, runId: string, signal: AbortSignal | undefined): Promise<number> {
  const chunks = await allLastChunks(bus, runId, signal);
  return chunks.reduce((last, { sequence }) => Math.max(last, sequence), 0);
}

function lastOfRun(runId: string): LastWanted {
  return { stream: streams.logs, wanted: subjects.logOfRun(runId), all: LOGS_SUBJECTS, timeoutMs: READ_TIMEOUT_MS };
}

/** 0: there is none. */
async function lastAtLeader(bus: Bus, runId: string): Promise<number> {
  const which = { last_by_subj: subjects.logOfRun(runId) };
  return (await leaderMessage(wireOf(bus), streams.logs, which, READ_TIMEOUT_MS))?.sequence ?? 0;
}

async function isBehind(runId: string, tries: number, signal: AbortSignal | undefined): Promise<void> {
  if (tries >= TRIES_MAX)
    throw new StoreRefused(
      subjects.logOfRun(runId),
      404,
      'its replicas lack what is stored, or no leader is sure of it',
    );
  await pause(backoffMs(tries, BROKER_BACKOFF), signal);
}

/** Chunks as they are stored, at most once (core NATS). */
export function subscribeLiveChunks(bus: Bus, runId: string, handler: (chunk: LiveChunk) => void): BusSubscription {
  const { connection, log } = wireOf(bus);
  const subscription = connection.subscribe(subjects.liveLogOfRun(runId), {
    callback: (error, message) => {
      if (error !== null) return log.error({ err: error, runId }, 'a subscription to live chunks failed');
      // The broker's own stand behind those of the same name that came with it.
      const number = (name: string): number => Number(message.headers?.last(name) || 0);
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

function lastChunk({ subject, sequence }: LastMessage): LastChunk {
  return { runner: lastToken(subject), sequence };
}

function lastToken(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}
