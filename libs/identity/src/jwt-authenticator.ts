/**
 * Access tokens to callers. It owns the tokens verified lately: a token is verified once, and from then on known by its
 * digest until it ends, so that a request costs a look into two maps. Whether it has been revoked is asked every time.
 */
import { accessTokenKeys, verifyAccessToken, type VerifiedAccess } from './access-token.ts';
import { callerOfUser, type Authenticator, type Caller } from './callers.ts';
import { Remembered } from './remembered.ts';
import type { Revocations } from './revocations.ts';

export interface JwtAuthenticatorOptions {
  /** `JWT_SECRET` */
  readonly secret: string;
  readonly publicRead: boolean;
  readonly revocations: Pick<Revocations, 'certain' | 'isRevoked'>;
  /** Asked where the revocations are not certain; throws `Unavailable` where nobody can say. */
  readonly isSessionActive: (sessionId: string) => Promise<boolean>;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}

interface Known {
  readonly caller: Caller;
  readonly endsAt: number;
}

/** Users at once behind one gateway; beyond it the oldest tokens are verified again. */
const REMEMBERED_MAX = 10_000;

export function jwtAuthenticator(options: JwtAuthenticatorOptions): Authenticator {
  const { revocations, publicRead, isSessionActive } = options;
  const now = options.now ?? Date.now;
  const keys = accessTokenKeys(options.secret);
  const remembered = new Remembered<Known>(REMEMBERED_MAX);

  const judge = ({ caller }: Known): Caller | null | Promise<Caller | null> => {
    if (revocations.isRevoked(caller)) return null;
    if (revocations.certain) return caller;
    return isSessionActive(caller.user?.sessionId ?? '').then((isActive) => (isActive ? caller : null));
  };

  return (token, key) => {
    const known = remembered.get(key);
    if (known !== undefined) {
      if (known.endsAt > now()) return judge(known);
      remembered.delete(key);
      return null;
    }
    if (!looksLikeJwt(token)) return null;
    return verifyAccessToken(keys, token, now()).then((verified) => {
      if (verified === null) return null;
      const made = { caller: callerOf(verified, publicRead), endsAt: verified.endsAt };
      remembered.set(key, made);
      return judge(made);
    });
  };
}

function callerOf({ claims: { sub, sid, email, tier, admin, at } }: VerifiedAccess, publicRead: boolean): Caller {
  const user = { id: sub, email, tier, isAdmin: admin, sessionId: sid };
  return { kind: 'user', ...callerOfUser(user, { publicRead }), issuedAt: at };
}

/** Three parts: anything else is not worth a signature. */
function looksLikeJwt(token: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/u.test(token);
}
