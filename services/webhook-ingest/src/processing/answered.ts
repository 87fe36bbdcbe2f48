/** Whether the sender of a delivery may have been answered already, and so been given the id of its run (PROCESSING-4). */

/** The clocks of two servers of a broker may differ by that much. */
const MARGIN_MS = 1_000;

export interface Waiting {
  /** When it came and until when its sender waits, by the clock of the ingest that took it, milliseconds since 1970. */
  readonly receivedAt: number;
  readonly answeredBy: number;
  /** When it was stored, by the broker's clock. */
  readonly storedAt: number;
}

/**
 * A sender waits from when its delivery is stored, and the clocks of two ingests say nothing of each other: so it is the broker's clock
 * that tells. `brokerNow`: the latest time that it may be there; NaN where it does not say, and then the sender may have been answered,
 * as where it is one before the delivery was stored: that clock was set.
 */
export function mayBeAnswered({ receivedAt, answeredBy, storedAt }: Waiting, brokerNow: number): boolean {
  const waits = storedAt + answeredBy - receivedAt - MARGIN_MS;
  return !(brokerNow > storedAt - MARGIN_MS && brokerNow < waits);
}
