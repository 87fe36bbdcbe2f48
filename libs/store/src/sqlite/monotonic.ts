/** The machine's monotonic clock, which threads share. It stands apart from `worker.ts`, which is a thread's program: who imports that is one. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
