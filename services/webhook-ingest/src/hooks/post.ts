/** One request of a webhook, and what its answer means. Nothing of the answer is kept but its status. */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { isIP } from 'node:net';
import { unlessAborted } from '@penstock/async';
import type { ServerMode } from '@penstock/config';
import { hostOf, parseHookUrl } from './address.ts';
import { resolveHost, type Names } from './resolve.ts';

export interface PostOptions {
  readonly mode: ServerMode;
  readonly names: Names;
}

export interface Posted {
  readonly outcome: 'taken' | 'failed' | 'gone';
  /** 0: there was no answer. */
  readonly status: number;
  /** '' where it was taken. */
  readonly why: string;
  /** What the receiver asks for before the next attempt. */
  readonly retryAfterMs: number;
}

/** From the first question to a name server to the head of the answer. */
export const POST_MS_MAX = 10_000;
const HEADER_BYTES_MAX = 16 * 1024;
const ANSWER_BYTES_MAX = 64 * 1024;
const RETRY_AFTER_MS_MAX = 60 * 60 * 1_000;

/** Never throws. Gives up when `stopped` aborts. */
export async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  { mode, names }: PostOptions,
  stopped?: AbortSignal,
): Promise<Posted> {
  const late = AbortSignal.timeout(POST_MS_MAX);
  const deadline = stopped === undefined ? late : AbortSignal.any([late, stopped]);
  // Judged again at each attempt: it may have been taken by a server in another mode.
  const parsed = parseHookUrl(url, mode);
  if ('refusal' in parsed) return failed(parsed.refusal);
  try {
    const address = await unlessAborted(resolveHost(hostOf(parsed), mode, names), deadline);
    if (typeof address !== 'string') return failed(address.refusal);
    return meaningOf(await answerOf(parsed, address, headers, body, deadline));
  } catch (error) {
    return failed(late.aborted ? `no answer within ${POST_MS_MAX / 1_000} s` : reasonOf(error));
  }
}

/** The head of the answer; its body is not read. Redirects are answers like any other. */
function answerOf(
  url: URL,
  address: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<Pick<IncomingMessage, 'statusCode' | 'headers'>> {
  const name = hostOf(url);
  const isSecure = url.protocol === 'https:';
  const options: RequestOptions & { servername?: string } = {
    method: 'POST',
    host: address,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: {
      ...headers,
      host: url.host,
      'content-type': 'application/json',
      'content-length': body.length,
      'user-agent': 'penstock',
    },
    // A connection of its own: none is kept that another tenant's address might be sent over.
    agent: false,
    maxHeaderSize: HEADER_BYTES_MAX,
    signal,
    // The certificate is the name's, whatever address is connected to.
    ...(isIP(name) === 0 ? { servername: name } : {}),
  };
  return new Promise((resolve, reject) => {
    const request: ClientRequest = process.getBuiltinModule(isSecure ? 'node:https' : 'node:http').request(options);
    request.once('response', (response) => {
      const { statusCode, headers: answered } = response;
      let bytes = 0;
      // Thrown away, so that the receiver ends as it is used to; a long answer is cut off, and its reset is nobody's business.
      response.on('error', () => {});
      response.on('data', (part: Uint8Array) => {
        bytes += part.length;
        if (bytes > ANSWER_BYTES_MAX) response.destroy();
      });
      resolve({ statusCode, headers: answered });
    });
    request.on('error', reject);
    request.end(body);
  });
}

function meaningOf({ statusCode = 0, headers }: Pick<IncomingMessage, 'statusCode' | 'headers'>): Posted {
  if (statusCode >= 200 && statusCode < 300) return { outcome: 'taken', status: statusCode, why: '', retryAfterMs: 0 };
  const seconds = Number(headers['retry-after']);
  return {
    outcome: statusCode === 410 ? 'gone' : 'failed',
    status: statusCode,
    why:
      statusCode >= 300 && statusCode < 400
        ? 'it answered with a redirect, which is not followed'
        : `it answered ${statusCode}`,
    retryAfterMs: Number.isFinite(seconds) && seconds > 0 ? Math.min(RETRY_AFTER_MS_MAX, seconds * 1_000) : 0,
  };
}

function failed(why: string): Posted {
  return { outcome: 'failed', status: 0, why, retryAfterMs: 0 };
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was cut off',
  EPIPE: 'the connection was cut off',
  EHOSTUNREACH: 'there is no way to the address',
  ENETUNREACH: 'there is no way to the address',
  ETIMEDOUT: 'there is no answer from the address',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody who is known',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by nobody who is known',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by nobody who is known',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

/** Without addresses, which are the receiver's own business, and nothing that it has sent. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (code === '' ? 'the connection failed' : `the connection failed (${code})`);
}
