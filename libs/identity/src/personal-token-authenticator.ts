/**
 * Personal tokens to callers. It owns auth's answers of the last minute and the questions under way: of any number of
 * requests with a token that is not known yet, one asks.
 */
import { Unauthenticated } from '@penstock/errors';
import { PERSONAL_TOKEN_PREFIX, type TokenIdentity } from './auth-messages.ts';
import { callerOfUser, type Authenticator, type Caller } from './callers.ts';
import { isPersonalToken, personalTokenHash } from './personal-token.ts';
import { Remembered } from './remembered.ts';
import type { Revocations } from './revocations.ts';

export interface PersonalTokenAuthenticatorOptions {
  readonly publicRead: boolean;
  readonly revocations: Pick<Revocations, 'certain' | 'isRevoked'>;
  /** Asks auth (`svc.auth.token`) by the token's hash in hex; throws `Unauthenticated` for one that is not known. */
  readonly identityOf: (hash: string) => Promise<TokenIdentity>;
  /** Called at each use, and never waited for. */
  readonly used: (tokenId: string, at: number) => void;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}

interface Known {
  readonly caller: Caller;
  readonly tokenId: string;
  readonly goodUntil: number;
}

/** So soon does a change of the user's tier, or of who is an admin, reach a token. */
const REMEMBERED_MS = 60_000;
const REMEMBERED_MAX = 10_000;

export function personalTokenAuthenticator(options: PersonalTokenAuthenticatorOptions): Authenticator {
  const { revocations, publicRead, identityOf, used } = options;
  const now = options.now ?? Date.now;
  const remembered = new Remembered<Known>(REMEMBERED_MAX);
  const asking = new Map<string, Promise<Known | null>>();

  const ask = async (key: string, token: string): Promise<Known | null> => {
    try {
      const { user, scopes, tokenId, expiresAt } = await identityOf(personalTokenHash(token));
      const caller: Caller = {
        kind: 'token',
        ...callerOfUser(user, { publicRead }),
        scopes,
        tokenId,
        ...(expiresAt === undefined ? {} : { endsAt: expiresAt }),
      };
      const known = { caller, tokenId, goodUntil: Math.min(now() + REMEMBERED_MS, expiresAt ?? Infinity) };
      remembered.set(key, known);
      return known;
    } catch (error) {
      if (!(error instanceof Unauthenticated)) throw error;
      remembered.delete(key);
      return null;
    } finally {
      asking.delete(key);
    }
  };
  const accepted = (known: Known | null): Caller | null => {
    if (known === null || revocations.isRevoked(known.caller)) return null;
    used(known.tokenId, now());
    return known.caller;
  };

  return (token, key) => {
    if (!token.startsWith(PERSONAL_TOKEN_PREFIX)) return null;
    const known = remembered.get(key);
    if (known !== undefined && known.goodUntil > now() && revocations.certain) return accepted(known);
    if (!isPersonalToken(token)) return null;
    let answer = asking.get(key);
    if (answer === undefined) {
      answer = ask(key, token);
      asking.set(key, answer);
    }
    return answer.then(accepted);
  };
}
