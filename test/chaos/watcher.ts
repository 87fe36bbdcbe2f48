/**
 * A watcher of one run: it reads the log stream to its end, comes back with its cursor whenever the stream breaks, and now
 * and then breaks it itself. What it has heard in all is to be one event stream, without repetition.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { readStream, type StreamEvent } from '../support/sse.ts';
import type { Random } from '../support/random.ts';
import type { Api } from './api.ts';

export interface Watched {
  readonly runId: string;
  readonly events: StreamEvent[];
  reconnects: number;
  /** `ended`: it heard the last event, or was answered that there is nothing more. */
  state: 'watching' | 'ended' | 'not found' | 'given up';
}

const RECONNECT_MS_MIN = 50;
const RECONNECT_MS_MAX = 600;
const CUT_AFTER_MS_MAX = 2_500;

/** Resolves at the end of the event stream, or when `signal` aborts. */
export async function watchRun(
  api: Api,
  runId: string,
  random: Random,
  cutShare: number,
  signal: AbortSignal,
): Promise<Watched> {
  const watched: Watched = { runId, events: [], reconnects: 0, state: 'watching' };
  while (!signal.aborted) {
    const cut = random.chance(cutShare) ? AbortSignal.timeout(50 + random.int(CUT_AFTER_MS_MAX)) : undefined;
    const { status, ended } = await readStream(api.logsUrl(runId), api.apiKey, {
      lastEventId: watched.events.at(-1)?.id,
      signal: cut === undefined ? signal : AbortSignal.any([signal, cut]),
      onEvent: (event) => void watched.events.push(event),
    });
    if (status === 204 || isLast(watched.events.at(-1))) {
      watched.state = 'ended';
      return watched;
    }
    if (status === 404) {
      watched.state = 'not found';
      return watched;
    }
    const byUs = signal.aborted || cut?.aborted === true;
    if (!byUs && (status !== 200 || ended === 'cut'))
      api.failed(status === 200 ? 'stream cut' : `stream ${status}`, runId);
    watched.reconnects += 1;
    await pause(random.between(RECONNECT_MS_MIN, RECONNECT_MS_MAX));
  }
  watched.state = 'given up';
  return watched;
}

/** The whole event stream as a new client is shown it; null where it cannot be had. */
export async function replayRun(api: Api, runId: string, signal: AbortSignal): Promise<readonly StreamEvent[] | null> {
  for (; !signal.aborted; await pause(RECONNECT_MS_MAX)) {
    const { events, status } = await readStream(api.logsUrl(runId), api.apiKey, { signal });
    if (isLast(events.at(-1))) return events;
    if (status === 404) return null;
  }
  return null;
}

function isLast(event: StreamEvent | undefined): boolean {
  return event?.event === 'pipeline_completed' || event?.event === 'pipeline_cancelled';
}
