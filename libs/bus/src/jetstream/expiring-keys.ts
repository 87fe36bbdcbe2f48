/** Keys that are written once and end by themselves: what every watcher of their bucket must hear, and may forget in time. */
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { store } from './stored.ts';

const WRITE_TRY_MS = 4_000;

/**
 * Writes the key for `ttlMs` (at least 1,000), over whatever it held; resolves when the broker has it, so that no watch
 * that is current can miss it. Throws what a request throws, and `StoreRefused`; it is safe to repeat.
 */
export async function putExpiring(bus: Bus, bucket: string, key: string, value: unknown, ttlMs: number): Promise<void> {
  await store(wireOf(bus), `$KV.${bucket}.${key}`, Buffer.from(JSON.stringify(value)), { ttlMs }, WRITE_TRY_MS);
}
