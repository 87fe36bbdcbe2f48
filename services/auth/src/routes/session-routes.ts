/** `POST /auth/refresh`, `POST /auth/logout`, `GET /auth/me`. */
import { Unauthenticated } from '@penstock/errors';
import { accessTokenKeys, verifyAccessToken } from '@penstock/identity';
import type { FastifyInstance } from 'fastify';
import type { UserRow } from '../model/collections.ts';
import type { Sessions } from '../model/sessions.ts';
import type { Users } from '../model/users.ts';
import { flagField, textField } from './bodies.ts';
import type { RequestAudit } from './request-audit.ts';

export interface SessionRoutesOptions {
  readonly sessions: Sessions;
  readonly users: Users;
  readonly jwtSecret: string;
  readonly audit: RequestAudit;
  readonly now: () => number;
}

export function addSessionRoutes(
  app: FastifyInstance,
  { sessions, users, jwtSecret, audit, now }: SessionRoutesOptions,
): void {
  const keys = accessTokenKeys(jwtSecret);

  app.post('/auth/refresh', { config: { tier: 'api' } }, async (request, reply) => {
    const refreshToken = textField(request.body, 'refresh_token');
    const refreshed = await sessions.refresh(refreshToken, flagField(request.body, 'rotate'));
    const { id, email, tier } = refreshed.user;
    return reply.send({
      access_token: refreshed.accessToken,
      ...(refreshed.refreshToken === undefined ? {} : { refresh_token: refreshed.refreshToken }),
      user: { id, email, tier },
    });
  });

  app.post('/auth/logout', { config: { tier: 'api' } }, async (request, reply) => {
    const userId = await sessions.endAll(textField(request.body, 'refresh_token'));
    audit.done(request, userId, 'logout', `user/${userId}`);
    return reply.send({ status: 'ok' });
  });

  app.get('/auth/me', { config: { tier: 'read' } }, async (request, reply) => {
    const { id, email, name, login, avatarUrl, tier, isAdmin, createdAt } = users.shown(
      await userOf(request.headers.authorization),
    );
    return reply.send({
      id,
      email,
      name,
      git_host_login: login,
      avatar_url: avatarUrl,
      tier,
      is_admin: isAdmin,
      created_at: createdAt,
    });
  });

  /** Answers the user of an access token whose session is active: the sessions are ours, so there is no revocation to wait for. */
  async function userOf(authorization: string | undefined): Promise<UserRow> {
    const [, token = ''] = /^bearer[ \t]+(\S+)[ \t]*$/iu.exec(authorization ?? '') ?? [];
    const verified = token === '' ? null : await verifyAccessToken(keys, token, now());
    const session = verified === null ? null : await sessions.living(verified.claims.sid);
    const user = session === null || session.userId !== verified?.claims.sub ? null : await users.get(session.userId);
    if (user === null || (await users.isSuspended(user.id))) throw new Unauthenticated();
    return user;
  }
}
