/** Which runs have chunks in `LOGS`, and how full it is: what the archive of logs goes by (P34). */
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { streams } from '../contract/subjects.ts';
import { api } from './stored.ts';

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

/** The broker names 100,000 subjects at a time. */
const INFO_MS = 20_000;
/** Held in memory for a moment. The broker names them in their order, so these are of the oldest runs. */
const SUBJECTS_MAX = 300_000;

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
    if (info.config.max_bytes > 0) share = info.state.bytes / info.config.max_bytes;
    if (subjects.length === 0) break;
    offset += subjects.length;
    total = info.total ?? 0;
  }
  const runs = [...chunks].map(([runId, count]) => ({ runId, chunks: count }));
  return { runs: runs.toSorted((one, other) => (one.runId < other.runId ? -1 : 1)), share };
}
