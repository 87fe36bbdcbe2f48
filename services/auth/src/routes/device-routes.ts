/** `POST /auth/device` and `POST /auth/device/token`: the side of the device flow that the waiting client sees. */
import type { FastifyInstance } from 'fastify';
import { AuthRefusal } from '../model/errors.ts';
import type { DeviceFlow } from '../flows/device-flow.ts';
import type { Sessions } from '../model/sessions.ts';
import type { Tries } from './tries.ts';
import type { Users } from '../model/users.ts';
import { fieldsOf, textField } from './bodies.ts';
import type { RequestAudit } from './request-audit.ts';

export interface DeviceRoutesOptions {
  readonly devices: DeviceFlow;
  readonly sessions: Sessions;
  readonly users: Users;
  readonly tries: Tries;
  readonly audit: RequestAudit;
}

export function addDeviceRoutes(
  app: FastifyInstance,
  { devices, sessions, users, tries, audit }: DeviceRoutesOptions,
): void {
  app.post('/auth/device', { config: { tier: 'api' } }, async (request, reply) => {
    fieldsOf(request.body);
    return reply.send(await devices.begin({ ip: request.clientAddress, agent: request.headers['user-agent'] ?? '' }));
  });

  app.post('/auth/device/token', { config: { tier: 'api' } }, async (request, reply) => {
    const deviceCode = textField(request.body, 'device_code');
    const outcome = await devices.poll(deviceCode);
    switch (outcome.kind) {
      case 'authorized': {
        const { user } = outcome;
        const login = await sessions.begin(user, 'device');
        audit.login(request, user.id, login.sessionId, 'device');
        const { id, email, name, login: gitHostLogin, avatarUrl, tier } = users.shown(user);
        return reply.send({
          status: 'authorized',
          access_token: login.accessToken,
          refresh_token: login.refreshToken,
          user: { id, email, name, git_host_login: gitHostLogin, avatar_url: avatarUrl, tier },
        });
      }
      case 'pending':
        return reply.send({ status: 'pending', error: 'authorization_pending' });
      case 'slow_down':
        return reply.send({ status: 'pending', error: 'slow_down', interval: outcome.intervalSecs });
      case 'denied':
        throw new AuthRefusal(400, 'access_denied', 'The person who was asked declined this login.', {
          status: 'denied',
        });
      case 'expired':
        throw new AuthRefusal(400, 'expired_token', 'The code has expired or has been used: begin the login again.', {
          status: 'expired',
        });
      case 'unknown':
        // Nobody guesses 256 bits, so each is answered alike; the audit log is not to be filled with them.
        if (tries.restMs(request.clientAddress) === 0) audit.refused(request, 'login', 'invalid_grant');
        tries.failed(request.clientAddress);
        throw new AuthRefusal(400, 'invalid_grant', 'No login has this device code: begin the login again.');
    }
  });
}
