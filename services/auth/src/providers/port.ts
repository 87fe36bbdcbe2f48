/** Who says who somebody is. One adapter for each kind of provider; nothing else of auth knows which one it is. */
import type { Profile, ProviderKind } from '../model/profile.ts';

/** One login through a browser. The verifier is PKCE's; `nonce` is for providers that sign who it is. */
export interface WebRequest {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface DeviceStart {
  /** The provider's own; the client never sees it. */
  readonly providerCode: string;
  readonly userCode: string;
  readonly verificationUri: string;
  readonly verificationUriComplete?: string | undefined;
}

export type DevicePoll =
  | { readonly kind: 'pending' | 'denied' | 'expired' }
  | { readonly kind: 'slow_down'; readonly intervalSecs: number }
  | { readonly kind: 'authorized'; readonly profile: Profile };

/**
 * Every method throws `ProviderUnavailable` where the provider does not answer or answers nonsense, within 10 s, and
 * `ProviderRefused` where it refuses. Calls are independent of each other and may be made at the same time.
 */
export interface IdentityProvider {
  /** With its address, so that accounts of two servers are two. */
  readonly name: string;
  readonly kind: ProviderKind;
  /** Where an account without an email has its mail: `<login>@users.noreply.<host>`. */
  readonly host: string;
  /** Where the browser is sent. */
  authorizeUrl(request: WebRequest): Promise<string>;
  /** Exchanges the code that came to the callback, once. `callback`: its whole address, as the browser asked for it. */
  profileOf(callback: URL, request: WebRequest): Promise<Profile>;
  /** Absent, or `begin` answering null: it has no device flow (or not for this application), and ours is used. */
  readonly device?:
    | {
        begin(): Promise<DeviceStart | null>;
        poll(providerCode: string): Promise<DevicePoll>;
      }
    | undefined;
}
