/** Removes log chunks of a run: all of one that is deleted or archived (P34), or the oldest of one whose key has the most there. */
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { streams, subjects } from '../contract/subjects.ts';
import { api } from './stored.ts';

const PURGE_MS = 5_000;
/** The broker looks through all of a run's to find what is to be kept. */
const PURGE_SOME_MS = 30_000;

/** Throws what a request throws, and `StoreRefused`; a run without chunks is no error. `keep`: so many of the newest stay. */
export async function purgeLogs(bus: Bus, runId: string, keep = 0): Promise<void> {
  const request = { filter: subjects.logOfRun(runId), ...(keep > 0 ? { keep } : {}) };
  await api(wireOf(bus), `STREAM.PURGE.${streams.logs}`, request, keep > 0 ? PURGE_SOME_MS : PURGE_MS);
}
