import { describe, expect, it } from 'vitest';
import {
  actorOf,
  requireAdmin,
  requireChanger,
  requireCredential,
  requireOperator,
  requireOwnRuns,
  requireReader,
  requireUser,
  requireWriter,
  TOKEN_SCOPES,
  type Caller,
  type TokenScope,
} from '../src/index.ts';
import { callerOfUser } from '../src/callers.ts';

const callers = (publicRead: boolean): Record<string, Caller> => {
  const user = (isAdmin: boolean): Caller => ({
    kind: 'user',
    ...callerOfUser({ id: 'u', email: 'u@x', tier: 'free', isAdmin, sessionId: 's' }, { publicRead }),
    issuedAt: 1,
  });
  const token = (...scopes: TokenScope[]): Caller => ({
    kind: 'token',
    ...callerOfUser({ id: 'u', email: 'u@x', tier: 'free', isAdmin: false }, { publicRead }),
    scopes,
    tokenId: 't',
  });
  return {
    anonymous: { kind: 'anonymous', readTenants: publicRead ? ['service'] : [], writeTenant: null },
    'API key': { kind: 'api-key', readTenants: ['service'], writeTenant: 'service' },
    user: user(false),
    admin: user(true),
    'token read': token('read'),
    'token trigger': token('trigger'),
    'token publish': token('publish'),
    'token all': token(...TOKEN_SCOPES),
  };
};

const RIGHTS = {
  read: requireReader,
  own: requireOwnRuns,
  write: requireWriter,
  change: requireChanger,
  user: (caller: Caller) => requireUser(caller).id,
  admin: (caller: Caller) => requireAdmin(caller).id,
  operator: (caller: Caller) => requireOperator(caller) ?? 'yes',
  credential: (caller: Caller) => requireCredential(caller) ?? 'yes',
} as const;

const U = 'Unauthenticated';
const F = 'Forbidden';
/** Right by right, in the order of `RIGHTS`; with reading public, and what differs without. */
const TABLE: Record<
  string,
  { readonly open: readonly unknown[]; readonly closed?: Partial<Record<keyof typeof RIGHTS, unknown>> }
> = {
  anonymous: { open: [['service'], ['service'], U, U, U, U, U, U], closed: { read: U, own: U } },
  'API key': { open: [['service'], ['service'], 'service', ['service'], U, U, 'yes', 'yes'] },
  user: {
    open: [['user/u', 'service'], ['user/u'], 'user/u', ['user/u'], 'u', F, F, 'yes'],
    closed: { read: ['user/u'] },
  },
  admin: { open: [['user/u', 'service'], ['user/u'], 'user/u', ['user/u', 'service'], 'u', 'u', 'yes', 'yes'] },
  'token read': { open: [['user/u', 'service'], ['user/u'], F, F, U, U, U, 'yes'], closed: { read: ['user/u'] } },
  'token trigger': { open: [F, F, 'user/u', ['user/u'], U, U, U, 'yes'] },
  'token publish': { open: [F, F, F, F, U, U, U, 'yes'] },
  'token all': {
    open: [['user/u', 'service'], ['user/u'], 'user/u', ['user/u'], U, U, U, 'yes'],
    closed: { read: ['user/u'] },
  },
};

describe('rights', () => {
  for (const [name, { open, closed }] of Object.entries(TABLE)) {
    it(`${name}: each right is there, or FORBIDDEN, or another credential is needed`, () => {
      const rights = Object.keys(RIGHTS) as (keyof typeof RIGHTS)[];
      for (const publicRead of [true, false]) {
        const caller = callers(publicRead)[name] as Caller;
        const expected = Object.fromEntries(
          rights.map((right, index) => [
            right,
            publicRead || closed?.[right] === undefined ? open[index] : closed[right],
          ]),
        );
        expect({
          publicRead,
          ...Object.fromEntries(rights.map((right) => [right, outcome(() => RIGHTS[right](caller))])),
        }).toEqual({ publicRead, ...expected });
      }
    });
  }

  it('an actor is named by ids', () => {
    const all = callers(true);
    expect(Object.values(all).map(actorOf).slice(0, 5)).toEqual([
      'anonymous',
      'api-key',
      'user/u',
      'user/u',
      'token/t of user/u',
    ]);
  });
});

function outcome(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    return (error as Error).name;
  }
}
