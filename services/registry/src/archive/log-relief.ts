/**
 * Room in `LOGS` before it is full: then the broker lets the oldest chunks go, whoever's they are, and one key that writes much, in runs
 * that go on, would take the logs of everybody else. So what goes is of those who have the most.
 *
 *  RELIEF-1 From `FROM_SHARE` of the room on, the keys that have the most are cut down to what each has of `TO_SHARE` when it is shared out
 *     among all; who has less keeps all. Where all is one's, nobody is to be kept from loss.
 *  RELIEF-2 Of a key what is archived goes first, then the oldest runs, and of the run that the cut is in its oldest chunks. A reader is told of
 *     them as of any that are gone (P21).
 *  RELIEF-3 A run that the store does not know yet is nobody's, and is left alone.
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
/** Looked at more closely, those with the most chunks: of keys, and of a key's runs. */
const KEYS_MEASURED = 20;
const RUNS_MEASURED = 20;
/** Each has the broker look through a part of its files. */
const CUTS_MAX = 50;
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
    if (share >= FROM_SHARE) await this.#relieve(share);
    return { share, againMs: Math.max(LOOK_MS.min, Math.min(LOOK_MS.max, (times * bytesMax) / LOOKED_AT_BYTES_MS)) };
  }

  async #relieve(share: number): Promise<void> {
    const { log, time } = this.#parts;
    const cut = await this.#cut(share);
    if (cut.size > 0 && time.bootNow() - this.#toldAt >= TOLD_EVERY_MS) {
      this.#toldAt = time.bootNow();
      log.warn(
        { share, runs: Object.fromEntries(cut) },
        'LOGS is nearly full: the oldest lines of those who have the most there are removed',
      );
    }
  }

  /** Of how many runs something was removed, by key. */
  async #cut(share: number): Promise<ReadonlyMap<string, number>> {
    const { logs } = this.#parts;
    const cut = new Map<string, number>();
    const byKey = [...Map.groupBy(await this.#logged(), ({ key }) => key)];
    if (byKey.length < 2) return cut;
    const largest = byKey.toSorted(([, one], [, other]) => chunksOf(other) - chunksOf(one)).slice(0, KEYS_MEASURED);
    const weighed = new Map<string, Weighed>();
    for (const [key, its] of largest) weighed.set(key, await weigh(its, logs));
    const amounts = Array.from(weighed.values(), ({ bytes }) => bytes);
    const most = levelFor(amounts, sumOf(amounts) * (TO_SHARE / share));
    let cuts = 0;
    for (const [key, { runs, bytes }] of weighed) {
      let toGo = bytes - most;
      for (const run of runs) {
        if (toGo <= 0 || cuts >= CUTS_MAX) break;
        const keep = run.bytes <= toGo ? 0 : Math.floor(run.chunks * (1 - toGo / run.bytes));
        await logs.purge(run.runId, keep);
        toGo -= run.bytes;
        cuts += 1;
        cut.set(key, (cut.get(key) ?? 0) + 1);
      }
    }
    return cut;
  }

  /** RELIEF-3 */
  async #logged(): Promise<Logged[]> {
    const { logs, archive } = this.#parts;
    const { runs } = await logs.runs();
    const logged: Logged[] = [];
    for (let from = 0; from < runs.length; from += PAGE) {
      const page = runs.slice(from, from + PAGE);
      const ids = page.map(({ runId }) => runId);
      const [standings, archived] = [await archive.standings(ids), await archive.among(ids)];
      for (const run of page) {
        const key = standings.get(run.runId)?.key;
        if (key !== undefined) logged.push({ ...run, key, isArchived: archived.has(run.runId) });
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
  const measured = new Map<string, number>();
  for (const { runId } of runs.toSorted((one, other) => other.chunks - one.chunks).slice(0, RUNS_MEASURED))
    measured.set(runId, await logs.chunkBytes(runId));
  const mean = sumOf([...measured.values()]) / Math.max(1, measured.size);
  const weighed = runs
    .map((run) => ({ ...run, bytes: run.chunks * (measured.get(run.runId) ?? mean) }))
    // Ids are in the order of their times.
    .toSorted((a, b) => Number(b.isArchived) - Number(a.isArchived) || (a.runId < b.runId ? -1 : 1));
  return { runs: weighed, bytes: sumOf(weighed.map(({ bytes }) => bytes)) };
}

function chunksOf(runs: readonly Logged[]): number {
  return sumOf(runs.map(({ chunks }) => chunks));
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
