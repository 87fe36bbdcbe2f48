/**
 * Shown by a runner of the fleet at the server's port before it is led to the broker, which then wants proof of its key: so that
 * strangers reach nothing of the broker's at all. Names the runner and its end, and is sealed by a key that follows from the first of `JWT_SECRET`.
 */
import { jwtSecretsOf } from '@penstock/config';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The tenant's name, in base64url, where it is for one. */
const FORM = /^((fr_[0-9a-f]{32})\.(\d{1,15})(?:\.([A-Za-z0-9_-]{1,200}))?)\.([0-9a-f]{64})$/u;

export interface FleetTicket {
  readonly runner: string;
  /** Whose stages alone the runner is given; absent: everybody's. */
  readonly tenant?: string | undefined;
}

/** `until`: milliseconds since 1970. */
export function signFleetTicket(jwtSecret: string, { runner, tenant }: FleetTicket, until: number): string {
  const whose = tenant === undefined ? '' : `.${Buffer.from(tenant).toString('base64url')}`;
  const named = `${runner}.${Math.floor(until)}${whose}`;
  return `${named}.${sealOf(jwtSecretsOf(jwtSecret)[0], named)}`;
}

/** Null: it is none of ours, or over. */
export function readFleetTicket(jwtSecret: string, ticket: string, now: number): FleetTicket | null {
  const [, named = '', runner = '', until = '', whose, seal = ''] = FORM.exec(ticket) ?? [];
  if (runner === '') return null;
  const isSealed = jwtSecretsOf(jwtSecret).some((secret) =>
    timingSafeEqual(Buffer.from(sealOf(secret, named)), Buffer.from(seal)),
  );
  if (!isSealed || Number(until) <= now) return null;
  return whose === undefined ? { runner } : { runner, tenant: Buffer.from(whose, 'base64url').toString() };
}

function sealOf(secret: string, named: string): string {
  return createHmac('sha256', secret).update(`penstock fleet ticket\n${named}`).digest('hex');
}
