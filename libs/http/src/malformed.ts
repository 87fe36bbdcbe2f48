/**
 * What never becomes a request: bytes that are not HTTP, headers too large or too slow, a body in crumbs. Node hands over the bare socket,
 * so the answer is written as text, with the same headers and body shape as any other error.
 */
import type { Socket } from 'node:net';
import { JSON_TYPE, SECURITY_HEADERS } from './headers.ts';
import { newIdHeader } from './request-ids.ts';

interface ParserError extends Error {
  readonly code?: string;
}

export function answerMalformed(error: ParserError, socket: Socket): void {
  if (socket.destroyed || error.code === 'ECONNRESET') return;
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, message] = refusalOf(error);
  socket.end(rawResponse(status, { error: code, message }));
  // A client that keeps sending must not keep the socket: what it sends now is not read any more.
  socket.on('error', () => socket.destroy());
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** For the answer to reach a client before the reset that its unread bytes cause. */
const LINGER_MS = 500;

/** A whole HTTP/1.1 response that closes the connection. */
export function rawResponse(
  status: number,
  body: { readonly error: string; readonly message: string },
  more: Readonly<Record<string, string>> = {},
): string {
  const text = JSON.stringify(body);
  const headers = {
    ...SECURITY_HEADERS,
    ...newIdHeader(),
    ...more,
    'Content-Type': JSON_TYPE,
    'Content-Length': String(Buffer.byteLength(text)),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${process.getBuiltinModule('node:http').STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${text}`;
}

function refusalOf(error: ParserError): readonly [status: number, code: string, message: string] {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'request_timeout', 'The request did not arrive in time.'];
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'headers_too_large', 'The request headers are too large.'];
    case 'BODY_IN_CRUMBS':
      return [400, 'bad_request', 'The body comes in too many pieces of a few bytes: send it in larger ones.'];
    default:
      return [400, 'bad_request', 'This is not a well-formed HTTP request.'];
  }
}
