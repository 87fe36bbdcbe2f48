/** Removes the log chunks of a run that is deleted (P34). */
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { streams, subjects } from '../contract/subjects.ts';
import { api } from './stored.ts';

const PURGE_MS = 5_000;

/** Throws what a request throws, and `StoreRefused`; a run without chunks is no error. */
export async function purgeLogs(bus: Bus, runId: string): Promise<void> {
  await api(wireOf(bus), `STREAM.PURGE.${streams.logs}`, { filter: subjects.logOfRun(runId) }, PURGE_MS);
}
