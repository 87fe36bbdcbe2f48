/** Access tokens: how they are signed, and what makes one valid. Whether it was revoked since is not decided here. */
import { randomUUID } from 'node:crypto';
import { jwtSecretsOf } from '@penstock/config';
import { errors, jwtVerify, SignJWT } from 'jose';
import { ACCESS_TOKEN, type AccessClaims } from './auth-messages.ts';

/** A token read after its verification. */
export interface VerifiedAccess {
  readonly claims: AccessClaims;
  /** When it is over, in milliseconds since 1970. */
  readonly endsAt: number;
}

/**
 * For clocks that differ between machines: a token is taken for this long before its beginning. Not after its end: it
 * expires when it says so, and its holder gets a new one by the refresh token.
 */
const CLOCK_LEEWAY_SECS = 10;
/** Nothing of ours is signed with a key id, an embedded key or an extension: a header that brings one was made elsewhere. */
const HEADER_FIELDS: ReadonlySet<string> = new Set(['alg', 'typ']);

/** `JWT_SECRET` as keys: the first signs, any of them verifies. */
export function accessTokenKeys(jwtSecret: string): readonly Uint8Array[] {
  return jwtSecretsOf(jwtSecret).map((secret) => new TextEncoder().encode(secret));
}

/** A token of these claims, signed by the first of `JWT_SECRET`, good for `ACCESS_TOKEN.lifetimeSecs` from `claims.at` on. */
export async function signAccessToken(jwtSecret: string, claims: AccessClaims): Promise<string> {
  const issuedAtSecs = Math.floor(claims.at / 1000);
  const { sub, ...others } = claims;
  return await new SignJWT({ ...others })
    .setProtectedHeader({ alg: ACCESS_TOKEN.algorithm, typ: ACCESS_TOKEN.type })
    .setIssuer(ACCESS_TOKEN.issuer)
    .setAudience(ACCESS_TOKEN.audience)
    .setSubject(sub)
    .setIssuedAt(issuedAtSecs)
    .setExpirationTime(issuedAtSecs + ACCESS_TOKEN.lifetimeSecs)
    .setJti(randomUUID())
    .sign(new TextEncoder().encode(jwtSecretsOf(jwtSecret)[0]));
}

/** Null for whatever is not a valid token at `now` (milliseconds since 1970), for any reason: nobody learns which. */
export async function verifyAccessToken(
  keys: readonly Uint8Array[],
  token: string,
  now: number,
): Promise<VerifiedAccess | null> {
  for (const key of keys) {
    const verified = await verifiedBy(key, token, now);
    if (verified !== null) return verified;
  }
  return null;
}

async function verifiedBy(secret: Uint8Array, token: string, now: number): Promise<VerifiedAccess | null> {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, secret, {
      algorithms: [ACCESS_TOKEN.algorithm],
      typ: ACCESS_TOKEN.type,
      issuer: ACCESS_TOKEN.issuer,
      audience: ACCESS_TOKEN.audience,
      requiredClaims: ['exp', 'iat', 'jti', 'sub', 'sid'],
      currentDate: new Date(now),
    });
    if (Object.keys(protectedHeader).some((field) => !HEADER_FIELDS.has(field))) return null;
    const {
      sub,
      sid,
      email,
      tier,
      admin,
      at,
      exp = 0,
    } = payload as Partial<Record<string, unknown>> & { readonly exp?: number };
    if (!isText(sub) || !isText(sid) || !isText(email) || !isText(tier)) return null;
    if (
      typeof admin !== 'boolean' ||
      typeof at !== 'number' ||
      !Number.isFinite(at) ||
      at > now + CLOCK_LEEWAY_SECS * 1000
    )
      return null;
    return { claims: { sub, sid, email, tier, admin, at }, endsAt: exp * 1000 };
  } catch (error) {
    // jose's own errors tell what is wrong with the token; anything else is wrong with us.
    if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
    throw error;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
