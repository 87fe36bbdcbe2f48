/**
 * Any OpenID Connect issuer, through `openid-client`: what it can do is learned from its discovery document, once and
 * again after a failure; id tokens are verified by its keys, with nonce and PKCE.
 */
import { isLoopback } from '@penstock/config';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  discovery,
  fetchUserInfo,
  None,
  ResponseBodyError,
  type ClientAuth,
  type ServerMetadata,
} from 'openid-client';
import { ProviderRefused, ProviderUnavailable } from '../model/errors.ts';
import { hashedVerifier } from './pkce.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider, WebRequest } from './port.ts';
import { PROVIDER_MS_MAX, textOf, fieldOf } from './provider-http.ts';

export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent: a public client. */
  readonly clientSecret: string | undefined;
  /** Asks the person anew each time, for a provider where several may share a browser. */
  readonly alwaysAsks?: boolean | undefined;
  /** Also where the issuer is not on this machine: it is this very server. */
  readonly allowsPlainHttp?: boolean | undefined;
}

const SCOPE = 'openid profile email';

export function oidcProvider(settings: OidcSettings): IdentityProvider {
  const { issuer } = settings;
  let found: Promise<Configuration> | null = null;
  const configuration = async (): Promise<Configuration> => {
    found ??= discovered(settings);
    try {
      return await found;
    } catch (error) {
      found = null;
      throw failure(issuer, error);
    }
  };

  return {
    name: `oidc ${issuer}`,
    host: new URL(issuer).hostname,

    async authorizeUrl({ redirectUri, state, nonce, verifier }: WebRequest) {
      const url = buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state,
        nonce,
        code_challenge: hashedVerifier(verifier),
        code_challenge_method: 'S256',
        ...(settings.alwaysAsks === true ? { prompt: 'login consent' } : {}),
      });
      return url.href;
    },

    async profileOf(callback: URL, { redirectUri, state, nonce, verifier }: WebRequest) {
      const config = await configuration();
      // The provider compares the redirect address with the one it was given; ours may have come through a proxy.
      const answer = new URL(redirectUri);
      answer.search = callback.search;
      try {
        const tokens = await authorizationCodeGrant(config, answer, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (claims === undefined) throw new ProviderUnavailable(`${issuer} gives no id token`);
        const isComplete = textOf(claims, 'email') !== '' && textOf(claims, 'preferred_username') !== '';
        const more =
          isComplete || config.serverMetadata().userinfo_endpoint === undefined
            ? {}
            : await fetchUserInfo(config, tokens.access_token, claims.sub);
        return profileFrom({ ...claims, ...more });
      } catch (error) {
        throw failure(issuer, error);
      }
    },
  };
}

async function discovered({
  issuer,
  clientId,
  clientSecret,
  allowsPlainHttp = false,
}: OidcSettings): Promise<Configuration> {
  const server = new URL(issuer);
  const insecure =
    server.protocol === 'http:' && (allowsPlainHttp || isLoopback(server.hostname.replace(/^\[|\]$/gu, '')));
  const options = { timeout: PROVIDER_MS_MAX / 1000, ...(insecure ? { execute: [allowInsecureRequests] } : {}) };
  const metadata = (await discovery(server, clientId, undefined, undefined, options)).serverMetadata();
  const config = new Configuration(metadata, clientId, {}, clientAuthOf(metadata, clientSecret));
  config.timeout = PROVIDER_MS_MAX / 1000;
  if (insecure) allowInsecureRequests(config);
  return config;
}

function clientAuthOf(metadata: ServerMetadata, clientSecret: string | undefined): ClientAuth {
  if (clientSecret === undefined) return None();
  // Where the issuer says nothing, Basic is what the standard has it take.
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic') ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret);
}

function profileFrom(claims: object): Profile {
  const subject = textOf(claims, 'sub');
  const email = textOf(claims, 'email');
  return {
    subject,
    email,
    emailVerified: fieldOf(claims, 'email_verified') === true,
    login: textOf(claims, 'preferred_username') || textOf(claims, 'nickname') || email.split('@', 1)[0] || subject,
    name: textOf(claims, 'name'),
    avatarUrl: textOf(claims, 'picture'),
  };
}

/** A refusal where the issuer said so; what cannot be trusted or read counts as no answer. */
function failure(issuer: string, error: unknown): Error {
  if (error instanceof ProviderUnavailable || error instanceof ProviderRefused) return error;
  if (error instanceof AuthorizationResponseError) return new ProviderRefused(error.error, { cause: error });
  if (error instanceof ResponseBodyError && error.status < 500)
    return new ProviderRefused(error.error, { cause: error });
  return new ProviderUnavailable(`${issuer} does not answer as an issuer does`, { cause: error });
}
