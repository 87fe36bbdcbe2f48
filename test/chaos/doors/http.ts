/** A request of a client outside, with a deadline: null where there was no whole answer, or one that says to come again. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';

export interface Answered {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const CALL_MS_MAX = 12_000;
const REPEAT_MS_MIN = 150;
const REPEAT_MS_MAX = 700;

export async function ask(url: string, init: RequestInit): Promise<Answered | null> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(CALL_MS_MAX) });
    const text = await response.text();
    if (response.status >= 500) return null;
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
  } catch {
    return null;
  }
}

export function askJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answered | null> {
  return ask(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** Until there is an answer; null: given up. */
export async function untilAnswered(
  once: () => Promise<Answered | null>,
  random: Random,
  signal: AbortSignal,
): Promise<Answered | null> {
  for (;;) {
    const answer = await once();
    if (answer !== null) return answer;
    if (signal.aborted) return null;
    await pause(random.between(REPEAT_MS_MIN, REPEAT_MS_MAX));
  }
}

/** A GraphQL answer that says UNAVAILABLE, or that the server failed, is none. */
export async function askGraphql(
  url: string,
  token: string,
  query: string,
  variables: Record<string, unknown> = {},
): Promise<Answered | null> {
  const answer = await askJson(`${url}/graphql`, { query, variables }, { authorization: `Bearer ${token}` });
  const [problem] = (answer?.body['errors'] ?? []) as { readonly extensions?: { readonly code?: string } }[];
  const code = problem?.extensions?.code ?? '';
  return ['UNAVAILABLE', 'INTERNAL_SERVER_ERROR'].includes(code) ? null : answer;
}
