/** Closing the logs of attempts that have ended without a result (P21). */
import type { Bus } from '../wire/bus.ts';
import { encodeChunk } from '../contract/chunk.ts';
import { subjects } from '../contract/subjects.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { readAllChunks } from './log-reader.ts';
import { store } from './stored.ts';

/** Whose log it is. */
export interface AttemptLogName {
  readonly runner: string;
  readonly stage: string;
  readonly attempt: number;
}

const STORE_TIMEOUT_MS = 5_000;
/** Marks under way at a time. */
const MARKS_AT_ONCE = 64;
const NOTHING = new Uint8Array(0);

/**
 * Stores a mark behind the log of each of these attempts of a run; answers the sequences of their first marks, in the order
 * of `logs`: one that an earlier owner has stored counts. `at` is shown to people alone. Throws what a request throws, and
 * `StoreRefused`; marks that are stored again do no harm.
 */
export async function markLogEnds(
  bus: Bus,
  runId: string,
  logs: readonly AttemptLogName[],
  at: number,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const wire = wireOf(bus);
  const own: number[] = [];
  for (let first = 0; first < logs.length; first += MARKS_AT_ONCE) {
    signal.throwIfAborted();
    const stored = logs.slice(first, first + MARKS_AT_ONCE).map(({ runner, stage, attempt }) => {
      const mark = encodeChunk({ stage, attempt, offset: 0, at, parts: [], mark: true, output: NOTHING });
      return store(wire, subjects.log(runId, runner), mark, {}, STORE_TIMEOUT_MS);
    });
    own.push(...(await Promise.all(stored)).map(({ sequence }) => sequence));
  }
  const marks = await firstMarks(bus, runId, new Set(logs.map(nameOf)), signal);
  return logs.map((log, index) => marks.get(nameOf(log)) ?? own[index] ?? 0);
}

async function firstMarks(
  bus: Bus,
  runId: string,
  wanted: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for await (const { sequence, runner, chunk } of readAllChunks(bus, runId, 1, signal)) {
    const name = nameOf({ runner, stage: chunk.stage, attempt: chunk.attempt });
    if (chunk.mark !== true || !wanted.has(name) || found.has(name)) continue;
    found.set(name, sequence);
    if (found.size === wanted.size) break;
  }
  return found;
}

function nameOf({ runner, stage, attempt }: AttemptLogName): string {
  return `${attempt} ${runner} ${stage}`;
}
