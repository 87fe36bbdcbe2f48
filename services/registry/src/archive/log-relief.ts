/**
 * Room in `LOGS` before it is full: then the broker lets the oldest chunks go, whoever's they are, and one key that writes much, in runs
 * that go on, would take the logs of everybody else. So what goes is of those who have the most.
 *
 *  RELIEF-1 From `FROM_SHARE` of the room on, the keys that have the most are cut down to what each has of `TO_SHARE` when it is shared out
 *     among all; who has less keeps all. Where all is one's, nobody is to be kept from loss.
 *  RELIEF-2 Of a key what is archived goes first, then the oldest runs, and of the run that the cut is in its oldest chunks. A reader is told of
 *     them as of any that are gone (P21); so is one who does not know yet that the run is archived.
 *  RELIEF-3 A run that the store does not know yet is nobody's, and is left alone; what such runs have counts as one key's.
 *  RELIEF-4 What a key has is told by some of its chunks, of some of its runs, which nobody can foretell; and of so many keys that they have half
 *     of all that is there. So one with few large chunks is found among any number of those with many small ones.
 *  RELIEF-5 Of more runs than the broker can be asked for at a time the oldest, the newest and some between are looked at, other ones each time:
 *     who has the most is found wherever it is, and each look makes its part of the room.
 *  RELIEF-6 A key's runs may be many and small: as many are cut as a look has time for, so that no number of them is beyond what looks can do.
 */
import type { Time } from '@penstock/async';
import type { LoggedRuns, LogsRoom } from '@penstock/bus';
import type { LogArchive } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';

interface ReliefLogs {
  /** See `logsRoom`. */
  room(): Promise<LogsRoom>;
  runs(): Promise<LoggedRuns>;
  /** See `chunkBytes`. */
  chunkBytes(runId: string): Promise<number>;
  /** `keep`: so many of the newest stay. */
  purge(runId: string, keep: number): Promise<void>;
}

export interface LogReliefParts {
  readonly logs: ReliefLogs;
  readonly archive: Pick<LogArchive, 'standings' | 'among'>;
  readonly time: Pick<Time, 'bootNow'>;
  readonly log: Pick<Log, 'warn'>;
}

const FROM_SHARE = 0.8;
const TO_SHARE = 0.65;
/** RELIEF-4: keys, those with the most chunks first; more than `min` where those have less than half. */
const KEYS_MEASURED = { min: 20, max: 100 };
/** Of a key: those with the most chunks, and as many others. */
const RUNS_MEASURED = 5;
/** In place of a key. */
const NOBODY = '';
/** RELIEF-6: each has the broker look through a part of its files, which others wait for; but so many, however slow it is. */
const CUT_MS_MAX = 1_000;
const CUTS_MIN = 50;
/** Ids asked for in one call to the store. */
const PAGE = 500;
const TOLD_EVERY_MS = 10 * 60_000;
/** A machine writes a tenth of it in that time: so a small stream is looked at often, and one of 4 GiB every four seconds. */
const LOOKED_AT_BYTES_MS = 1024 ** 2;
const LOOK_MS = { min: 200, max: 5_000 };
const IDLE_TIMES = 4;

interface Logged {
  readonly runId: string;
  readonly chunks: number;
  readonly key: string;
  readonly isArchived: boolean;
}

interface Weighed {
  /** In the order in which they go. */
  readonly runs: readonly (Logged & { readonly bytes: number })[];
  readonly bytes: number;
}

export class LogRelief {
  readonly #parts: LogReliefParts;
  #toldAt = -Infinity;
  #lastShare = -1;

  constructor(parts: LogReliefParts) {
    this.#parts = parts;
  }

  /** Answers which share of the room was taken when it began, and when the next look is due. Throws where the broker or the store does not do its part. */
  async look(): Promise<{ readonly share: number; readonly againMs: number }> {
    const { share, bytesMax } = await this.#parts.logs.room();
    // Where nothing comes, nothing is in haste.
    const times = share === this.#lastShare ? IDLE_TIMES : 1;
    this.#lastShare = share;
    if (share >= FROM_SHARE) await this.#relieve(bytesMax);
    return { share, againMs: Math.max(LOOK_MS.min, Math.min(LOOK_MS.max, (times * bytesMax) / LOOKED_AT_BYTES_MS)) };
  }

