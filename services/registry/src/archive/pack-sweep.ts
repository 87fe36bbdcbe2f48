/**
 * Removes archived logs that are not to be kept any longer (P34): of deleted runs, those past `SERVICE_LOG_RETENTION`, and packs that nothing
 * points at. Run by every registry now and then; several at once do no harm.
 *
 *  PACKSWEEP-1 A pointer goes first; nobody reads what it pointed at from then on. A pack that has lost some of its runs is written anew
 *     without them, so that the bytes of a deleted run are gone a day after the next sweep at the latest.
 *  PACKSWEEP-2 An object that nothing points at goes once it is a day old: nothing is pointed at that late (PACKWRITER-2).
 *  PACKSWEEP-3 A pack is written anew as it is made: stored, read back, and then its pointers change, over their generation. Who reads the
 *     old one to its end does, or asks for the pointer again.
 *  PACKSWEEP-4 A pack that cannot be written anew holds up no other one.
 */
import type { Time } from '@penstock/async';
import type { ObjectStore } from '@penstock/object-store';
import type { ArchivedHead, ArchivedLog, LogArchive } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { isOutage } from './outages.ts';
import { packOfKey, type Packs } from './packs.ts';
import { PACK_RUNS_MAX, PackWriter } from './pack-writer.ts';

export interface PackSweepParts {
  readonly archive: LogArchive;
  readonly objects: ObjectStore;
  readonly packs: Packs;
  readonly time: Pick<Time, 'bootNow' | 'wallNow'>;
  readonly log: Pick<Log, 'warn'>;
  readonly logRetentionMs: number;
}

export interface SweptPacks {
  readonly expired: number;
  readonly deleted: number;
  readonly objects: number;
  readonly rewritten: number;
}

const ORPHAN_MS = 24 * 60 * 60_000;
/** Its pointers are being written for so long at most. */
const REWRITTEN_AFTER_MS = 2 * 60 * 60_000;
const PAGE = 500;

export async function sweepPacks(parts: PackSweepParts, signal: AbortSignal): Promise<SweptPacks> {
  const expired = await sweepExpired(parts, signal);
  const deleted = await sweepDeleted(parts, signal);
  let [objects, rewritten] = [0, 0];
  const failures: unknown[] = [];
  const now = parts.time.wallNow();
  for await (const { key, storedAt, size } of parts.packs.list()) {
    if (signal.aborted) break;
    const place = packOfKey(key);
    if (place === undefined || now - storedAt < REWRITTEN_AFTER_MS) continue;
    const runs = await parts.archive.ofPack(place.pack, PACK_RUNS_MAX);
    if (runs.length === 0) {
      if (now - storedAt < ORPHAN_MS) continue;
      await parts.packs.remove(key);
      objects += 1;
    } else if (place.object === 0 && (await hasOthers(parts, runs, size))) {
      try {
        rewritten += (await rewrite(parts, runs)) ? 1 : 0;
      } catch (error) {
        if (isOutage(error)) throw error;
        failures.push(error);
      }
    }
  }
  // PACKSWEEP-4.
  if (failures.length > 0) throw failures[0];
  return { expired, deleted, objects, rewritten };
}

async function sweepExpired({ archive, time, logRetentionMs }: PackSweepParts, signal: AbortSignal): Promise<number> {
  let expired = 0;
  while (!signal.aborted) {
    const old = await archive.before(time.wallNow() - logRetentionMs, PAGE);
    for (const { runId } of old) await archive.remove(runId);
    expired += old.length;
    if (old.length < PAGE) break;
  }
  return expired;
}

/** Deleted, or so long ago that not even that is known. */
async function sweepDeleted({ archive }: PackSweepParts, signal: AbortSignal): Promise<number> {
  let deleted = 0;
  for await (const page of archive.pages()) {
    if (signal.aborted) break;
    const standings = await archive.standings(page.map(({ runId }) => runId));
    for (const { runId } of page) {
      const state = standings.get(runId)?.state ?? 'deleted';
      if (state !== 'deleted') continue;
      await archive.remove(runId);
      deleted += 1;
    }
  }
  return deleted;
}

/** Whether the pack has bytes that no run of these has. */
async function hasOthers({ packs }: PackSweepParts, runs: readonly ArchivedHead[], first: number): Promise<boolean> {
  const [{ pack, objects }] = runs as [ArchivedHead];
  const size = objects === 1 ? first : await packs.sizeOf(pack, objects);
  return size > runs.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function rewrite(parts: PackSweepParts, runs: readonly ArchivedHead[]): Promise<boolean> {
  const { archive, packs, objects, time, log } = parts;
  const [{ pack }] = runs as [ArchivedHead];
  const writer = new PackWriter(objects, time.bootNow);
  const logs: ArchivedLog[] = [];
  for (const { runId } of runs) {
    const found = await archive.of(runId);
    if (found === null || found.pack !== pack) continue;
    if (!(await packs.holds(found, new Map()))) {
      log.warn({ runId, pack }, 'a pack of logs lacks what should be in it; it is left as it is');
      return false;
    }
    await writer.copy(found, ([object, from, bytes]) => packs.part({ pack, object, from, bytes }));
    logs.push(found);
  }
  if (logs.length === 0) return false;
  const written = await writer.finish();
  writer.checkUsable();
  await archive.move(logs.map((found, index) => ({ ...found, ...written[index], generation: found.generation + 1 })));
  return true;
}
