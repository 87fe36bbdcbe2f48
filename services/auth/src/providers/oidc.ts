/**
 * Any OpenID Connect issuer, through `openid-client`: what it can do is learned from its discovery document, which
 * is kept for a while (KEPT-1).
 *
 * ISSUER-1 An id token is believed only with a signature by one of the issuer's keys, and with its issuer, audience, nonce
 *     and expiry. Over which connection it came does not matter.
 * ISSUER-2 Everything of an issuer is reached over https, or is on this machine; the embedded provider is this very server.
 */
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  AuthorizationResponseError,
  buildAuthorizationUrl,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  customFetch,
  discovery,
  fetchUserInfo,
  None,
  ResponseBodyError,
  type ClientAuth,
  type ServerMetadata,
} from 'openid-client';
import { bootMs } from '@penstock/async';
import { createRemoteJWKSet, customFetch as fetchForKeys, errors, jwtVerify, type JWTVerifyGetKey } from 'jose';
import { ProviderRefused, ProviderUnavailable } from '../model/errors.ts';
import { hashedVerifier } from './pkce.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider, WebRequest } from './port.ts';
import { Kept } from './kept.ts';
import { isProtected } from './provider-check.ts';
import { boundedFetch, PROVIDER_MS_MAX, textOf, fieldOf } from './provider-http.ts';

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
/** By a key pair: whoever could check a shared key could sign with it too. */
const SIGNED_BY = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
/** What the clocks of two servers may differ by. */
const CLOCK_SECS_MAX = 60;

interface Issuer {
  readonly client: Configuration;
  readonly keys: JWTVerifyGetKey;
}

/** `now`: milliseconds of a clock that never goes back. */
export function oidcProvider(settings: OidcSettings, now: () => number = bootMs): IdentityProvider {
  const { issuer } = settings;
  const kept = new Kept(() => discovered(settings), now);
  const known = async (): Promise<Issuer> => {
    try {
      return await kept.get();
    } catch (error) {
      throw failure(issuer, error);
    }
  };

  return {
    kind: 'oidc',
    name: `oidc ${issuer}`,
    host: new URL(issuer).hostname,

    async authorizeUrl({ redirectUri, state, nonce, verifier }: WebRequest) {
      const url = buildAuthorizationUrl((await known()).client, {
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
      const { client: config, keys } = await known();
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
        if (claims === undefined || tokens.id_token === undefined)
          throw new ProviderUnavailable(`${issuer} gives no id token`);
        await verifySignature(tokens.id_token, keys, config, settings.clientId);
        const isComplete = textOf(claims, 'email') !== '' && textOf(claims, 'preferred_username') !== '';
        const more =
          isComplete || config.serverMetadata().userinfo_endpoint === undefined
            ? {}
            : await fetchUserInfo(config, tokens.access_token, claims.sub);
        return profileFrom(claims, more);
      } catch (error) {
        // Not where it has said no to the person, which says nothing about itself.
        if (!(error instanceof AuthorizationResponseError)) kept.doubt();
        throw failure(issuer, error);
      }
    },
  };
}

async function discovered({ issuer, clientId, clientSecret, allowsPlainHttp = false }: OidcSettings): Promise<Issuer> {
  const server = new URL(issuer);
  if (!allowsPlainHttp && !isProtected(issuer))
    throw new ProviderUnavailable(`${issuer} is reached neither over https nor on this machine`);
  const insecure = server.protocol === 'http:';
  const options = {
    timeout: PROVIDER_MS_MAX / 1000,
    [customFetch]: boundedFetch,
    ...(insecure ? { execute: [allowInsecureRequests] } : {}),
  };
  const metadata = (await discovery(server, clientId, undefined, undefined, options)).serverMetadata();
  const { jwks_uri: keysUrl } = metadata;
  if (keysUrl === undefined) throw new ProviderUnavailable(`${issuer} does not say where its keys are`);
  for (const address of endpointsOf(metadata)) {
    if (!allowsPlainHttp && !isProtected(address))
      throw new ProviderUnavailable(`${issuer} names ${address}, which is neither https nor on this machine`);
  }
  const config = new Configuration(metadata, clientId, {}, clientAuthOf(metadata, clientSecret));
  config.timeout = PROVIDER_MS_MAX / 1000;
  config[customFetch] = boundedFetch;
  if (insecure) allowInsecureRequests(config);
  const keys = createRemoteJWKSet(new URL(keysUrl), { timeoutDuration: PROVIDER_MS_MAX, [fetchForKeys]: boundedFetch });
  return { client: config, keys };
}

function endpointsOf(metadata: ServerMetadata): readonly string[] {
  const { authorization_endpoint: login, token_endpoint: token, userinfo_endpoint: user, jwks_uri: keys } = metadata;
  return [login, token, user, keys].filter((address) => address !== undefined);
}

/** Keeps ISSUER-1, with what `authorizationCodeGrant` has compared: the nonce, and the party that the token was made for. */
async function verifySignature(
  idToken: string,
  keys: JWTVerifyGetKey,
  config: Configuration,
  clientId: string,
): Promise<void> {
  const { issuer } = config.serverMetadata();
  try {
    await jwtVerify(idToken, keys, {
      issuer,
      audience: clientId,
      algorithms: [...SIGNED_BY],
      clockTolerance: CLOCK_SECS_MAX,
      requiredClaims: ['sub', 'exp', 'iat', 'nonce'],
    });
  } catch (error) {
    // A list of keys that cannot be read says nothing about the token.
    if (!(error instanceof errors.JOSEError) || error.code === 'ERR_JWKS_TIMEOUT' || error.code === 'ERR_JOSE_GENERIC')
      throw error;
    throw new ProviderRefused('invalid_id_token', { cause: error });
  }
}

function clientAuthOf(metadata: ServerMetadata, clientSecret: string | undefined): ClientAuth {
  if (clientSecret === undefined) return None();
  // Where the issuer says nothing, Basic is what the standard has it take.
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic') ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret);
}

/** An address and whether it is verified are taken from the same answer: one says nothing about the other's. */
function profileFrom(signed: object, more: object): Profile {
  const claims = { ...signed, ...more };
  const subject = textOf(signed, 'sub');
  const source = textOf(more, 'email') === '' ? signed : more;
  const email = textOf(source, 'email');
  return {
    subject,
    email,
    emailVerified: email !== '' && fieldOf(source, 'email_verified') === true,
    organizations: [],
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
