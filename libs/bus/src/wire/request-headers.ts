/** Which request a message is sent for, on the wire: in the headers that HTTP has for it. */
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import {
  currentRequest,
  keptRequest,
  REQUEST_ID_HEADER,
  TRACEPARENT_HEADER,
  type RequestContext,
} from '@penstock/telemetry/request';

/** Undefined: the sender serves none. */
export function requestHeaders(): MsgHdrs | undefined {
  const request = currentRequest();
  if (request === undefined) return undefined;
  const head = headers();
  head.set(REQUEST_ID_HEADER, request.id);
  if (request.traceparent !== undefined) head.set(TRACEPARENT_HEADER, request.traceparent);
  return head;
}

/** Whoever may send may write anything: what is no id counts as none. */
export function requestIn(head: MsgHdrs | undefined): RequestContext | undefined {
  if (head === undefined || !head.has(REQUEST_ID_HEADER)) return undefined;
  return keptRequest({ requestId: head.get(REQUEST_ID_HEADER), traceparent: head.get(TRACEPARENT_HEADER) });
}
