/**
 * Who is signed in. Tokens are held in memory alone: a page that is closed has forgotten them, and no script of another page finds any.
 *
 *  SIGNED-IN-1 Tokens arrive in the fragment of the callback's address, which is taken out of the address before anything else is done.
 *  SIGNED-IN-2 They are taken at once only where this tab has begun the login, no longer ago than the server waits for one. Else somebody may have sent a link with tokens of their
 *    own, so that what is done here is done as them: the page then says as whom, and asks.
 *  SIGNED-IN-3 The tabs of a browser share a session: who comes asks, who has one answers, and the end of it is told to all.
 *  SIGNED-IN-4 An access token is renewed before it runs out, by one request at a time; a refusal ends the session, a failure does not.
 *    The other tabs are told of the new one, and ask for none of their own; no page is loaded anew for it.
 */
import { computed, signal } from '@preact/signals';
import { go } from '../router.ts';

export interface Session {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly email: string;
  readonly isAdmin: boolean;
  /** Milliseconds since 1970, by this machine's clock. */
  readonly renewAt: number;
}

export const session = signal<Session | null>(null);
/** Changes with who is signed in, and not when a token is renewed. */
export const isSignedIn = computed(() => session.value !== null);
/** A login that this tab has not begun, until somebody says that it is theirs. */
export const offered = signal<Session | null>(null);
/** Why the last login came to nothing. */
export const refusal = signal<string | null>(null);

const CALLBACK = '/dashboard/auth/callback';
/** When, and where, the login was begun that this tab waits for. */
const BEGAN = 'penstock.sign-in';
/** The server waits no longer for a login (WEBLOGIN-1): one that was given up lets no later link in. */
const LOGIN_MS_MAX = 10 * 60_000;
const OTHERS_MS = 200;
const RENEW_BEFORE_MS = 60_000;
const LIFE_MS = 15 * 60_000;
/** What a clock that runs ahead of the server's, or behind it, must not turn into a loop of renewals. */
const RENEW_MS_MIN = 10_000;
/** Every request of the page waits for a renewal: one that a frozen server does not answer is to end. */
const ANSWER_MS_MAX = 20_000;

type Told =
  | { readonly kind: 'ask' }
  | { readonly kind: 'have'; readonly session: Session }
  | { readonly kind: 'ended' };

const others = new BroadcastChannel('penstock.session');
let timer: ReturnType<typeof setTimeout> | undefined;

/** Resolves when it is known whether somebody is signed in: from the address, or from another tab. */
export async function beginSession(): Promise<void> {
  const arrival = arrived();
  const answered = new Promise<void>((resolve) => {
    others.addEventListener('message', ({ data }: MessageEvent<Told>) => {
      hear(data);
      if (data.kind === 'have') resolve();
    });
  });
  if (arrival !== null) return arrive(arrival);
  others.postMessage({ kind: 'ask' } satisfies Told);
  await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, OTHERS_MS))]);
}

export function signIn(): void {
  const from = `${location.pathname}${location.search}`.slice('/dashboard'.length);
  sessionStorage.setItem(BEGAN, `${Date.now()} ${from}`);
  location.assign('/auth/web/login');
}

export function acceptOffer(): void {
  const found = offered.peek();
  offered.value = null;
  if (found === null) return;
  hold(found);
  others.postMessage({ kind: 'have', session: found } satisfies Told);
  go('/', { replace: true });
}

export function refuseOffer(): void {
  offered.value = null;
  go('/', { replace: true });
}

/** Ends all sessions of the user, as the server has it. */
export async function signOut(): Promise<void> {
  const ending = session.peek();
  if (ending === null) return;
  const response = await post('/auth/logout', ending);
  if (isPassing(response))
    throw new Error('The server did not confirm the end of the session: sign out again in a moment.');
  forget();
  others.postMessage({ kind: 'ended' } satisfies Told);
}

/** A token that is good for a request; null where nobody is signed in. */
export async function freshToken(): Promise<string | null> {
  const held = session.peek();
  if (held === null) return null;
  return held.renewAt <= Date.now() ? ((await renew(held.accessToken)) ?? null) : held.accessToken;
}

