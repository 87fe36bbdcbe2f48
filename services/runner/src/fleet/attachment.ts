/**
 * How a runner of the fleet is attached (P37): it trades its token for an hour at the broker, again at each dial and at half of its
 * hour, and proves itself there by its key. It owns the key and the timer of the renewal.
 *
 *  ATTACH-1 The token goes to the server alone, in a header; the key's private part goes nowhere.
 *  ATTACH-2 A server that says no ends the runner: nothing else would, for a broker that refuses is dialled without end.
 */
import { backoffMs, pauseOrAbort } from '@penstock/async';
import { publicKeyOf } from '@penstock/bus';
import { TaggedError } from '@penstock/errors';
import { FLEET_PATHS, type AttachAnswer, type AttachRequest } from '@penstock/identity';
import { AttachedSocket } from './attached-socket.ts';
import type { Log } from '@penstock/telemetry/log';

export interface AttachmentOptions {
  /** Without a slash at its end. */
  readonly server: string;
  readonly token: string;
  readonly seed: Uint8Array;
  readonly name: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/** The server has said no: trying again is of no use. */
export class AttachRefused extends TaggedError {
  readonly tag = 'AttachRefused';
}

/** No answer, or one that may be another one later. */
class AttachUnavailable extends TaggedError {
  readonly tag = 'AttachUnavailable';
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
  }
}

/** The broker is told meanwhile, which takes it a second where the fleet is large. */
const ANSWER_MS_MAX = 30_000;
const RENEWAL_RETRY = { firstMs: 5_000, maxMs: 60_000 };
const ANSWER_BYTES_MAX = 64 * 1024;

export class Attachment {
  readonly #options: AttachmentOptions;
  readonly #publicKey: string;
  readonly #over = new AbortController();
  readonly #refused = Promise.withResolvers<AttachRefused>();
  #last: AttachAnswer | null = null;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#publicKey = publicKeyOf(options.seed);
  }

  /** Resolves when the server has said no (ATTACH-2). */
  get refused(): Promise<AttachRefused> {
    return this.#refused.promise;
  }

  /** Throws `AttachRefused`, `AttachUnavailable`. */
  async attach(): Promise<AttachAnswer> {
    const { server, token, name } = this.#options;
    const body: AttachRequest = { public_key: this.#publicKey, name };
    let response: Response;
    try {
      response = await fetch(`${server}${FLEET_PATHS.attach}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
        // The token is for this server alone.
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
    } catch (error) {
      throw new AttachUnavailable(`${server} does not answer`, 0, { cause: error });
    }
    const text = await boundedText(response).catch((error: unknown) => {
      throw new AttachUnavailable(`${server} does not answer to the end`, 0, { cause: error });
    });
    const answer = parsed(text);
    if (response.ok && isAnswer(answer)) return (this.#last = answer);
    const message = typeof answer['message'] === 'string' ? answer['message'] : `it answered ${response.status}`;
    if (response.status === 429 || response.status >= 500) {
      const seconds = Number(response.headers.get('retry-after') ?? 0);
      throw new AttachUnavailable(`${server}: ${message}`, Number.isFinite(seconds) ? seconds * 1_000 : 0);
    }
    const refused = new AttachRefused(
      response.ok || response.status === 404 ? `${server} lets no runners in: is it a Penstock server?` : message,
    );
    this.#refused.resolve(refused);
    throw refused;
  }

  /** For `connectBus`: each connection is preceded by an attachment of its own, as the server may have forgotten the last one. */
  openSocket(): WebSocket {
    return new AttachedSocket(() => this.#openAttached()) as unknown as WebSocket;
  }

  async #openAttached(): Promise<WebSocket> {
    const { ticket } = await this.attach();
    const url = new URL(`${this.#options.server}${FLEET_PATHS.socket}`);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    // Node's own takes headers, which a browser's does not.
    const options = { headers: { Authorization: `Bearer ${ticket}` } } as unknown as string[];
    return new WebSocket(url, options);
  }

  /** Renews at half of the time until it is closed. */
  async keepUp(): Promise<void> {
    const { signal } = this.#over;
    for (let failures = 0; !signal.aborted;) {
      const halfMs = ((this.#last?.expires_in ?? 0) * 1_000) / 2;
      await pauseOrAbort(failures === 0 ? halfMs : backoffMs(failures, RENEWAL_RETRY), signal);
      if (signal.aborted) return;
      try {
        await this.attach();
        failures = 0;
      } catch (error) {
        if (error instanceof AttachRefused) return;
        failures += 1;
        this.#options.log.warn({ err: error }, 'the credentials of this runner could not be renewed; tried again');
        await pauseOrAbort((error as AttachUnavailable).retryAfterMs, signal);
      }
    }
  }

  close(): void {
    this.#over.abort();
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isAnswer(answer: unknown): answer is AttachAnswer {
  const { runner, ticket, expires_in: seconds } = answer as Partial<AttachAnswer>;
  return typeof runner === 'string' && typeof ticket === 'string' && typeof seconds === 'number' && seconds > 0;
}
