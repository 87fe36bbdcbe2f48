/**
 * The four JetStream operations that the partition log, leases and log chunks are made of, over the wire's own
 * exchanges. Not exported from the package. Each throws `NoResponders` (no leader, or no JetStream), `RequestTimeout`,
 * `BrokerAway`, `NotPermitted`, or `StoreRefused` with JetStream's code.
 */
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { AsksAgain } from './asks-again.ts';
import { BadReply, RequestTimeout, StoreRefused } from '../contract/errors.ts';
import { parseJson } from '../wire/body.ts';
import type { WireMessage } from '../wire/short-way.ts';
import type { ExchangeHandle, Wire } from '../wire/wire.ts';

/** JetStream's `err_code`s that decide something here. */
export const StoreCode = {
  wrongLastSequence: 10071,
  /** The same, where another publish to the subject was under way in a replicated stream. */
  wrongLastSequenceUnknown: 10164,
  streamNotFound: 10059,
  streamNameInUse: 10058,
  noMessage: 10037,
  noSequence: 10043,
  /** Mostly: it is not there. */
  notDeleted: 10057,
  /** A cluster without a leader of its JetStream. */
  unavailable: 10008,
  /** The stream's own limit was met with `discard new`. */
  storeFailed: 10077,
  insufficientResources: 10023,
  storageExceeded: 10047,
  /** Of a batch: more subjects than are answered for at once. */
  tooManyResults: 413,
} as const;

export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly bytes: Uint8Array;
  /** By the broker's clock, milliseconds since 1970; NaN: it does not say. */
  readonly storedAtMs: number;
  header(name: string): string;
}

export interface StoreHeaders {
  /** The publish is refused unless this is the sequence of its subject's last message (0: none). */
  readonly expectedLastSequence?: number | undefined;
  readonly ttlMs?: number | undefined;
  readonly more?: Readonly<Record<string, string>> | undefined;
}

/** A read takes a few milliseconds. */
const ASK_AGAIN_MS = 700;
/** Of one read. */
const ASKED_MAX = 4;

/** Resolves when the broker has acknowledged the message. */
export async function store(
  wire: Wire,
  subject: string,
  bytes: Uint8Array,
  how: StoreHeaders | MsgHdrs,
  timeoutMs: number,
): Promise<{ sequence: number }> {
  const message = await wire.call(subject, bytes, isMade(how) ? how : headersOf(how), timeoutMs);
  const ack = parseApi<{ seq?: number }>(subject, message);
  if (ack.seq === undefined) throw new BadReply(subject, 'an acknowledgement without a sequence');
  return { sequence: ack.seq };
}

function isMade(how: StoreHeaders | MsgHdrs): how is MsgHdrs {
  return 'append' in how;
}

function headersOf(how: StoreHeaders): MsgHdrs | undefined {
  if (how.expectedLastSequence === undefined && how.ttlMs === undefined && how.more === undefined) return undefined;
  return headersSaying(how);
}

/** How the client takes them; no part of their type. */
interface Encoded {
  encode(): Uint8Array;
}

/** To be used for any number of messages, for which it is encoded once. */
export function storeHeaders(how: StoreHeaders): MsgHdrs {
  const head = headersSaying(how) as MsgHdrs & Encoded;
  const encoded = head.encode();
  head.encode = () => encoded;
  return head;
}

function headersSaying(how: StoreHeaders): MsgHdrs {
  const head = headers();
  if (how.expectedLastSequence !== undefined)
    head.set('Nats-Expected-Last-Subject-Sequence', String(how.expectedLastSequence));
  if (how.ttlMs !== undefined) head.set('Nats-TTL', `${how.ttlMs}ms`);
  for (const [name, value] of Object.entries(how.more ?? {})) head.set(name, value);
  return head;
}

export async function api<T>(wire: Wire, operation: string, body: unknown, timeoutMs: number): Promise<T> {
  const subject = `$JS.API.${operation}`;
  return parseApi<T>(
    subject,
    await wire.call(subject, body === undefined ? '' : JSON.stringify(body), undefined, timeoutMs),
  );
}

function parseApi<T>(subject: string, message: WireMessage): T {
  const answer = parseJson<T & { error?: { err_code?: number; code: number; description?: string } }>(message.data);
  if (answer.error)
    throw new StoreRefused(
      subject,
      answer.error.err_code ?? answer.error.code,
      answer.error.description ?? 'no reason given',
    );
  return answer;
}

/** Read from the stream's leader, so never an older one than was acknowledged. Needs the right to the whole stream. */
export async function leaderMessage(
  wire: Wire,
  stream: string,
  which: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj?: string },
  timeoutMs: number,
): Promise<StoredMessage | null> {
  interface Answer {
    message: { seq: number; subject: string; data?: string; hdrs?: string; time?: string };
  }
  try {
    const { message } = await api<Answer>(wire, `STREAM.MSG.GET.${stream}`, which, timeoutMs);
    const head = parseHeaders(message.hdrs);
    return {
      sequence: message.seq,
      subject: message.subject,
      bytes: Buffer.from(message.data ?? '', 'base64'),
      storedAtMs: Date.parse(message.time ?? ''),
      header: (name) => head.get(name) ?? '',
    };
  } catch (error) {
    if (error instanceof StoreRefused && error.code === StoreCode.noMessage) return null;
    throw error;
  }
}