let renewing: Promise<string | null> | undefined;

/** In place of `spent`; null where the session is over. */
export function renew(spent: string): Promise<string | null> {
  const held = session.peek();
  if (held === null) return Promise.resolve(null);
  if (held.accessToken !== spent) return Promise.resolve(held.accessToken);
  renewing ??= requestToken(held).finally(() => {
    renewing = undefined;
  });
  return renewing;
}

async function requestToken(held: Session): Promise<string | null> {
  const response = await post('/auth/refresh', held);
  if (session.peek()?.refreshToken !== held.refreshToken) return session.peek()?.accessToken ?? null;
  if (response.ok) {
    const { access_token: accessToken } = (await response.json()) as { access_token: string };
    const renewed = sessionOf(accessToken, held.refreshToken);
    hold(renewed);
    others.postMessage({ kind: 'have', session: renewed } satisfies Told);
    return accessToken;
  }
  if (isPassing(response)) return held.accessToken;
  forget();
  return null;
}

async function post(path: string, { refreshToken }: Session): Promise<Response> {
  return await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ refresh_token: refreshToken }),
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  });
}

/** It says nothing of the session: the same again later may be answered. */
function isPassing({ status }: Response): boolean {
  return status === 429 || status >= 500;
}

/** What the fragment of the callback's address holds; the address is without it afterwards. */
function arrived(): URLSearchParams | null {
  if (location.pathname !== CALLBACK) return null;
  const fields = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, '', CALLBACK);
  return fields;
}

function arrive(fields: URLSearchParams): void {
  const began = takeBegan();
  const [accessToken, refreshToken] = [fields.get('access_token'), fields.get('refresh_token')];
  if (accessToken === null || refreshToken === null) {
    refusal.value = fields.get('error') ?? 'login_failed';
    return go(began ?? '/', { replace: true });
  }
  const found = sessionOf(accessToken, refreshToken);
  if (began === null) {
    offered.value = found;
    return;
  }
  hold(found);
  others.postMessage({ kind: 'have', session: found } satisfies Told);
  go(began, { replace: true });
}

/** Where the login was begun that this tab waits for; null where it waits for none. */
function takeBegan(): string | null {
  const [, at, from] = /^(\d+) (.*)$/u.exec(sessionStorage.getItem(BEGAN) ?? '') ?? [];
  sessionStorage.removeItem(BEGAN);
  const ageMs = Date.now() - Number(at);
  return from !== undefined && ageMs >= 0 && ageMs < LOGIN_MS_MAX ? from : null;
}

function hear(told: Told): void {
  const held = session.peek();
  if (told.kind === 'ask' && held !== null) others.postMessage({ kind: 'have', session: held } satisfies Told);
  if (told.kind === 'have' && (held === null || isNewer(told.session, held))) hold(told.session);
  if (told.kind === 'ended') forget();
}

function isNewer(told: Session, held: Session): boolean {
  return told.refreshToken === held.refreshToken && told.renewAt > held.renewAt;
}

function hold(found: Session): void {
  session.value = found;
  refusal.value = null;
  clearTimeout(timer);
  timer = setTimeout(
    () => void renew(found.accessToken).catch(() => {}),
    Math.max(RENEW_MS_MIN, found.renewAt - Date.now()),
  );
}

function forget(): void {
  clearTimeout(timer);
  session.value = null;
}

/** What the token says is for show: the server alone decides what it is worth. */
function sessionOf(accessToken: string, refreshToken: string): Session {
  const { email, admin } = payloadOf(accessToken);
  return {
    accessToken,
    refreshToken,
    email: typeof email === 'string' ? email : '',
    isAdmin: admin === true,
    // By how long it lives and not by its own clock times: this machine's clock may be an hour off.
    renewAt: Date.now() + LIFE_MS - RENEW_BEFORE_MS,
  };
}

function payloadOf(token: string): Record<string, unknown> {
  try {
    const text = atob((token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (each) => each.charCodeAt(0)))) as Record<
      string,
      unknown
    >;
  } catch {
    return {};
  }
}