  async #relieve(bytesMax: number): Promise<void> {
    const { logs, log, time } = this.#parts;
    const found = await logs.runs();
    // Another registry may have been here since.
    if (found.share < FROM_SHARE) return;
    const cut = await this.#cut(found, bytesMax);
    if (cut.size > 0 && time.bootNow() - this.#toldAt >= TOLD_EVERY_MS) {
      this.#toldAt = time.bootNow();
      log.warn(
        { share: found.share, runs: Object.fromEntries(cut) },
        'LOGS is nearly full: the oldest lines of those who have the most there are removed',
      );
    }
  }

  /** Of how many runs something was removed, by key. */
  async #cut({ runs: found, share }: LoggedRuns, bytesMax: number): Promise<ReadonlyMap<string, number>> {
    const { logs, time } = this.#parts;
    const cut = new Map<string, number>();
    const byKey = Map.groupBy(await this.#logged(found), ({ key }) => key);
    if (byKey.size - Number(byKey.has(NOBODY)) < 2) return cut;
    const weighed = await this.#weighed(byKey, (share * bytesMax) / 2);
    const amounts = Array.from(weighed.values(), ({ bytes }) => bytes);
    const most = levelFor(amounts, sumOf(amounts) * (TO_SHARE / share));
    weighed.delete(NOBODY);
    const until = time.bootNow() + CUT_MS_MAX;
    let cuts = 0;
    for (const [key, { runs, bytes }] of [...weighed].toSorted(([, one], [, other]) => other.bytes - one.bytes)) {
      let toGo = bytes - most;
      for (const run of runs) {
        if (toGo <= 0 || (cuts >= CUTS_MIN && time.bootNow() >= until)) break;
        const keep = run.bytes <= toGo ? 0 : Math.floor(run.chunks * (1 - toGo / run.bytes));
        await logs.purge(run.runId, keep);
        toGo -= run.bytes;
        cuts += 1;
        cut.set(key, (cut.get(key) ?? 0) + 1);
      }
    }
    return cut;
  }

  /** RELIEF-4 */
  async #weighed(byKey: ReadonlyMap<string, readonly Logged[]>, half: number): Promise<Map<string, Weighed>> {
    const weighed = new Map<string, Weighed>();
    let bytes = 0;
    for (const [key, its] of [...byKey].toSorted(([, one], [, other]) => chunksOf(other) - chunksOf(one))) {
      if (weighed.size >= KEYS_MEASURED.max || (weighed.size >= KEYS_MEASURED.min && bytes >= half)) break;
      const found = await weigh(its, this.#parts.logs);
      weighed.set(key, found);
      bytes += found.bytes;
    }
    return weighed;
  }

  /** RELIEF-3. What is of a run that is deleted is about to go, too. */
  async #logged(runs: LoggedRuns['runs']): Promise<Logged[]> {
    const { archive } = this.#parts;
    const logged: Logged[] = [];
    for (let from = 0; from < runs.length; from += PAGE) {
      const page = runs.slice(from, from + PAGE);
      const ids = page.map(({ runId }) => runId);
      const [standings, archived] = [await archive.standings(ids), await archive.among(ids)];
      for (const run of page) {
        const { state = 'deleted', key = NOBODY } = standings.get(run.runId) ?? {};
        logged.push({ ...run, key: state === 'deleted' ? NOBODY : key, isArchived: archived.has(run.runId) });
      }
    }
    return logged;
  }
}

/** The most that each may have, so that all together have no more than `room`: who has less leaves the rest to the others. */
export function levelFor(amounts: readonly number[], room: number): number {
  let left = room;
  const ascending = amounts.toSorted((one, other) => one - other);
  for (const [index, amount] of ascending.entries()) {
    const each = left / (ascending.length - index);
    if (amount > each) return each;
    left -= amount;
  }
  return Infinity;
}

async function weigh(runs: readonly Logged[], logs: Pick<ReliefLogs, 'chunkBytes'>): Promise<Weighed> {
  const largest = runs.toSorted((one, other) => other.chunks - one.chunks);
  const others = shuffled(largest.splice(RUNS_MEASURED)).slice(0, RUNS_MEASURED);
  const measured = new Map<string, number>();
  for (const { runId } of [...largest, ...others]) measured.set(runId, await logs.chunkBytes(runId));
  const mean =
    sumOf(others.map(({ runId, chunks }) => chunks * (measured.get(runId) ?? 0))) / Math.max(1, chunksOf(others));
  const weighed = runs
    .map((run) => ({ ...run, bytes: run.chunks * (measured.get(run.runId) ?? mean) }))
    // Ids are in the order of their times.
    .toSorted((a, b) => Number(b.isArchived) - Number(a.isArchived) || (a.runId < b.runId ? -1 : 1));
  return { runs: weighed, bytes: sumOf(weighed.map(({ bytes }) => bytes)) };
}

function shuffled<T>(all: readonly T[]): T[] {
  return all
    .map((each) => ({ each, at: Math.random() }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ each }) => each);
}

function chunksOf(runs: readonly Logged[]): number {
  return sumOf(runs.map(({ chunks }) => chunks));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
