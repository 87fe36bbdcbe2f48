/**
 * The side of our own device flow that a person sees: type the code, log in through the provider, allow or refuse.
 *
 * Nothing is approved by opening a page: the decision is a POST that brings a value only the page of this very login had,
 * and a cookie that only this browser has, which names the code and the user.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { UserRow } from '../model/collections.ts';
import { clearCookie, cookieOf, setCookie } from './cookies.ts';
import { DEVICE_PAGE, isCode, shownCode, type DeviceFlow } from '../flows/device-flow.ts';
import { codePage, deviceConsentPage, PAGE_HEADERS, messagePage } from './pages.ts';
import { randomText, sameText, type Secrets } from '../model/secrets.ts';
import type { Tries } from './tries.ts';
import { isId, type Users } from '../model/users.ts';
import { LOGIN_LIFETIME_SECS, type WebLogin } from '../flows/web-login.ts';
import { formOf } from './forms.ts';
import type { RequestAudit } from './request-audit.ts';
import { sendToProvider } from './web-routes.ts';

export const DEVICE_CONSENT = '/auth/device/consent';

export interface DevicePagesOptions {
  readonly devices: DeviceFlow;
  readonly webLogin: WebLogin;
  readonly users: Users;
  readonly secrets: Secrets;
  readonly tries: Tries;
  readonly secure: () => boolean;
  readonly audit: RequestAudit;
  readonly now: () => number;
}

interface Consent {
  readonly userCode: string;
  readonly userId: string;
  readonly csrf: string;
  readonly endsAt: number;
}

const COOKIE = 'penstock_device';
const BODY_BYTES_MAX = 16 * 1024;
const QUERY_LENGTH_MAX = 40;

export function addDevicePages(app: FastifyInstance, options: DevicePagesOptions): void {
  const { devices, webLogin, users, secrets, tries, secure, audit, now } = options;

  app.get<{ Querystring: { user_code?: unknown } }>(
    DEVICE_PAGE,
    { config: { tier: 'read' } },
    async (request, reply) => {
      const given = request.query.user_code;
      const typed = typeof given === 'string' ? given.slice(0, QUERY_LENGTH_MAX) : '';
      // With the code in its address this page has nothing to ask: what is allowed is asked after the login, code and all.
      if (isCode(typed)) {
        tries.check(request.clientAddress);
        const row = await devices.waiting(typed);
        if (row !== null)
          return sendToProvider(reply, await webLogin.begin({ kind: 'device', userCode: row.id }), secure(), 302);
        tries.failed(request.clientAddress);
      }
      return reply.headers(PAGE_HEADERS).send(codePage(DEVICE_PAGE, typed));
    },
  );

  app.post(DEVICE_PAGE, { config: { tier: 'api' }, bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    tries.check(request.clientAddress);
    const row = await devices.waiting(formOf(request).get('user_code') ?? '');
    if (row === null) {
      tries.failed(request.clientAddress);
      audit.refused(request, 'device.code', 'invalid_grant');
      return reply
        .code(400)
        .headers(PAGE_HEADERS)
        .send(
          codePage(
            DEVICE_PAGE,
            '',
            'No login is waiting for this code. Compare it with the one that your device shows; a code that has expired needs a new login on the device.',
          ),
        );
    }
    return sendToProvider(reply, await webLogin.begin({ kind: 'device', userCode: row.id }), secure(), 303);
  });

  app.get(DEVICE_CONSENT, { config: { tier: 'read' } }, async (request, reply) => {
    const consent = consentOf(request);
    const [user, row] =
      consent === null
        ? [null, null]
        : await Promise.all([users.get(consent.userId), devices.waiting(consent.userCode)]);
    if (consent === null || user === null || row === null) return over(reply);
    return reply.headers(PAGE_HEADERS).send(
      deviceConsentPage({
        action: DEVICE_CONSENT,
        csrf: consent.csrf,
        login: user.login,
        userCode: shownCode(row.id),
        ip: row.ip,
        agent: row.agent,
        askedAt: new Date(row.createdAt).toISOString(),
      }),
    );
  });

  app.post(DEVICE_CONSENT, { config: { tier: 'api' }, bodyLimit: BODY_BYTES_MAX }, async (request, reply) => {
    const consent = consentOf(request);
    const form = formOf(request);
    const decision = form.get('decision');
    if (
      consent === null ||
      !sameText(form.get('csrf') ?? '', consent.csrf) ||
      (decision !== 'allow' && decision !== 'deny')
    ) {
      audit.refused(request, 'device.decide', 'forbidden');
      return reply
        .code(403)
        .headers(PAGE_HEADERS)
        .send(
          messagePage(
            'Not from our page',
            'This decision did not come from the page that asked for it: begin again with the code.',
          ),
        );
    }
    const outcome = decision === 'allow' ? 'approved' : 'denied';
    const decided = await devices.decide(consent.userCode, outcome, consent.userId);
    reply.header('Set-Cookie', clearCookie(COOKIE, { path: '/auth/device', secure: secure() }));
    if (!decided) return over(reply);
    audit.done(request, consent.userId, `device.${outcome}`, '');
    return reply
      .headers(PAGE_HEADERS)
      .send(
        outcome === 'approved'
          ? messagePage('The device is logged in', 'You can close this page and go on there.')
          : messagePage('Refused', 'The device was not logged in. You can close this page.'),
      );
  });

  function consentOf(request: FastifyRequest): Consent | null {
    const consent = secrets.open<Consent>('device-consent', cookieOf(request, COOKIE) ?? '');
    return consent !== null && isId(consent.userId) && consent.endsAt > now() ? consent : null;
  }
}

/** After the login: from here on this browser may decide about this code, as this user. */
export function consentCookie(
  user: UserRow,
  userCode: string,
  { secrets, now, secure }: Pick<DevicePagesOptions, 'secrets' | 'now' | 'secure'>,
): string {
  const consent: Consent = {
    userCode,
    userId: user.id,
    csrf: randomText(),
    endsAt: now() + LOGIN_LIFETIME_SECS * 1000,
  };
  return setCookie(COOKIE, secrets.seal('device-consent', consent), {
    path: '/auth/device',
    maxAgeSecs: LOGIN_LIFETIME_SECS,
    secure: secure(),
  });
}

function over(reply: FastifyReply): FastifyReply {
  return reply
    .code(400)
    .headers(PAGE_HEADERS)
    .send(
      messagePage(
        'This code can no longer be used',
        'It was approved or refused before, or it has expired. Begin the login again on your device.',
      ),
    );
}
