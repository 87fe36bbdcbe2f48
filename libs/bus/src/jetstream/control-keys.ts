/** Writing and reading what an administrator holds up; schedulers watch it. */
import { controlName, type Control } from '../contract/controls.ts';
import { buckets } from '../contract/subjects.ts';
import { parseJson } from '../wire/body.ts';
import type { Bus } from '../wire/bus.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { putExpiring } from './expiring-keys.ts';
import { isMarker } from './lease.ts';
import { directBatch, store } from './stored.ts';
import { bucketStream } from './streams.ts';

/** Those that are over included: so many are read at once, and each is held against each queue. */
export const CONTROLS_MAX = 1_000;

const TRY_MS = 4_000;
/** What waited while it was held up has so long to be found by whoever takes it over. */
const OVER_KEPT_MS = 7 * 24 * 3_600_000;
/** The broker answers no more at once. */
const READ_MAX = 1_024;

/** Resolves when the broker has it. Throws what a request throws, and `StoreRefused`; it is safe to repeat. */
export async function putControl(bus: Bus, control: Control): Promise<void> {
  const key = controlName(control.target);
  if (control.resumedAt !== undefined) await putExpiring(bus, buckets.controls, key, control, OVER_KEPT_MS);
  else await store(wireOf(bus), `$KV.${buckets.controls}.${key}`, Buffer.from(JSON.stringify(control)), {}, TRY_MS);
}

/** Those that stand, and those that were resumed lately, as a replica has them. Throws as `putControl`. */
export async function readControls(bus: Bus): Promise<Control[]> {
  const stream = bucketStream(buckets.controls);
  const request = { multi_last: [`$KV.${buckets.controls}.>`], batch: READ_MAX };
  const messages = await directBatch(wireOf(bus), stream, request, TRY_MS);
  return messages.filter((message) => !isMarker(message)).map(({ bytes }) => parseJson<Control>(bytes));
}
