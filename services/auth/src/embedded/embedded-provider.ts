/**
 * An OpenID provider inside the server, for development: whoever can open its page says who they are, and no password is
 * asked for. `oidc-provider` speaks the protocol; who logs in and who consents is asked on our own pages.
 *
 * It is built at its first use, when the server's address is known, and only then loaded: nobody else pays for it.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { JSON_TYPE } from '@penstock/http';
import type { Context, Provider } from 'oidc-provider';
import type { IdentityProvider } from '../providers/port.ts';
import { oidcProvider } from '../providers/oidc.ts';

export const EMBEDDED_PATH = '/auth/embedded';
const CLIENT_ID = 'penstock';
/** How long a login that is under way lives, and all that comes of it. */
const LIFE_SECS = 600;

export interface Embedded {
  /** The same provider as a client of it sees it. */
  readonly client: IdentityProvider;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Throws where the browser brings no login that is under way. */
  question(request: IncomingMessage, response: ServerResponse): Promise<Question>;
  /** Where the browser is to go next. */
  answerLogin(request: IncomingMessage, response: ServerResponse, login: string): Promise<string>;
  answerConsent(request: IncomingMessage, response: ServerResponse, granted: boolean): Promise<string>;
}

interface Question {
  readonly kind: 'login' | 'consent';
  /** Of `consent`. */
  readonly login: string;
}

/** `baseUrl`: the server's own, without a slash at its end; the browser and this process reach it alike. */
export async function startEmbedded(baseUrl: string): Promise<Embedded> {
  const issuer = `${baseUrl}${EMBEDDED_PATH}`;
  const clientSecret = randomBytes(32).toString('base64url');
  const client = oidcProvider({ issuer, clientId: CLIENT_ID, clientSecret, alwaysAsks: true, allowsPlainHttp: true });
  const provider = await buildProvider(issuer, baseUrl, clientSecret);
  const callback = provider.callback();
  return {
    client,
    async handle(request, response) {
      const mounted = request as IncomingMessage & { originalUrl?: string };
      mounted.originalUrl = request.url ?? '/';
      mounted.url = mounted.originalUrl.slice(EMBEDDED_PATH.length) || '/';
      await callback(request, response);
    },
    async question(request, response) {
      const { prompt, session } = await provider.interactionDetails(request, response);
      return { kind: prompt.name === 'consent' ? 'consent' : 'login', login: session?.accountId ?? '' };
    },
    async answerLogin(request, response, login) {
      const { session } = await provider.interactionDetails(request, response);
      const onward = await provider.interactionResult(
        request,
        response,
        { login: { accountId: login, remember: false } },
        { mergeWithLastSubmission: false },
      );
      if (session !== undefined && session.accountId !== login) await forgetAccount(provider, session.uid);
      return onward;
    },
    async answerConsent(request, response, granted) {
      if (!granted)
        return await provider.interactionResult(
          request,
          response,
          { error: 'access_denied', error_description: 'declined on the page' },
          { mergeWithLastSubmission: false },
        );
      const { session, params } = await provider.interactionDetails(request, response);
      const grant = new provider.Grant({ accountId: session?.accountId ?? '', clientId: CLIENT_ID });
      grant.addOIDCScope(String(params['scope'] ?? 'openid'));
      return await provider.interactionResult(
        request,
        response,
        { consent: { grantId: await grant.save() } },
        { mergeWithLastSubmission: true },
      );
    },
  };
}

/**
 * Of a browser that was somebody else before. The library would end that login by a page that sends its own form by a script, which the
 * policy of our pages stops: the browser would stay there. After the answer, since the library takes none from a changed session.
 */
async function forgetAccount(provider: Provider, uid: string): Promise<void> {
  const session = await provider.Session.findByUid(uid);
  if (session === undefined) return;
  session.accountId = undefined;
  session.authorizations = undefined;
  await session.persist();
}

async function buildProvider(issuer: string, baseUrl: string, clientSecret: string): Promise<Provider> {
  const [{ Provider: OidcProvider }, { Memory }] = await Promise.all([
    quietly(() => import('oidc-provider')),
    import('./memory.ts'),
  ]);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const provider = new OidcProvider(issuer, {
    adapter: Memory,
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
        client_name: 'Penstock',
        redirect_uris: [`${baseUrl}/auth/callback/web`],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: 'client_secret_basic',
        id_token_signed_response_alg: 'ES256',
      },
    ],
    cookies: {
      keys: [randomBytes(32).toString('base64url')],
      names: {
        session: 'penstock_embedded',
        interaction: 'penstock_embedded_step',
        resume: 'penstock_embedded_resume',
      },
    },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'embedded' }] },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    findAccount: (_context: unknown, login: string) => ({
      accountId: login,
      claims: () => ({ sub: login, preferred_username: login, name: login }),
    }),
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `${EMBEDDED_PATH}/interaction/${uid}` },
    pkce: { required: () => true },
    responseTypes: ['code'],
    ttl: {
      AccessToken: LIFE_SECS,
      AuthorizationCode: 60,
      Grant: LIFE_SECS,
      IdToken: LIFE_SECS,
      Interaction: LIFE_SECS,
      Session: LIFE_SECS,
    },
    renderError: (context: { type: string; body: unknown }, refusal: { readonly error: string }) => {
      context.type = JSON_TYPE;
      context.body = JSON.stringify({
        error: refusal.error,
        message: 'The embedded identity provider does not know this login, or it has expired: begin it again.',
      });
    },
  });
  provider.use(asTheServer);
  return provider;
}

/** Answers as every other route of the server does: to the origins that were listed and to no others, with errors as JSON. */
async function asTheServer(context: Context, next: () => Promise<void>): Promise<void> {
  const { res } = context;
  const own = CROSS_ORIGIN_HEADERS.map((name) => [name, res.getHeader(name)] as const);
  await next();
  for (const [name, value] of own) {
    if (value === undefined) res.removeHeader(name);
    else res.setHeader(name, value);
  }
  if (context.status !== NOT_FOUND || context.body != null) return;
  context.status = NOT_FOUND;
  context.type = JSON_TYPE;
  context.body = JSON.stringify({
    error: 'not_found',
    message: 'The embedded identity provider has no page at this address.',
  });
}

/** The library lets every page read its answers; none of ours needs that. */
const CROSS_ORIGIN_HEADERS = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers', 'Vary'] as const;
const NOT_FOUND = 404;

/** The library knows long-term releases of Node by their names and complains of any other while it is loaded; anything else is passed on. */
async function quietly<T>(load: () => Promise<T>): Promise<T> {
  const { console: terminal } = globalThis;
  const { warn } = terminal;
  terminal.warn = (...words: unknown[]) => {
    if (!String(words[0]).includes('Unsupported runtime')) warn(...words);
  };
  try {
    return await load();
  } finally {
    terminal.warn = warn;
  }
}
