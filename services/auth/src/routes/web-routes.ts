/** `GET /auth/web/login` and `GET /auth/callback/web`: the login of a browser, and where it is sent afterwards. */
import { isLoopback } from '@penstock/config';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UserRow } from '../model/collections.ts';
import { clearCookie, cookieOf, setCookie } from './cookies.ts';
import { AuthRefusal, LoginNotAllowed, ProviderRefused } from '../model/errors.ts';
import type { Profile } from '../model/profile.ts';
import type { Sessions } from '../model/sessions.ts';
import {
  LOGIN_LIFETIME_SECS,
  WEB_CALLBACK,
  type WebLogin,
  type WebLoginEnd,
  type WebLoginStart,
} from '../flows/web-login.ts';
import type { RequestAudit } from './request-audit.ts';

export interface WebRoutesOptions {
  readonly webLogin: WebLogin;
  readonly sessions: Sessions;
  readonly signedIn: (profile: Profile) => Promise<UserRow>;
  readonly baseUrl: () => string;
  readonly dashboardUrl: () => string;
  readonly mode: 'development' | 'production';
  readonly secure: () => boolean;
  readonly audit: RequestAudit;
  /** A login that was for a device goes on there; or ends, because it was declined or the account may not log in here. */
  readonly continueDevice: (
    userCode: string,
    user: UserRow | 'declined' | 'not_allowed',
    reply: FastifyReply,
  ) => Promise<FastifyReply>;
}

/** Where the browser arrives with its tokens: below the dashboard's address, which is this server's own where none is configured. */
const ARRIVAL = '/auth/callback';

export function addWebRoutes(app: FastifyInstance, options: WebRoutesOptions): void {
  const { webLogin, sessions, baseUrl, dashboardUrl, secure, audit } = options;

  app.get('/auth/web/login', { config: { tier: 'read' } }, async (request, reply) => {
    const elsewhere = otherName(request, options);
    if (elsewhere !== null) return reply.redirect(elsewhere, 302);
    return sendToProvider(reply, await webLogin.begin({ kind: 'web' }), secure(), 302);
  });

  app.get(WEB_CALLBACK, { config: { tier: 'read' } }, async (request, reply) => {
    const callback = new URL(request.url, baseUrl());
    const cookieName = webLogin.cookieNameOf(callback);
    const end = await finished(callback, request, cookieName);
    reply.header('Set-Cookie', clearCookie(cookieName, { path: webLogin.cookiePath, secure: secure() }));
    if (end.kind === 'refused') audit.refused(request, `login.${end.purpose.kind}`, end.error);
    const user = end.kind === 'refused' ? 'declined' : await admitted(end.profile, request, end.purpose.kind);
    if (end.purpose.kind === 'device') return await options.continueDevice(end.purpose.userCode, user, reply);
    if (end.kind === 'refused') return arrive(reply, { error: end.error });
    if (typeof user === 'string') return arrive(reply, { error: 'access_denied' });
    const login = await sessions.begin(user, 'web');
    audit.login(request, user.id, login.sessionId, 'web');
    return arrive(reply, { access_token: login.accessToken, refresh_token: login.refreshToken });
  });

  app.get(ARRIVAL, { config: { tier: 'read' } }, async (_request, reply) => {
    if (dashboardUrl() !== baseUrl())
      throw new AuthRefusal(
        404,
        'not_found',
        'This page belongs to the dashboard, which is at another address (SERVICE_DASHBOARD_URL).',
      );
    // A browser takes the fragment, which this server never sees, along to where it is sent.
    return reply.redirect(`/dashboard${ARRIVAL}`, 302);
  });

  async function admitted(
    profile: Profile,
    request: FastifyRequest,
    kind: 'web' | 'device',
  ): Promise<UserRow | 'not_allowed'> {
    try {
      return await options.signedIn(profile);
    } catch (error) {
      if (!(error instanceof LoginNotAllowed)) throw error;
      audit.refused(request, `login.${kind}`, 'forbidden');
      return 'not_allowed';
    }
  }

  async function finished(callback: URL, request: FastifyRequest, cookieName: string): Promise<WebLoginEnd> {
    try {
      return await webLogin.finish(callback, cookieOf(request, cookieName));
    } catch (error) {
      if (error instanceof AuthRefusal) audit.refused(request, 'login.web', error.code);
      if (!(error instanceof ProviderRefused)) throw error;
      audit.refused(request, 'login.web', 'invalid_grant');
      throw new AuthRefusal(
        400,
        'invalid_grant',
        'The identity provider does not take this code (any more): begin the login again.',
      );
    }
  }

  /** The tokens go into the fragment, which browsers send to no server, so they stand in no log. */
  function arrive(reply: FastifyReply, fields: Readonly<Record<string, string>>): FastifyReply {
    return reply.redirect(`${dashboardUrl()}${ARRIVAL}#${new URLSearchParams(fields).toString()}`, 302);
  }
}

/** 303 after a form, whose method is not to be repeated elsewhere. */
export function sendToProvider(
  reply: FastifyReply,
  { location, cookieName, cookie, cookiePath }: WebLoginStart,
  secure: boolean,
  status: 302 | 303,
): FastifyReply {
  return reply
    .header('Set-Cookie', setCookie(cookieName, cookie, { path: cookiePath, maxAgeSecs: LOGIN_LIFETIME_SECS, secure }))
    .redirect(location, status);
}

/**
 * `localhost` and `127.0.0.1` are one server and two names with cookies of their own; the callback comes to the one of the
 * base address, so the login has to begin there. In development mode only: elsewhere the proxy decides about names.
 */
function otherName(request: FastifyRequest, { baseUrl, mode }: WebRoutesOptions): string | null {
  const base = new URL(baseUrl());
  const { host } = request.headers;
  if (mode !== 'development' || host === undefined || host === base.host || !URL.canParse(`http://${host}`))
    return null;
  const asked = new URL(`http://${host}`);
  const bare = (name: string): string => name.replace(/^\[|\]$/gu, '');
  return asked.port === base.port && isLoopback(bare(asked.hostname)) && isLoopback(bare(base.hostname))
    ? `${base.origin}/auth/web/login`
    : null;
}
