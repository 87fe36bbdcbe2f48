/**
 * A stream of server-sent events that goes on: by `fetch`, since a browser's own EventSource can send no token but in the address.
 *
 *  STREAM-1 Each event is handed on once: after a break the stream goes on behind the last one that was handed on, by its cursor.
 *  STREAM-2 While the page is hidden it holds no connection (a browser has six of them for all its tabs), and goes on when it is seen.
 *  STREAM-3 Events are handed on in slices of a few milliseconds, so that a million of them leave room for scrolling.
 */
import { authorized, problemOf, type Problem } from './http.ts';
import { SseParser, type ServerEvent } from './sse-parser.ts';

/** `broken` is tried again, `refused` is not. */
export type StreamState = 'connecting' | 'open' | 'broken' | 'refused' | 'ended';

export interface StreamOptions {
  readonly url: string;
  onEvents(events: readonly ServerEvent[]): void;
  onState(state: StreamState, problem?: Problem): void;
}

const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 15_000;
/** The server says every 15 s that it is there. */
const SILENCE_MS_MAX = 45_000;
const SLICE_MS = 8;
const HIDDEN_MS = 5_000;
/** What waits to be handed on at most, in events. */
const BATCH_MAX = 2_000;

/** Returns what ends it. */
export function followStream(options: StreamOptions): () => void {
  const stop = new AbortController();
  void follow(options, stop.signal).catch((error: unknown) => {
    if (!stop.signal.aborted)
      options.onState('broken', { code: 'CLIENT', message: error instanceof Error ? error.message : String(error) });
  });
  return () => stop.abort();
}

async function follow(options: StreamOptions, stop: AbortSignal): Promise<void> {
  let cursor = '';
  let failures = 0;
  while (!stop.aborted) {
    await whenVisible(stop);
    options.onState('connecting');
    const connection = new Connection(stop);
    try {
      const response = await authorized(options.url, {
        headers: { Accept: 'text/event-stream', ...(cursor === '' ? {} : { 'Last-Event-ID': cursor }) },
        signal: connection.signal,
      });
      if (response.status === 204) return options.onState('ended');
      if (!response.ok || response.body === null) {
        const problem = await problemOf(response);
        if (!isPassing(response.status)) return options.onState('refused', problem);
        options.onState('broken', problem);
        failures += 1;
        await pause(Math.max(pauseMs(failures), (problem.retryAfterSecs ?? 0) * 1000), stop);
        continue;
      }
      options.onState('open');
      for await (const events of batches(response.body, connection)) {
        failures = 0;
        options.onEvents(events);
        cursor = events.at(-1)?.id ?? cursor;
      }
      failures += 1;
    } catch (error) {
      if (stop.aborted) return;
      if (!connection.isAside) {
        failures += 1;
        options.onState('broken', {
          code: 'NETWORK',
          message: error instanceof Error ? error.message : 'The connection broke off.',
        });
      }
    } finally {
      connection.close();
    }
    if (!connection.isAside) await pause(pauseMs(failures), stop);
  }
}

async function* batches(body: ReadableStream<Uint8Array>, connection: Connection): AsyncGenerator<ServerEvent[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  let since = performance.now();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      connection.heard();
      let batch: ServerEvent[] = [];
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        batch.push(event);
        if (batch.length < BATCH_MAX && performance.now() - since < SLICE_MS) continue;
        yield batch;
        batch = [];
        await nextTask();
        since = performance.now();
      }
      if (batch.length > 0) yield batch;
      if (performance.now() - since > SLICE_MS) {
        await nextTask();
        since = performance.now();
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** One connection: broken off when it is silent for too long, and when nobody has looked at the page for a while. */
class Connection {
  readonly #abort = new AbortController();
  readonly #stop: AbortSignal;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  /** Broken off because nobody looks, which is no failure. */
  isAside = false;

  constructor(stop: AbortSignal) {
    this.#stop = stop;
    stop.addEventListener('abort', this.#onStop);
    document.addEventListener('visibilitychange', this.#onVisibility);
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  heard(): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(
      () => this.#abort.abort(new Error('The server has been silent for too long.')),
      SILENCE_MS_MAX,
    );
  }

  close(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#hidden);
    this.#stop.removeEventListener('abort', this.#onStop);
    document.removeEventListener('visibilitychange', this.#onVisibility);
    this.#abort.abort();
  }

  readonly #onStop = (): void => this.#abort.abort();

  readonly #onVisibility = (): void => {
    clearTimeout(this.#hidden);
    if (document.visibilityState === 'visible') return;
    this.#hidden = setTimeout(() => {
      this.isAside = true;
      this.#abort.abort();
    }, HIDDEN_MS);
  };
}

function isPassing(status: number): boolean {
  return status === 429 || status >= 500;
}

function pauseMs(failures: number): number {
  const most = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(failures, 10));
  return most / 2 + (Math.random() * most) / 2;
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      stop.removeEventListener('abort', done);
      removeEventListener('online', done);
      resolve();
    }
    stop.addEventListener('abort', done);
    addEventListener('online', done);
  });
}

function whenVisible(stop: AbortSignal): Promise<void> {
  if (document.visibilityState === 'visible' || stop.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    function done(): void {
      if (document.visibilityState !== 'visible' && !stop.aborted) return;
      document.removeEventListener('visibilitychange', done);
      stop.removeEventListener('abort', done);
      resolve();
    }
    document.addEventListener('visibilitychange', done);
    stop.addEventListener('abort', done);
  });
}

function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener('message', () => {
      port1.close();
      resolve();
    });
    port1.start();
    port2.postMessage(null);
  });
}
