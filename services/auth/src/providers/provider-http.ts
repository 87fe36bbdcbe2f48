/** Requests to a provider: bounded in time and size, never redirected, with answers that are looked at before they are believed. */
import { ProviderUnavailable } from '../model/errors.ts';

export const PROVIDER_MS_MAX = 10_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

export interface ProviderAnswer {
  readonly status: number;
  /** Undefined where it is not JSON. */
  readonly body: unknown;
}

export async function postForm(url: string, fields: Readonly<Record<string, string>>): Promise<ProviderAnswer> {
  return await ask(url, { method: 'POST', body: new URLSearchParams(fields), headers: { Accept: 'application/json' } });
}

export async function getJson(url: string, accessToken: string): Promise<ProviderAnswer> {
  return await ask(url, {
    headers: { Accept: 'application/json', Authorization: `Bearer ${accessToken}`, 'User-Agent': 'penstock' },
  });
}

async function ask(url: string, init: RequestInit): Promise<ProviderAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(PROVIDER_MS_MAX) });
    const text = await readBounded(response);
    if (response.status >= 500) throw new ProviderUnavailable(`${new URL(url).origin} answers ${response.status}`);
    return { status: response.status, body: parsed(text) };
  } catch (error) {
    if (error instanceof ProviderUnavailable) throw error;
    throw new ProviderUnavailable(`${new URL(url).origin} does not answer`, { cause: error });
  }
}

/** For libraries that read whatever comes. */
export async function boundedFetch(url: string, init: object): Promise<Response> {
  const response = await fetch(url, init as RequestInit);
  const { status, headers } = response;
  const text = await readBounded(response);
  return new Response(text === '' ? null : text, { status, headers });
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > ANSWER_BYTES_MAX)
      throw new ProviderUnavailable(`${new URL(response.url).origin} answers with more than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

/** '' for what is not there or is no text. */
export function textOf(value: unknown, name: string): string {
  const field = fieldOf(value, name);
  return typeof field === 'string' ? field : '';
}
