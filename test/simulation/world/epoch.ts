/** 2026-11-01 and 2026-12-01 at 00:00 UTC: virtual time zero is the first of them, or as long before the second as the world wants. */
export const EPOCH_MS = 1_793_491_200_000;
export const NEXT_MONTH_MS = EPOCH_MS + 30 * 24 * 60 * 60 * 1000;
