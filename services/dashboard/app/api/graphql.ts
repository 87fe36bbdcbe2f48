/** One GraphQL operation at a time, by its name in `documents.ts`; its types stand in `operations.ts`. */
import { renew, freshToken } from '../session/session.ts';
import { documents } from './documents.ts';
import { authorized, NOT_RENEWED, problemOf, RequestFailed } from './http.ts';
import type { Operations } from './operations.ts';

export type OperationName = keyof Operations & keyof typeof documents;

const DEADLINE_MS = 60_000;

interface Answer<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string; readonly retryAfter?: number };
  }[];
}

/** Throws `RequestFailed` with what the server says, or the error of `fetch` where it could not be asked. */
export async function ask<Name extends OperationName>(
  name: Name,
  variables: Operations[Name]['variables'],
  signal?: AbortSignal,
): Promise<Operations[Name]['data']> {
  const first = await post<Operations[Name]['data']>(name, variables, signal);
  const token = await freshToken();
  // GraphQL answers 200 to who is not known: a token that has just run out is told by the code alone.
  const isSpent = codeOf(first) === 'UNAUTHENTICATED' && token !== null;
  const renewed = isSpent ? await renew(token) : null;
  if (isSpent && renewed === token) throw new RequestFailed(NOT_RENEWED);
  const answer = renewed === null ? first : await post<Operations[Name]['data']>(name, variables, signal);
  const [error] = answer.errors ?? [];
  if (error !== undefined || answer.data === undefined || answer.data === null)
    throw new RequestFailed({
      code: error?.extensions?.code ?? 'CLIENT',
      message: error?.message ?? 'The server answered without data.',
      retryAfterSecs: error?.extensions?.retryAfter,
    });
  return answer.data;
}

async function post<Data>(
  name: OperationName,
  variables: unknown,
  signal: AbortSignal | undefined,
): Promise<Answer<Data>> {
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  const response = await authorized('/graphql', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ query: documents[name], operationName: name, variables }),
    signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
  });
  if (!response.ok) throw new RequestFailed(await problemOf(response));
  return (await response.json()) as Answer<Data>;
}

function codeOf({ errors }: Answer<unknown>): string | undefined {
  return errors?.[0]?.extensions?.code;
}
