/**
 * Which request the present work is for. It stands in every log line (`logger.ts`) and goes along with what is asked of other
 * services, so that what a request caused is found by one word wherever it happened.
 *
 *  REQUEST-1 Work that outlives its request, or is for several, is begun by `withRequest(undefined, …)`: it would carry the id of
 *     whoever happened to come first.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';

export interface RequestContext {
  readonly id: string;
  /** As the caller's own trace goes on (W3C Trace Context); absent: it has none. */
  readonly traceparent?: string | undefined;
}

/** Also the names on the bus. */
export const REQUEST_ID_HEADER = 'X-Request-Id';
export const TRACEPARENT_HEADER = 'traceparent';

/** What proxies and hosts make: UUIDs, hex, base64; nothing that could be taken for more than one word of a log line. */
const REQUEST_ID = /^[A-Za-z0-9._:+/=-]{1,128}$/u;
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?=-|$)/u;
const TRACEPARENT_LENGTH = 55;
const TRACEPARENT_LENGTH_MAX = 256;

const storage = new AsyncLocalStorage<RequestContext | undefined>();

/** Undefined: the work is for no request, or for several. */
export function currentRequest(): RequestContext | undefined {
  return storage.getStore();
}

export function withRequest<T>(request: RequestContext | undefined, work: () => T): T {
  return storage.run(request, work);
}

/** Of what a request came with: an id that is none is replaced, a `traceparent` that is none is left out. */
export function requestOf(id: unknown, traceparent: unknown): RequestContext {
  const parent = traceparentOf(traceparent);
  return { id: requestIdOf(id) ?? randomUUID(), ...(parent === undefined ? {} : { traceparent: parent }) };
}

/** Of what another part of this installation has written down. Undefined: it has not. */
export function keptRequest({
  requestId,
  traceparent,
}: {
  readonly requestId?: string | undefined;
  readonly traceparent?: string | undefined;
}): RequestContext | undefined {
  return requestId === undefined ? undefined : requestOf(requestId, traceparent);
}

export function requestIdOf(value: unknown): string | undefined {
  return typeof value === 'string' && REQUEST_ID.test(value) ? value : undefined;
}

/** Of later versions what this one knows of them. */
export function traceparentOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > TRACEPARENT_LENGTH_MAX || !TRACEPARENT.test(value)) return undefined;
  if (value.length === TRACEPARENT_LENGTH) return value;
  return value.startsWith('00') ? undefined : `00${value.slice(2, TRACEPARENT_LENGTH)}`;
}
