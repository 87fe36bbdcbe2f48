/** Writing a commit status to a git host: one request, and what its answer means. */
import type { ProviderName } from '../providers/provider.ts';

export type StatusState = 'pending' | 'success' | 'failure';

export interface StatusTarget {
  readonly provider: ProviderName;
  readonly repository: string;
  readonly commit: string;
  readonly ref: string;
  readonly runId: string;
  readonly tenant: string;
  /** The name under which the host shows it: one a pipeline. */
  readonly context: string;
}

export interface StatusHost {
  /** Without a slash at its end: `https://api.github.com`, `https://gitlab.com/api/v4`. */
  readonly apiUrl: string;
  readonly token: string;
}

/**
 * `refused`: the host will never take it (no such commit, no right to it). `later`: at the earliest after so many
 * milliseconds, where the host says when.
 */
export type StatusAnswer =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'later'; readonly why: string; readonly afterMs: number };

export const REQUEST_MS_MAX = 10_000;
/** How much is kept of what a host says about a refusal. */
const WHY_CHARACTERS_MAX = 200;
/** What is read of an answer, so that its connection serves the next request; one that goes on is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024;
/** A host puts off nothing for longer. */
export const RETRY_AFTER_MS_MAX = 60 * 60 * 1000;

/** Never throws. `targetUrl` is where the host's users find the run. */
export async function writeStatus(
  host: StatusHost,
  target: StatusTarget,
  state: StatusState,
  targetUrl: string,
): Promise<StatusAnswer> {
  // It would lead to another place of the API, with the server's token.
  if (target.repository.split('/').some((name) => name === '.' || name === '..'))
    return { kind: 'refused', why: 'no repository has such a name' };
  try {
    const { url, headers, body } = REQUESTS[target.provider](host, target, state, targetUrl);
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'penstock' },
      body: JSON.stringify(body),
      // A token goes to the host it is for, and nowhere else.
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS_MAX),
    });
    const text = (await beginningOf(response)).slice(0, WHY_CHARACTERS_MAX);
    if (response.ok) return { kind: 'taken' };
    const why = `${response.status} ${text}`;
    if (isAlreadySo(target.provider, response.status, text)) return { kind: 'taken' };
    const limited =
      response.status === 403 &&
      (response.headers.has('retry-after') || response.headers.get('x-ratelimit-remaining') === '0');
    if (
      response.status >= 500 ||
      response.status === 429 ||
      response.status === 408 ||
      response.status === 409 ||
      limited
    )
      return { kind: 'later', why, afterMs: retryAfterMs(response) };
    // A token may be renewed, or given the right it lacks.
    if (response.status === 401 || response.status === 403) return { kind: 'later', why, afterMs: 0 };
    return { kind: 'refused', why };
  } catch (error) {
    return {
      kind: 'later',
      why:
        error instanceof Error
          ? `${error.message}${error.cause instanceof Error ? `: ${error.cause.message}` : ''}`
          : String(error),
      afterMs: 0,
    };
  }
}

/** Whatever answers in the place of a host may send without end. */
async function beginningOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).toString();
}

interface StatusRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, string>>;
}

const DESCRIPTIONS: Readonly<Record<StatusState, string>> = {
  pending: 'The run has begun.',
  success: 'The run succeeded.',
  failure: 'The run did not succeed.',
};

const REQUESTS: {
  readonly [P in ProviderName]: (
    host: StatusHost,
    target: StatusTarget,
    state: StatusState,
    targetUrl: string,
  ) => StatusRequest;
} = {
  git_host_a: (host, { repository, commit, context }, state, targetUrl) => ({
    url: `${host.apiUrl}/repos/${repository.split('/').map(encodeURIComponent).join('/')}/statuses/${commit}`,
    headers: {
      authorization: `Bearer ${host.token}`,
      accept: 'application/vnd.github+json',
      'x-github-api-version': '2022-11-28',
    },
    body: { state, target_url: targetUrl, description: DESCRIPTIONS[state], context },
  }),
  git_host_b: (host, { repository, commit, ref, context }, state, targetUrl) => ({
    url: `${host.apiUrl}/projects/${encodeURIComponent(repository)}/statuses/${commit}`,
    headers: { 'private-token': host.token },
    body: {
      state: state === 'failure' ? 'failed' : state,
      target_url: targetUrl,
      description: DESCRIPTIONS[state],
      name: context,
      ref: ref.replace(/^refs\/(?:heads|tags)\//u, ''),
    },
  }),
};

/** GitLab refuses to go from a state to the same one. */
function isAlreadySo(provider: ProviderName, status: number, text: string): boolean {
  return provider === 'git_host_b' && status === 400 && text.includes('Cannot transition status');
}

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get('retry-after'));
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(RETRY_AFTER_MS_MAX, seconds * 1000) : 0;
}
