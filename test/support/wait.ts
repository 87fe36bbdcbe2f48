/**
 * Waiting for what has no event of its own (the state of another process): looks often, less often the longer it takes, ends at a deadline. A look
 * may be a request, and a hundred of them a second take more of the processors than what they wait for.
 */
import { setTimeout as pause } from 'node:timers/promises';

const PAUSE_MS_MIN = 10;
const PAUSE_MS_MAX = 100;

export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const from = Date.now();
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    const waitedMs = Date.now() - from;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await pause(Math.min(Math.max(PAUSE_MS_MIN, waitedMs / 10), PAUSE_MS_MAX));
  }
}
