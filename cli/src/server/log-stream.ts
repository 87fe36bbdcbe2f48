/**
 * Follows a run's log stream to its end over any number of connections.
 *
 *  LOGSTREAM-1 Every message is handed on once: a new connection continues after the last complete message (`Last-Event-ID`).
 *  LOGSTREAM-2 The stream is over at the run's last event, at 204, or at an answer that another try would not change.
 *  LOGSTREAM-3 Every wait has a deadline: for the answer, for the next byte (the server pings every 15 s), and for the server
 *     being away as a whole.
 *  LOGSTREAM-4 What the handler throws is no matter of the connection: it ends the reading.
 *  LOGSTREAM-5 Nothing is read while the handler's promise is pending, so a slow terminal slows the server, not grows us.
 */
import { pauseOrAbort } from '@penstock/async';
import { ServerAway, ServerError, ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { ReconnectWaits } from './reconnect-waits.ts';
import { EventStreamParser, type StreamMessage } from './event-stream-parser.ts';
import { ANSWER_MS_MAX, causeOf, readBody, refused, unreachable, type ServerClient } from './http-client.ts';
import { fieldOf, parseJson } from './json.ts';
import { noSuchRun } from './run-id.ts';

/** The time of three pings of the server. */
const SILENCE_MS_MAX = 45_000;
/** A server that is updated or moved is back long before. */
const AWAY_MS_MAX = 5 * 60_000;
const RETRY_AFTER_MS_MAX = 60_000;
/** What the server says behind all that had happened when it was asked. */
const CAUGHT_UP_COMMENT = 'caught up';
/** An older server does not: nothing came of it from one ping to the next. */
const SILENT_PINGS = 2;

export type StreamEnd =
  /** The run's last event was handed on. */
  | 'ended'
  /** The server says that there is nothing after the last message. */
  | 'nothing-more'
  /** The run goes on; everything so far has been received. */
  | 'caught-up'
  | 'aborted';

export interface LogStreamOptions {
  readonly client: ServerClient;
  readonly runId: string;
  readonly follow: boolean;
  /** The run has ended, and all of its log is there: silence means that the server cannot read it now. */
  readonly isOver?: boolean;
  readonly signal: AbortSignal;
  onMessage(message: StreamMessage): MessageTaken;
  /** Resolves when more can be shown. */
  room(): void | Promise<void>;
  note(line: string): void;
  /** Called once, when the past has been received; of a run that has ended perhaps not at all. */
  onCaughtUp?(): void;
}

export interface MessageTaken {
  /** It was the run's last event. */
  readonly isLast: boolean;
  /** When it happened, milliseconds since 1970 by the server's clock. */
  readonly atMs: number;
}

type ConnectionEnd = StreamEnd | 'cut' | { readonly retryInMs: number };

export async function readLogStream(options: LogStreamOptions): Promise<StreamEnd> {
  const state: Following = { lastEventId: '', waits: new ReconnectWaits(), awaySince: undefined };
  for (;;) {
    let end: ConnectionEnd;
    let cause = 'the connection was cut';
    try {
      end = await readConnection(options, state);
    } catch (error) {
      if (options.signal.aborted) return 'aborted';
      if (error instanceof HandlerFailed) throw error.cause;
      // A login is renewed at the same server: while that is away it cannot be, either.
      const isAway = !(error instanceof ServerError) || error instanceof ServerAway;
      // A server that was never there is a wrong address, not an outage.
      const wasThere = state.lastEventId !== '' || state.awaySince !== undefined || state.reached === true;
      if (!isAway || !wasThere) throw unreachable(options.client.server, error);
      cause = causeOf(error instanceof ServerAway ? (error.cause ?? error) : error);
      end = 'cut';
    }
    if (options.signal.aborted) return 'aborted';
    if (end === 'ended' || end === 'nothing-more' || end === 'caught-up' || end === 'aborted') return end;
    state.awaySince ??= performance.now();
    if (performance.now() - state.awaySince > AWAY_MS_MAX) {
      throw new ServerUnreached(
        `the server ${options.client.server.base} has been away for ${AWAY_MS_MAX / 60_000} minutes (${cause}); the run goes on without us: penstock logs -f ${options.runId}`,
      );
    }
    if (state.tellsAway !== true && performance.now() - state.awaySince > 2_000) {
      options.note(`penstock: ${cause}; trying to reach the server again.`);
      state.tellsAway = true;
    }
    await pauseOrAbort(end === 'cut' ? state.waits.nextMs() : end.retryInMs, options.signal);
  }
}

interface Following {
  lastEventId: string;
  readonly waits: ReconnectWaits;
  /** Monotonic; since when nothing has been heard. */
  awaySince: number | undefined;
  reached?: boolean;
  tellsAway?: boolean;
  isCaughtUp?: boolean;
  tellsSilence?: boolean;
}

async function readConnection(options: LogStreamOptions, state: Following): Promise<ConnectionEnd> {
  const { client, runId } = options;
  const connection = new AbortController();
  const abort = (): void => connection.abort();
  options.signal.addEventListener('abort', abort, { once: true });
  const silence = new Silence(connection, ANSWER_MS_MAX);
  try {
    const response = await client.fetch(`/pipeline/${encodeURIComponent(runId)}/logs`, {
      headers: {
        accept: 'text/event-stream',
        ...(state.lastEventId === '' ? {} : { 'last-event-id': state.lastEventId }),
      },
      signal: connection.signal,
    });
    const refusal = await refusalOf(response, client, runId, state);
    if (refusal !== undefined) return refusal;
    state.reached = true;
    silence.allow(SILENCE_MS_MAX);
    return await readMessages(response, options, state, silence);
  } finally {
    silence.stop();
    options.signal.removeEventListener('abort', abort);
    connection.abort();
  }
}

async function readMessages(
  response: Response,
  options: LogStreamOptions,
  state: Following,
  silence: Silence,
): Promise<ConnectionEnd> {
  // The server's own clock counts, to the second; a stage that never falls silent must not keep us.
  const nowMs = Date.parse(response.headers.get('date') ?? '') + 1000;
  let hasEnded = false;
  let isCaughtUp = false;
  let pings = 0;
  const caughtUp = (): void => {
    isCaughtUp = !options.follow;
    tellCaughtUp(options, state);
  };
  const parser = new EventStreamParser({
    message: (message) => {
      if (hasEnded || isCaughtUp) return;
      pings = 0;
      const { isLast, atMs } = handled(options, message);
      hasEnded = isLast;
      if (atMs > nowMs) caughtUp();
    },
    comment: (text) => {
      // The server pings by the clock, in the middle of a past that takes long as well: one alone says nothing of that.
      const isPing = text !== CAUGHT_UP_COMMENT;
      if (isPing) pings += 1;
      if (!isPing || pings === SILENT_PINGS) caughtUp();
      const isStuck = pings >= (parser.lastEventId === '' ? 1 : SILENT_PINGS);
      if (isStuck && options.isOver === true && state.tellsSilence !== true) {
        state.tellsSilence = true;
        options.note('penstock: the server is there and sends nothing of the log so far; waiting for it.');
      }
    },
  });
  for await (const bytes of response.body ?? []) {
    silence.stop();
    parser.push(bytes);
    if (parser.lastEventId !== '') state.lastEventId = parser.lastEventId;
    if (parser.retryMs !== undefined) state.waits.reset(parser.retryMs);
    if (state.awaySince !== undefined || state.tellsAway === true) {
      state.awaySince = undefined;
      state.tellsAway = false;
      state.waits.reset(parser.retryMs);
    }
    if (hasEnded) return 'ended';
    await options.room();
    if (isCaughtUp) return 'caught-up';
    silence.restart();
  }
  return 'cut';
}

class HandlerFailed extends Error {}

function handled(options: LogStreamOptions, message: StreamMessage): MessageTaken {
  try {
    return options.onMessage(message);
  } catch (cause) {
    throw new HandlerFailed('the handler of a message has failed', { cause });
  }
}

function tellCaughtUp(options: LogStreamOptions, state: Following): void {
  if (state.isCaughtUp === true) return;
  state.isCaughtUp = true;
  options.onCaughtUp?.();
}

/** Undefined: the stream follows. */
async function refusalOf(
  response: Response,
  client: ServerClient,
  runId: string,
  state: Following,
): Promise<ConnectionEnd | undefined> {
  const { status } = response;
  if (status === 200) {
    if ((response.headers.get('content-type') ?? '').startsWith('text/event-stream')) return undefined;
    throw new ServerUnreached(`${client.server.base} does not answer as a Penstock server does: check the address`);
  }
  const text = status === 204 ? '' : await readBody(response);
  switch (status) {
    case 204:
      return 'nothing-more';
    case 401:
    case 403:
      throw refused(client);
    case 404:
      throw noSuchRun(runId, client.server);
    default:
      if (status === 429 || status >= 500) return { retryInMs: retryAfterMs(response) ?? state.waits.nextMs() };
      throw new ServerRefused(`the server answers ${status}${messageIn(text)}`);
  }
}

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  // Everybody else received the same answer: the jitter keeps us from coming back together.
  return seconds >= 0 ? Math.min(RETRY_AFTER_MS_MAX, seconds * 1000 + Math.random() * 1000) : undefined;
}

function messageIn(text: string): string {
  const message = fieldOf(parseJson(text), 'message');
  return typeof message === 'string' ? `: ${printableText(message)}` : '';
}

/** Ends a connection that says nothing for too long. */
class Silence {
  readonly #connection: AbortController;
  #milliseconds: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(connection: AbortController, milliseconds: number) {
    this.#connection = connection;
    this.#milliseconds = milliseconds;
    this.restart();
  }

  allow(milliseconds: number): void {
    this.#milliseconds = milliseconds;
    this.restart();
  }

  restart(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#connection.abort(new DOMException('the server was silent for too long', 'TimeoutError')),
      this.#milliseconds,
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