/** `NATS/1.0\r\nName: value\r\n…`, as the broker stores it. */
function parseHeaders(base64: string | undefined): Map<string, string> {
  const head = new Map<string, string>();
  if (base64 === undefined) return head;
  for (const line of Buffer.from(base64, 'base64').toString('utf8').split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    if (colon > 0) head.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return head;
}

/** From any replica, which may be behind; the right to it can be limited to the subject. */
export async function replicaLast(
  wire: Wire,
  stream: string,
  subject: string,
  timeoutMs: number,
): Promise<StoredMessage | null> {
  const message = await wire.call(`$JS.API.DIRECT.GET.${stream}.${subject}`, '', undefined, timeoutMs);
  const code = message.headers?.code ?? 0;
  if (code === 404) return null;
  if (code !== 0) throw new StoreRefused(subject, code, message.headers?.description ?? 'direct get');
  return directMessage(message);
}

export interface BatchRequest {
  /** First sequence to look at; of `multi_last` nothing before it is sent. */
  readonly seq?: number;
  readonly next_by_subj?: string;
  readonly multi_last?: readonly string[];
  readonly batch: number;
  readonly max_bytes?: number;
}

/** The next messages in order, from any replica; empty: there are none (there). `timeoutMs` is between two of them. */
export async function directBatch(
  wire: Wire,
  stream: string,
  request: BatchRequest,
  timeoutMs: number,
): Promise<StoredMessage[]> {
  return (await batchUpTo(wire, stream, request, timeoutMs)).messages;
}

interface Batch {
  readonly messages: StoredMessage[];
  /** Of `multi_last`, where it found any: up to which sequence the replica had looked. Else 0. */
  readonly upTo: number;
}

/**
 * As `directBatch`. Of several copies of a stream one is asked. One whose server stands still answers nothing, and is handed its share of
 * what is asked until the others notice, a minute or more: where nobody says a word for a while, the broker is asked again, and who
 * answers first has answered. Not where all its answers are late (`asks-again.ts`).
 */
export function batchUpTo(wire: Wire, stream: string, request: BatchRequest, timeoutMs: number): Promise<Batch> {
  const { promise, resolve, reject } = Promise.withResolvers<Batch>();
  const asked: ExchangeHandle[] = [];
  const askedMax = wire.connection.info?.cluster === undefined ? 1 : ASKED_MAX;
  const asksAgain = AsksAgain.of(wire.connection);
  let isLate = false;
  let failed = 0;
  let next: NodeJS.Timeout | undefined;
  const end = (): void => {
    clearTimeout(next);
    for (const handle of asked) handle.done();
  };
  const askAgain = (): void => {
    isLate = true;
    if (asksAgain.take()) ask();
    else next = setTimeout(askAgain, ASK_AGAIN_MS);
  };
  const ask = (): void => {
    if (asked.length + 1 < askedMax) next = setTimeout(askAgain, ASK_AGAIN_MS);
    const batch = askBatch(wire, stream, request, timeoutMs, {
      begun: (handle) => void asked.push(handle),
      heard: () => clearTimeout(next),
    });
    batch.then(
      (found) => {
        if (!isLate) asksAgain.answeredPromptly();
        end();
        resolve(found);
      },
      (error: unknown) => {
        failed += 1;
        if (error instanceof RequestTimeout && failed < asked.length) return;
        end();
        reject(error as Error);
      },
    );
  };
  ask();
  return promise;
}

function askBatch(
  wire: Wire,
  stream: string,
  request: BatchRequest,
  timeoutMs: number,
  on: { begun(handle: ExchangeHandle): void; heard(): void },
): Promise<Batch> {
  const subject = `$JS.API.DIRECT.GET.${stream}`;
  return new Promise((resolve, reject) => {
    const messages: StoredMessage[] = [];
    const handle = wire.exchange(
      subject,
      JSON.stringify(request),
      undefined,
      timeoutMs,
      (message, exchange) => {
        on.heard();
        const code = message.headers?.code ?? 0;
        // 204 ends a batch, 404 is an empty one.
        if (code === 204 || code === 404) {
          resolve({ messages, upTo: Number(message.headers?.get('Nats-UpTo-Sequence') || 0) });
          return exchange.done();
        }
        if (code !== 0)
          return exchange.fail(new StoreRefused(subject, code, message.headers?.description ?? 'direct get'));
        const stored = directMessage(message);
        // Each message names its predecessor in the batch: one that was lost on the way must not become a hole.
        const before = Number(stored.header('Nats-Last-Sequence') || 0);
        const last = messages.at(-1)?.sequence;
        if (last !== undefined && before !== last)
          return exchange.fail(new BadReply(subject, `message ${stored.sequence} follows ${before}, not ${last}`));
        messages.push(stored);
        exchange.touch();
      },
      (error) => {
        if (error !== null) reject(error);
      },
    );
    on.begun(handle);
  });
}

/** The broker adds its own headers behind those that it finds, which may have the same names. */
function directMessage(message: WireMessage): StoredMessage {
  const head = message.headers;
  return {
    sequence: Number(head?.last('Nats-Sequence') ?? 0),
    subject: head?.last('Nats-Subject') ?? '',
    bytes: message.data,
    storedAtMs: Date.parse(head?.last('Nats-Time-Stamp') ?? ''),
    header: (name) => head?.last(name) ?? '',
  };
}

/** Rejects with the signal's reason as soon as it aborts; the operation itself goes on to its deadline, unseen. */
export function abortable<T>(operation: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return operation;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    operation.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
