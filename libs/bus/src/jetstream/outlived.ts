/**
 * Keys that should be gone. A broker of one server that ended without warning (`kill -9`, power) shows expired keys again
 * once it has started, and lets them live for ever: their removal was in memory only (nats-server issue 8505; seen with
 * 2.15.1). Whether a key is over is therefore also told by its age, in the broker's own time; no clock of ours has a say (P5).
 */
import { api, type StoredMessage } from './stored.ts';
import type { Wire } from '../wire/wire.ts';

/** The broker removes keys within a second or so of their time; one that has just woken up, within some more. */
const LATE_MS_MAX = 5_000;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Of a stream: the broker's time as of the answer, and when the stream was created, as it says. */
export async function brokerClock(
  wire: Wire,
  stream: string,
  timeoutMs: number,
): Promise<{ readonly nowMs: number; readonly created: string }> {
  const { ts, created } = await api<{ ts?: string; created: string }>(
    wire,
    `STREAM.INFO.${stream}`,
    undefined,
    timeoutMs,
  );
  return { nowMs: Date.parse(ts ?? ''), created };
}

/** False also where the broker does not say when it stored the message, or what time it is. */
export function hasOutlived(
  { storedAtMs, header }: Pick<StoredMessage, 'storedAtMs' | 'header'>,
  nowMs: number,
): boolean {
  const ttlMs = parseTtl(header('Nats-TTL'));
  return ttlMs !== undefined && nowMs - storedAtMs > ttlMs + LATE_MS_MAX;
}

/** As Go writes a duration of one unit, or a plain number of seconds. */
function parseTtl(text: string): number | undefined {
  const match = /^(\d+)(ms|s|m|h)?$/.exec(text);
  return match === null ? undefined : Number(match[1]) * (UNIT_MS[match[2] ?? 's'] ?? 1_000);
}
