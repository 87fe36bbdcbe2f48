/**
 * Shown by a runner of the fleet at the server's port before it is led to the broker, which then wants proof of its key: so that
 * strangers reach nothing of the broker's at all. Names the runner and its end, and is sealed by a key that follows from the first of `JWT_SECRET`.
 */
import { jwtSecretsOf } from '@penstock/config';
import { createHmac, timingSafeEqual } from 'node:crypto';

const FORM = /^(fr_[0-9a-f]{32})\.(\d{1,15})\.([0-9a-f]{64})$/u;

/** `until`: milliseconds since 1970. */
export function signFleetTicket(jwtSecret: string, runner: string, until: number): string {
  const named = `${runner}.${Math.floor(until)}`;
  return `${named}.${sealOf(jwtSecretsOf(jwtSecret)[0], named)}`;
}

/** Answers the runner; null: it is none of ours, or over. */
export function readFleetTicket(jwtSecret: string, ticket: string, now: number): string | null {
  const [, runner = '', until = '', seal = ''] = FORM.exec(ticket) ?? [];
  if (runner === '') return null;
  const isSealed = jwtSecretsOf(jwtSecret).some((secret) =>
    timingSafeEqual(Buffer.from(sealOf(secret, `${runner}.${until}`)), Buffer.from(seal)),
  );
  return isSealed && Number(until) > now ? runner : null;
}

function sealOf(secret: string, named: string): string {
  return createHmac('sha256', secret).update(`penstock fleet ticket\n${named}`).digest('hex');
}
