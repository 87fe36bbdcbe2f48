/**
 * An identity provider at the HTTP level, as strict as the real ones where it matters: GitHub's, GitLab's and OpenID
 * Connect's addresses, client authentication, PKCE, codes that work once. What its user does is set by the test.
 */
import { createHash, createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export interface FakeAccount {
  readonly id: number;
  readonly login: string;
  readonly name?: string | undefined;
  /** On the profile; absent: hidden. */
  readonly email?: string | undefined;
  /** Of GitHub's list of addresses. */
  readonly primaryEmail?: string | undefined;
  readonly avatarUrl?: string | undefined;
  /** Whether the provider says that it has verified `email`; default true. */
  readonly emailVerified?: boolean | undefined;
  /** Organisations and groups with the state of the membership: `active`, or `pending` for an invitation. */
  readonly memberships?: Readonly<Record<string, 'active' | 'pending'>> | undefined;
}

/** What is wrong with the id tokens that are given out. */
export type IdTokenFault =
  | 'none'
  | 'foreign key'
  | 'no signature'
  | 'shared key'
  | 'audience'
  | 'issuer'
  | 'nonce'
  | 'expired';

/** What a poll of a device code is answered; `unsupported`: there is no device flow at all. */
type FakeDevice = 'pending' | 'authorized' | 'denied' | 'expired' | 'slow_down' | 'unsupported';

export interface FakeGitHostOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly account: FakeAccount;
}

export interface FakeGitHost {
  readonly url: string;
  /** Who is logged in there. */
  account: FakeAccount;
  device: FakeDevice;
  /** What the user answers on the consent page. */
  consent: 'granted' | 'declined';
  /** Each request is answered 502. */
  broken: boolean;
  /** The application has no secret. */
  isPublicClient: boolean;
  idTokenFault: IdTokenFault;
  /** Under which its endpoints of OpenID Connect are, but for the document that names them; those of before are gone. */
  moved: string;
  /** `POST /login/oauth/access_token` and the like, in their order. */
  readonly requests: string[];
  stop(): Promise<void>;
}

