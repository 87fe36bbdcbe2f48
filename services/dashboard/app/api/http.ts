/** Requests to the server, with the token of whoever is signed in. A token that has just run out is renewed, once. */
import { freshToken, renew } from '../session/session.ts';

/** What went wrong, as the server says it, or why it could not be asked. */
export interface Problem {
  readonly code: string;
  readonly message: string;
  readonly retryAfterSecs?: number | undefined;
}

export class RequestFailed extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** The session is not over for that: who may renew it is not there at the moment. */
export const NOT_RENEWED: Problem = {
  code: 'UNAVAILABLE',
  message: 'The server does not renew the session at the moment.',
};

export async function authorized(
  url: string,
  init: RequestInit & { headers?: Record<string, string> },
): Promise<Response> {
  const send = (token: string | null): Promise<Response> =>
    fetch(url, {
      ...init,
      credentials: 'omit',
      cache: 'no-store',
      headers: { ...init.headers, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) },
    });
  const token = await freshToken();
  const response = await send(token);
  if (response.status !== 401 || token === null) return response;
  const renewed = await renew(token);
  if (renewed === null) return response;
  await response.body?.cancel();
  if (renewed === token) throw new RequestFailed(NOT_RENEWED);
  return await send(renewed);
}

/** Of an answer that is no success. */
export async function problemOf(response: Response): Promise<Problem> {
  const retryAfter = Number(response.headers.get('Retry-After') ?? Number.NaN);
  const retryAfterSecs = Number.isFinite(retryAfter) ? retryAfter : undefined;
  try {
    const { error, message } = (await response.json()) as { error?: unknown; message?: unknown };
    if (typeof error === 'string' && typeof message === 'string')
      return { code: error.toUpperCase(), message, retryAfterSecs };
  } catch {
    // A proxy's page; the status says enough.
  }
  return {
    code: `HTTP_${response.status}`,
    message: `The server answered with status ${response.status}.`,
    retryAfterSecs,
  };
}

export function problemFrom(error: unknown): Problem {
  if (error instanceof RequestFailed) return error.problem;
  const isLate = error instanceof DOMException && error.name === 'TimeoutError';
  if (error instanceof TypeError || isLate)
    return {
      code: 'NETWORK',
      message: 'The server cannot be reached. It is tried again as soon as something changes.',
    };
  return { code: 'CLIENT', message: error instanceof Error ? error.message : String(error) };
}
