/** Which runs have chunks in `LOGS`, and how full it is: what the archive of logs goes by (P34). */
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { streams, subjects } from '../contract/subjects.ts';
import { api, directBatch, leaderMessage, type StoredMessage } from './stored.ts';

interface LoggedRun {
  readonly runId: string;
  readonly chunks: number;
}

export interface LoggedRuns {
  /** By id, so the oldest first; each once. */
  readonly runs: readonly LoggedRun[];
  /** Of the bytes that `LOGS` may have, 0 to 1; 0 where it has no bound. */
  readonly share: number;
}

export interface LogsRoom {
  /** As in `LoggedRuns`. */
  readonly share: number;
  /** Infinity: it has no bound. */
  readonly bytesMax: number;
}

/** The broker names 100,000 subjects at a time. */
const INFO_MS = 20_000;
/** Held in memory for a moment. The broker names them in their order, so these are of the oldest runs. */
const SUBJECTS_MAX = 300_000;

/**
 * Of a run's chunks, to tell what they take: some at each of these places, each of which costs the broker a millisecond. Where they are nobody can
 * foretell, who might make those small.
 */
const PLACES = 2;
const AT_A_PLACE = 4;

interface Info {
  readonly config: { readonly max_bytes: number };
  readonly state: { readonly bytes: number; readonly subjects?: Readonly<Record<string, number>> };
  readonly total?: number;
}

/** Throws what a request throws, and `StoreRefused`. */
export async function loggedRuns(bus: Bus): Promise<LoggedRuns> {
  const wire = wireOf(bus);
  const chunks = new Map<string, number>();
  let share = 0;
  for (let offset = 0, total = 1; offset < total && offset < SUBJECTS_MAX;) {
    const request = { subjects_filter: 'log.>', offset };
    const info = await api<Info>(wire, `STREAM.INFO.${streams.logs}`, request, INFO_MS);
    const subjects = Object.entries(info.state.subjects ?? {});
    for (const [subject, count] of subjects) {
      const [, runId = ''] = subject.split('.');
      chunks.set(runId, (chunks.get(runId) ?? 0) + count);
    }
    share = shareOf(info);
    if (subjects.length === 0) break;
    offset += subjects.length;
    total = info.total ?? 0;
  }
  const runs = [...chunks].map(([runId, count]) => ({ runId, chunks: count }));
  return { runs: runs.toSorted((one, other) => (one.runId < other.runId ? -1 : 1)), share };
}

/** How full `LOGS` is, without a look at what it has. Throws as `loggedRuns`. */
export async function logsRoom(bus: Bus): Promise<LogsRoom> {
  const info = await api<Info>(wireOf(bus), `STREAM.INFO.${streams.logs}`, undefined, INFO_MS);
  return { share: shareOf(info), bytesMax: info.config.max_bytes > 0 ? info.config.max_bytes : Infinity };
}

/** What a chunk of the run takes, about, by some of them; 0: it has none any more. Throws as `loggedRuns`. */
export async function chunkBytes(bus: Bus, runId: string): Promise<number> {
  const wire = wireOf(bus);
  const subject = subjects.logOfRun(runId);
  const from = (seq: number): Promise<StoredMessage[]> =>
    directBatch(wire, streams.logs, { seq, next_by_subj: subject, batch: AT_A_PLACE }, INFO_MS);
  const [oldest, newest] = await Promise.all([
    from(1),
    leaderMessage(wire, streams.logs, { last_by_subj: subject }, INFO_MS),
  ]);
  const first = oldest[0]?.sequence ?? 0;
  const last = Math.max(first, newest?.sequence ?? 0);
  const places = Array.from({ length: PLACES }, () => first + Math.floor(Math.random() * (last - first + 1)));
  const chunks = oldest.length === 0 ? [] : (await Promise.all(places.map(from))).flat();
  const sum = chunks.reduce((bytes, chunk) => bytes + chunk.bytes.length + chunk.subject.length, 0);
  return chunks.length === 0 ? 0 : sum / chunks.length;
}

function shareOf({ config, state }: Info): number {
  return config.max_bytes > 0 ? state.bytes / config.max_bytes : 0;
}
