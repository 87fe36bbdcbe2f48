import type { Backoff } from '@penstock/async';

/**
 * Between tries that the broker did not answer. The first wait is short, because most troubles are a broker that restarts in
 * 100 ms; the longest one bounds how late it is noticed that the broker is back.
 */
export const BROKER_BACKOFF: Backoff = { firstMs: 25, maxMs: 1_000 };
