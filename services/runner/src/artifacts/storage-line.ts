/** How a runner asks those who keep bytes: by the bus, or straight where they live in the same process. */
import type { Bus } from '@penstock/bus';
import { callService } from '@penstock/service';

/**
 * A verb, or `upload.<id>` for a part of what `open` has begun, whose bytes are the line's from then on. Rejects with the
 * `ServiceError` that was answered; `Unavailable` where there is no answer.
 */
export type StorageLine = (verb: string, body: unknown) => Promise<unknown>;

/** Of one call: a part is written to a disk that may be slow. */
const CALL_MS_MAX = 30_000;
const UPLOAD = 'upload.';

export function storageByBus(bus: Bus, runner: string): StorageLine {
  return async (verb, body) => {
    const subject = verb.startsWith(UPLOAD)
      ? `${UPLOAD}${runner}.${verb.slice(UPLOAD.length)}`
      : `artifacts.${runner}.${verb}`;
    return await callService(bus, 'registry', subject, body, CALL_MS_MAX, CALL_MS_MAX);
  };
}
