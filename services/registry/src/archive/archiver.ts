/**
 * Moves the logs of ended runs from `LOGS` into packs in the object storage (P34). What there is to do is what `LOGS` has of closed
 * runs: nothing else is remembered, so that whoever dies at any point leaves work for the next pass, and no harm.
 *
 *  ARCHIVER-1 A run is packed once it is closed in the store (P6): nothing that is part of its event stream is stored after that.
 *  ARCHIVER-2 Its chunks are purged `PURGED_AFTER_MS` of this process's boot clock after its pointer was first seen, or `ARCHIVED_KEPT_MS` where
 *     `LOGS` is half full, and only while the pack holds all that the pointer names. Who reads `LOGS` knows that the run was not
 *     archived a shorter time ago (`LOGS_READ_WITHIN_MS`), so it has read what was there.
 *  ARCHIVER-3 Several archivers at once do no harm: of two pointers of a run the first stands, and what the other has packed is swept.
 *  ARCHIVER-4 What is the matter with the runs of one tenant holds up neither those of others nor the purging.
 */
import type { Time } from '@penstock/async';
import { ARCHIVED_KEPT_MS, type LoggedRuns, type StoredChunk } from '@penstock/bus';
import type { ObjectStore } from '@penstock/object-store';
import type { LogArchive, LogStanding } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { isOutage } from './outages.ts';
import { Packs } from './packs.ts';
import { PACK_RUNS_MAX, PackWriter } from './pack-writer.ts';

/** `LOGS`, as far as the archive has to do with it. */
interface LoggedChunks {
  runs(): Promise<LoggedRuns>;
  chunks(runId: string, signal: AbortSignal): AsyncIterable<StoredChunk>;
  purge(runId: string): Promise<void>;
}

export interface ArchiverParts {
  readonly logs: LoggedChunks;
  readonly archive: LogArchive;
  readonly objects: ObjectStore;
  readonly time: Pick<Time, 'bootNow' | 'wallNow'>;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export interface Archived {
  runs: number;
  packs: number;
  purged: number;
}

/** A tenant's runs wait for each other, so that an object is worth its making. */
const PACKED_AFTER_MS = 60 * 60_000;
/** So many are packed at once: about a pack. */
const PACKED_CHUNKS = 2_000;
const PURGED_AFTER_MS = 60 * 60_000;
export const TIGHT_SHARE = 0.5;
/** Ids asked for in one call to the store. */
const PAGE = 500;
/** Runs of which the pointer was seen and the chunks are still there. */
const SEEN_MAX = 200_000;
/** Runs whose log cannot be read. */
const UNREADABLE_MAX = 10_000;

interface Waiting {
  readonly runIds: string[];
  chunks: number;
  createdAt: number;
}

export class LogArchiver {
  readonly #parts: ArchiverParts;
  readonly #packs: Packs;
  /** When the pointer of a run was first seen here. */
  #seen = new Map<string, number>();
  readonly #unreadable = new Set<string>();

  constructor(parts: ArchiverParts) {
    this.#parts = parts;
    this.#packs = new Packs(parts.objects);
  }

