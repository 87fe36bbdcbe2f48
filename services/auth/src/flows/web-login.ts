/**
 * A login through a browser: there to the provider, and back with a code. All that has to be remembered meanwhile is sealed
 * into a cookie of that browser, so that beginning a login writes nothing, and a callback without the cookie is nobody's.
 *
 *  WEBLOGIN-1 `state` is 256 random bits, in the address and in the sealed cookie; both are to be the same, within 10 minutes.
 *  WEBLOGIN-2 A state is taken once: before its code is exchanged, an insert claims it as used.
 *  WEBLOGIN-3 Where the browser goes afterwards is fixed by the configuration; no parameter or header changes it.
 */
import type { OneTimeClaims } from '../model/one-time-claims.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider, WebRequest } from '../providers/port.ts';
import { AuthRefusal } from '../model/errors.ts';
import { hashOf, randomText, sameText, type Secrets } from '../model/secrets.ts';

export const WEB_CALLBACK = '/auth/callback/web';
export const LOGIN_LIFETIME_SECS = 600;

/** What the login is for: tokens for the dashboard, or the approval of a device. */
export type Purpose = { readonly kind: 'web' } | { readonly kind: 'device'; readonly userCode: string };

export interface WebLoginStart {
  readonly location: string;
  readonly cookieName: string;
  readonly cookie: string;
  /** Where the browser sends it: the callback, below the path of the base address where that has one. */
  readonly cookiePath: string;
}

export type WebLoginEnd =
  | { readonly kind: 'profile'; readonly profile: Profile; readonly purpose: Purpose }
  /** The person, or the provider, said no. */
  | { readonly kind: 'refused'; readonly error: string; readonly purpose: Purpose };

interface Sealed extends WebRequest {
  readonly purpose: Purpose;
  readonly endsAt: number;
}

export interface WebLoginOptions {
  readonly provider: () => Promise<IdentityProvider>;
  readonly claims: OneTimeClaims;
  readonly secrets: Secrets;
  readonly baseUrl: () => string;
  readonly now: () => number;
}

const STATE_LENGTH_MAX = 200;

export class WebLogin {
  readonly #options: WebLoginOptions;

  constructor(options: WebLoginOptions) {
    this.#options = options;
  }

  async begin(purpose: Purpose): Promise<WebLoginStart> {
    const { secrets, baseUrl, now } = this.#options;
    const provider = await this.#options.provider();
    const request: WebRequest = {
      redirectUri: `${baseUrl()}${WEB_CALLBACK}`,
      state: randomText(),
      nonce: randomText(),
      verifier: randomText(),
    };
    const sealed: Sealed = { ...request, purpose, endsAt: now() + LOGIN_LIFETIME_SECS * 1000 };
    return {
      location: await provider.authorizeUrl(request),
      cookieName: cookieNameOf(request.state),
      cookie: secrets.seal('web-login', sealed),
      cookiePath: this.cookiePath,
    };
  }

  get cookiePath(): string {
    return new URL(`${this.#options.baseUrl()}${WEB_CALLBACK}`).pathname;
  }

  /** The cookie that a callback with this state has to bring. */
  cookieNameOf(callback: URL): string {
    return cookieNameOf(callback.searchParams.get('state') ?? '');
  }

  /** Throws `AuthRefusal` 400 for a state that is missing, forged, another browser's, too old or used; `ProviderRefused` for a code that is. */
  async finish(callback: URL, cookie: string | undefined): Promise<WebLoginEnd> {
    const { secrets, claims, now } = this.#options;
    const states = callback.searchParams.getAll('state');
    const [state = ''] = states;
    const sealed = cookie === undefined ? null : secrets.open<Sealed>('web-login', cookie);
    if (
      states.length !== 1 ||
      state.length > STATE_LENGTH_MAX ||
      sealed === null ||
      !sameText(state, sealed.state) ||
      sealed.endsAt <= now()
    )
      throw badState();
    if (!(await claims.take(`state.${hashOf(state)}`, { at: now(), expiresAt: sealed.endsAt }))) throw badState();
    const { purpose } = sealed;
    const error = callback.searchParams.get('error');
    if (error !== null)
      return { kind: 'refused', error: error === 'access_denied' ? 'access_denied' : 'login_failed', purpose };
    if ((callback.searchParams.get('code') ?? '') === '')
      throw new AuthRefusal(
        400,
        'bad_request',
        'The identity provider sent the browser back without a code: begin the login again.',
      );
    const provider = await this.#options.provider();
    return { kind: 'profile', profile: await provider.profileOf(callback, sealed), purpose };
  }
}

/** One for each login under way, so that two in one browser do not overwrite each other. */
function cookieNameOf(state: string): string {
  return `penstock_login_${state.replace(/[^A-Za-z0-9_-]/gu, '').slice(0, 12)}`;
}

function badState(): AuthRefusal {
  return new AuthRefusal(
    400,
    'invalid_state',
    'This login was not begun in this browser, took too long or has been used: begin it again.',
  );
}
