/** What makes a delivery one of ours: the headers of Standard Webhooks. */
import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
/** What Standard Webhooks asks for is 24 to 64. */
const SECRET_BYTES = 32;

export function newHookSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** `sentAt`: milliseconds since 1970. `secret` as `newHookSecret` has made it. */
export function signedHeaders(
  id: string,
  sentAt: number,
  body: Uint8Array,
  secret: string,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(sentAt / 1_000));
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
