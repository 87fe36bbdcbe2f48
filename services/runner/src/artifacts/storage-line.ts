/** How a runner asks those who keep bytes: by the bus, or straight where they live in the same process. */
import type { DirectWay } from '@penstock/artifacts';
import type { Time } from '@penstock/async';
import type { Bus } from '@penstock/bus';
import { callService } from '@penstock/service';

export interface StorageLine {
  /**
   * A verb, or `upload.<id>` for a part of what `open` has begun, whose bytes are the line's from then on. Rejects with the
   * `ServiceError` that was answered; `Unavailable` where there is no answer.
   */
  (verb: string, body: unknown): Promise<unknown>;
  /** For large contents, where there is one. */
  readonly direct?: Pick<DirectWay, 'isOpen' | 'read' | 'send'> | undefined;
  /** By which it is waited for; default: the machine's. */
  readonly time?: Pick<Time, 'bootNow' | 'pause'> | undefined;
  /** Spreads what is tried again; default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** Of one call: a part is written to a disk that may be slow. */
const CALL_MS_MAX = 30_000;
const UPLOAD = 'upload.';

/** `direct`: of a runner in the same network as the services. */
export function storageByBus(bus: Bus, runner: string, direct?: DirectWay): StorageLine {
  const ask = async (verb: string, body: unknown): Promise<unknown> => {
    const subject = verb.startsWith(UPLOAD)
      ? `${UPLOAD}${runner}.${verb.slice(UPLOAD.length)}`
      : `artifacts.${runner}.${verb}`;
    return await callService(bus, 'registry', subject, body, CALL_MS_MAX, CALL_MS_MAX);
  };
  return Object.assign(ask, { direct });
}