  /** One look at all that `LOGS` has. Throws where the broker, the store or the object storage does not do its part. */
  async pass(signal: AbortSignal): Promise<Archived> {
    const { logs } = this.#parts;
    const done: Archived = { runs: 0, packs: 0, purged: 0 };
    const { runs, share } = await logs.runs();
    const isTight = share >= TIGHT_SHARE;
    const waiting = new Map<string, Waiting>();
    const seen = new Map<string, number>();
    const archived: string[] = [];
    for (let from = 0; from < runs.length && !signal.aborted; from += PAGE) {
      const page = runs.slice(from, from + PAGE);
      const standings = await this.#parts.archive.standings(page.map(({ runId }) => runId));
      const closed = page.filter(({ runId }) => standings.get(runId)?.state === 'closed');
      // What the deletion could not remove at the time, or a runner has sent since.
      for (const { runId } of page) if (standings.get(runId)?.state === 'deleted') await logs.purge(runId);
      const pointed = await this.#parts.archive.among(closed.map(({ runId }) => runId));
      for (const { runId, chunks } of closed) {
        if (pointed.has(runId)) {
          if (seen.size < SEEN_MAX) seen.set(runId, this.#seen.get(runId) ?? this.#parts.time.bootNow());
          archived.push(runId);
        } else if (!this.#unreadable.has(runId)) {
          wait(waiting, runId, chunks, standings.get(runId) as LogStanding);
        }
      }
    }
    this.#seen = seen;
    // ARCHIVER-4.
    const failures: unknown[] = [];
    for (const [tenant, each] of waiting) {
      if (signal.aborted || !this.#isDue(each, isTight)) continue;
      try {
        await this.#pack(tenant, each.runIds, done, signal);
      } catch (error) {
        failures.push(error);
        if (isOutage(error)) break;
      }
    }
    await this.#purge(archived, isTight ? ARCHIVED_KEPT_MS : PURGED_AFTER_MS, done, signal);
    if (failures.length > 0) throw failures[0];
    return done;
  }

  #isDue({ runIds, chunks, createdAt }: Waiting, isTight: boolean): boolean {
    return (
      isTight ||
      runIds.length >= PACK_RUNS_MAX ||
      chunks >= PACKED_CHUNKS ||
      this.#parts.time.wallNow() - createdAt >= PACKED_AFTER_MS
    );
  }

  async #pack(tenant: string, runIds: readonly string[], done: Archived, signal: AbortSignal): Promise<void> {
    const { logs, objects, time } = this.#parts;
    let writer: PackWriter | undefined;
    for (const runId of runIds) {
      if (signal.aborted) return;
      writer ??= new PackWriter(objects, time.bootNow);
      try {
        await writer.add(runId, logs.chunks(runId, signal));
      } catch (error) {
        // Bytes that no runner has made: they stay where they are, and hold up nobody's runs.
        if (!(error instanceof SyntaxError)) throw error;
        this.#giveUp(runId, error);
      }
      if (!writer.isFull) continue;
      await this.#point(tenant, writer, done);
      writer = undefined;
    }
    if (writer !== undefined && !signal.aborted) await this.#point(tenant, writer, done);
  }

  async #point(tenant: string, writer: PackWriter, done: Archived): Promise<void> {
    const { archive, time } = this.#parts;
    if (writer.runs === 0) return;
    const packed = await writer.finish();
    done.packs += 1;
    for (const run of packed) {
      writer.checkUsable();
      const isAdded = await archive.add({ ...run, tenant, archivedAt: time.wallNow(), generation: 1 });
      if (isAdded) done.runs += 1;
      if (this.#seen.size < SEEN_MAX) this.#seen.set(run.runId, time.bootNow());
    }
  }

  /** ARCHIVER-2 */
  async #purge(archived: readonly string[], afterMs: number, done: Archived, signal: AbortSignal): Promise<void> {
    const { archive, logs, time, log } = this.#parts;
    const sizes = new Map<string, number>();
    for (const runId of archived) {
      if (signal.aborted) return;
      const seenAt = this.#seen.get(runId);
      if (seenAt === undefined || time.bootNow() - seenAt < afterMs) continue;
      const pointer = await archive.of(runId);
      if (pointer === null) continue;
      if (await this.#packs.holds(pointer, sizes)) {
        await logs.purge(runId);
        this.#seen.delete(runId);
        done.purged += 1;
      } else {
        log.warn(
          { runId, pack: pointer.pack },
          'a pack of logs lacks a run that it should have; the run is packed anew',
        );
        await archive.remove(runId);
      }
    }
  }

  #giveUp(runId: string, error: Error): void {
    if (this.#unreadable.size < UNREADABLE_MAX) this.#unreadable.add(runId);
    this.#parts.log.warn({ err: error, runId }, 'the log of a run cannot be read; it stays in LOGS until its age');
  }
}

function wait(waiting: Map<string, Waiting>, runId: string, chunks: number, { tenant, createdAt }: LogStanding): void {
  const of = waiting.get(tenant);
  if (of === undefined) {
    waiting.set(tenant, { runIds: [runId], chunks, createdAt });
    return;
  }
  of.runIds.push(runId);
  of.chunks += chunks;
  of.createdAt = Math.min(of.createdAt, createdAt);
}