interface Grant {
  readonly redirectUri: string;
  readonly challenge: string;
  readonly nonce: string;
  readonly account: FakeAccount;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const BODY_BYTES_MAX = 64 * 1024;

export async function startFakeGitHost(options: FakeGitHostOptions): Promise<FakeGitHost> {
  const host = new Host(options);
  await host.start();
  return host;
}

class Host implements FakeGitHost {
  url = '';
  account: FakeAccount;
  device: FakeDevice = 'pending';
  consent: 'granted' | 'declined' = 'granted';
  broken = false;
  isPublicClient = false;
  idTokenFault: IdTokenFault = 'none';
  moved = '';
  readonly requests: string[] = [];
  readonly #options: FakeGitHostOptions;
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #codes = new Map<string, Grant>();
  readonly #deviceCodes = new Set<string>();
  readonly #tokens = new Map<string, FakeAccount>();
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly #foreignKeys = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  constructor(options: FakeGitHostOptions) {
    this.#options = options;
    this.account = options.account;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the fake git host has no port');
    this.url = `http://127.0.0.1:${address.port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    this.requests.push(`${request.method} ${url.pathname}`);
    const form = new URLSearchParams(await readBody(request));
    if (this.broken) return json(response, 502, { message: 'broken' });
    switch (`${request.method} ${this.#placeOf(url)}`) {
      case 'GET /login/oauth/authorize':
      case 'GET /oauth/authorize':
      case 'GET /authorize':
        return this.#authorize(url, response);
      case 'POST /login/device/code':
      case 'POST /oauth/authorize_device':
        return this.#startDevice(form, response);
      case 'POST /login/oauth/access_token':
      case 'POST /oauth/token':
      case 'POST /token':
        return this.#token(request, form, response);
      case 'GET /api/v3/user':
      case 'GET /user':
        return this.#asUser(request, response, ({ id, login, name, email, avatarUrl }) => ({
          id,
          login,
          name: name ?? null,
          email: email ?? null,
          avatar_url: avatarUrl ?? '',
        }));
      case 'GET /api/v3/user/emails':
      case 'GET /user/emails':
        return this.#asUser(request, response, ({ email, emailVerified = true, primaryEmail }) => [
          ...(email === undefined ? [] : [{ email, primary: false, verified: emailVerified }]),
          { email: 'old@example.org', primary: false, verified: true },
          ...(primaryEmail === undefined ? [] : [{ email: primaryEmail, primary: true, verified: true }]),
        ]);
      case 'GET /api/v4/user':
        return this.#asUser(request, response, ({ id, login, name, email, emailVerified = true, avatarUrl }) => ({
          id,
          username: login,
          name: name ?? '',
          email: email ?? '',
          avatar_url: avatarUrl ?? null,
          confirmed_at: emailVerified ? '2026-01-01T00:00:00Z' : null,
        }));
      case 'GET /userinfo':
        return this.#asUser(request, response, (account) => ({ sub: String(account.id), ...claimsOf(account) }));
      case 'GET /.well-known/openid-configuration':
        return json(response, 200, {
          issuer: this.url,
          authorization_endpoint: `${this.url}${this.moved}/authorize`,
          token_endpoint: `${this.url}${this.moved}/token`,
          userinfo_endpoint: `${this.url}${this.moved}/userinfo`,
          jwks_uri: `${this.url}${this.moved}/jwks`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
          code_challenge_methods_supported: ['S256'],
        });
      case 'GET /jwks':
        return json(response, 200, {
          keys: [{ ...this.#keys.publicKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'fake' }],
        });
      case 'GET /oauth/userinfo':
        return this.#asUser(request, response, ({ id, memberships = {} }) => ({
          sub: String(id),
          groups: Object.keys(memberships).filter((name) => memberships[name] === 'active'),
        }));
      default:
        return this.#membership(request, url, response);
    }
  }

  #placeOf({ pathname }: URL): string {
    if (!/\/(?:authorize|token|userinfo|jwks)$/u.test(pathname) || this.moved === '') return pathname;
    return pathname.startsWith(`${this.moved}/`) ? pathname.slice(this.moved.length) : '/gone';
  }

  #membership(request: IncomingMessage, url: URL, response: ServerResponse): void {
    const [, asked = ''] = /^\/user\/memberships\/orgs\/([^/]+)$/u.exec(url.pathname) ?? [];
    const account = this.#accountOf(request);
    const login = Object.keys(account?.memberships ?? {}).find((name) => name.toLowerCase() === asked.toLowerCase());
    if (account === undefined || login === undefined) return json(response, 404, { message: 'Not Found' });
    json(response, 200, { state: account.memberships?.[login], organization: { login } });
  }

  #authorize(url: URL, response: ServerResponse): void {
    const asked = (name: string): string => url.searchParams.get(name) ?? '';
    const back = URL.canParse(asked('redirect_uri')) ? new URL(asked('redirect_uri')) : null;
    if (
      back === null ||
      asked('client_id') !== this.#options.clientId ||
      asked('response_type') !== 'code' ||
      asked('code_challenge_method') !== 'S256'
    ) {
      return json(response, 400, { error: 'invalid_request' });
    }
    if (this.consent === 'declined') {
      back.searchParams.set('error', 'access_denied');
    } else {
      const code = randomBytes(12).toString('hex');
      this.#codes.set(code, {
        redirectUri: back.href,
        challenge: asked('code_challenge'),
        nonce: asked('nonce'),
        account: this.account,
      });
      back.searchParams.set('code', code);
    }
    back.searchParams.set('state', asked('state'));
    response.writeHead(302, { location: back.href }).end();
  }

  #startDevice(form: URLSearchParams, response: ServerResponse): void {
    if (this.device === 'unsupported') return json(response, 404, { error: 'Not Found' });
    if (form.get('client_id') !== this.#options.clientId) return json(response, 401, { error: 'invalid_client' });
    const code = randomBytes(20).toString('hex');
    this.#deviceCodes.add(code);
    json(response, 200, {
      device_code: code,
      user_code: 'WDJB-MJHT',
      verification_uri: `${this.url}/login/device`,
      expires_in: 899,
      interval: 5,
    });
  }

  /** GitHub answers 200 with an error inside, the others 400: both are taken. */
  #token(request: IncomingMessage, form: URLSearchParams, response: ServerResponse): void {
    const refused = (error: string, more: object = {}): void =>
      json(response, request.url?.startsWith('/login/') === true ? 200 : 400, {
        error,
        error_description: error,
        ...more,
      });
    if (!this.#isClient(request, form)) return refused('invalid_client');
    if (form.get('grant_type') === DEVICE_GRANT) return this.#pollDevice(form, response, refused);
    const code = form.get('code') ?? '';
    const grant = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (grant === undefined || grant.redirectUri !== form.get('redirect_uri') || grant.challenge !== challenge)
      return refused(request.url?.startsWith('/login/') === true ? 'bad_verification_code' : 'invalid_grant');
    this.#give(response, grant.account, grant.nonce);
  }

  #pollDevice(form: URLSearchParams, response: ServerResponse, refused: (error: string, more?: object) => void): void {
    if (!this.#deviceCodes.has(form.get('device_code') ?? '')) return refused('incorrect_device_code');
    switch (this.device) {
      case 'authorized':
        this.#deviceCodes.delete(form.get('device_code') ?? '');
        return this.#give(response, this.account, '');
      case 'slow_down':
        return refused('slow_down', { interval: 10 });
      case 'denied':
        return refused('access_denied');
      case 'expired':
        return refused('expired_token');
      default:
        return refused('authorization_pending');
    }
  }

  #give(response: ServerResponse, account: FakeAccount, nonce: string): void {
    const token = `fake_${randomBytes(12).toString('hex')}`;
    this.#tokens.set(token, account);
    json(response, 200, {
      access_token: token,
      token_type: 'bearer',
      scope: '',
      expires_in: 3600,
      id_token: this.#idToken(account, nonce),
    });
  }

  #idToken(account: FakeAccount, nonce: string): string {
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: this.idTokenFault === 'issuer' ? 'https://issuer.example' : this.url,
      aud: this.idTokenFault === 'audience' ? 'another client' : this.#options.clientId,
      sub: String(account.id),
      iat: now,
      exp: this.idTokenFault === 'expired' ? now - 300 : now + 300,
      nonce: this.idTokenFault === 'nonce' ? 'another login' : nonce,
      ...claimsOf(account),
    };
    const algorithm = { 'no signature': 'none', 'shared key': 'HS256' }[String(this.idTokenFault)] ?? 'ES256';
    const text = [{ alg: algorithm, kid: 'fake' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${this.#signatureOf(text).toString('base64url')}`;
  }

  #signatureOf(text: string): Buffer {
    if (this.idTokenFault === 'no signature') return Buffer.alloc(0);
    if (this.idTokenFault === 'shared key')
      return createHmac('sha256', this.#options.clientSecret).update(text).digest();
    const { privateKey } = this.idTokenFault === 'foreign key' ? this.#foreignKeys : this.#keys;
    return sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  }

  #isClient(request: IncomingMessage, form: URLSearchParams): boolean {
    const { clientId, clientSecret } = this.#options;
    const basic = /^Basic (.+)$/u.exec(request.headers.authorization ?? '')?.[1];
    if (this.isPublicClient)
      return basic === undefined && form.get('client_id') === clientId && form.get('client_secret') === null;
    if (basic === undefined) return form.get('client_id') === clientId && form.get('client_secret') === clientSecret;
    const [id = '', secret = ''] = Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    return id === clientId && secret === clientSecret;
  }

  #asUser(request: IncomingMessage, response: ServerResponse, shown: (account: FakeAccount) => unknown): void {
    const account = this.#accountOf(request);
    if (account === undefined) return json(response, 401, { message: 'Bad credentials' });
    json(response, 200, shown(account));
  }

  #accountOf(request: IncomingMessage): FakeAccount | undefined {
    return this.#tokens.get((request.headers.authorization ?? '').replace(/^Bearer /u, ''));
  }
}

function claimsOf({ login, name, email, emailVerified = true, avatarUrl }: FakeAccount): Record<string, unknown> {
  return {
    preferred_username: login,
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email, email_verified: emailVerified }),
    ...(avatarUrl === undefined ? {} : { picture: avatarUrl }),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_BYTES_MAX) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
