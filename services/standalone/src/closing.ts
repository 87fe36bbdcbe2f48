/** Parts that were started one after the other, closed in the reverse order. */
import type { Log } from '@penstock/telemetry/log';

export type Closing = () => Promise<unknown> | void;

/** Empties the list. One that does not close cleanly is logged, and the others are closed all the same. */
export async function closeInTurn(started: Closing[], log: Log): Promise<void> {
  for (const end of started.splice(0).toReversed()) {
    try {
      await end();
    } catch (error) {
      log.error({ err: error }, 'a service did not stop cleanly');
    }
  }
}
