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
  /**
   * From which id to which these are all that there are. Where there are more than can be named: of the oldest, of the newest and of some of
   * those between.
   */
  readonly spans: readonly (readonly [from: string, to: string])[];
  /** Of the bytes that `LOGS` may have, 0 to 1; 0 where it has no bound. */
  readonly share: number;
}

export interface LogsRoom {
  /** As in `LoggedRuns`. */
  readonly share: number;
  /** Infinity: it has no bound. */
  readonly bytesMax: number;
}

const INFO_MS = 20_000;
/** What the broker names at a time, in their order, so by the age of their runs. */
const PAGE_SUBJECTS = 100_000;
/** Held in memory for a moment. */
const PAGES_MAX = 3;
/** Behind all ids. */
const LAST = '~';

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

/** Throws what a request throws, and `StoreRefused`. `pageSubjects`: for tests, which have few. */
export async function loggedRuns(bus: Bus, pageSubjects = PAGE_SUBJECTS): Promise<LoggedRuns> {
  const wire = wireOf(bus);
  // A page may begin with what another has named.
  const chunks = new Map<string, number>();
  const spans: (readonly [string, string])[] = [];
  let share = 0;
  let total = 0;
  const name = async (offset: number): Promise<number> => {
    const request = { subjects_filter: 'log.>', offset };
    const info = await api<Info>(wire, `STREAM.INFO.${streams.logs}`, request, INFO_MS);
    const named = Object.entries(info.state.subjects ?? {}).slice(0, pageSubjects);
    for (const [subject, count] of named) chunks.set(subject, count);
    share = shareOf(info);
    total = info.total ?? 0;
    const [first = '', last = LAST] = [named.at(0), named.at(-1)].map((entry) => entry && runOf(entry[0]));
    spans.push([offset === 0 ? '' : first, offset + named.length >= total ? LAST : last]);
    return named.length;
  };
  let end = await name(0);
  if (total <= PAGES_MAX * pageSubjects)
    for (let named = end; named > 0 && end < total; end += named) named = await name(end);
  else {
    // Whoever writes much now is among the newest; nobody can foretell where else is looked.
    await name(end + Math.floor(Math.random() * (total - 2 * pageSubjects - end + 1)));
    await name(total - pageSubjects);
  }
  return { runs: byRun(chunks), spans, share };
}

function runOf(subject: string): string {
  return subject.split('.')[1] ?? '';
}

function byRun(chunks: ReadonlyMap<string, number>): LoggedRun[] {
  const runs = new Map<string, number>();
  for (const [subject, count] of chunks) {
    const runId = runOf(subject);
    runs.set(runId, (runs.get(runId) ?? 0) + count);
  }
  return Array.from(runs, ([runId, count]) => ({ runId, chunks: count })).toSorted((one, other) =>
    one.runId < other.runId ? -1 : 1,
  );
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
