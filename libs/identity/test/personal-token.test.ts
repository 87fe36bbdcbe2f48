import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Unauthenticated, Unavailable } from '@penstock/errors';
import { Callers, isPersonalToken, newPersonalToken, personalTokenHash } from '../src/index.ts';
import { type TokenIdentity } from '../src/auth-messages.ts';
import { personalTokenAuthenticator } from '../src/personal-token-authenticator.ts';

const IDENTITY: TokenIdentity = {
  user: { id: 'u1', email: 'ada@example.com', tier: 'free', isAdmin: false },
  scopes: ['read'],
  tokenId: 't1',
};

function judges(answer: () => Promise<TokenIdentity> = async () => IDENTITY) {
  const state = {
    asked: [] as string[],
    used: [] as string[],
    revoked: false,
    certain: true,
    now: 1_795_000_000_000,
    answer,
  };
  const authenticate = personalTokenAuthenticator({
    publicRead: false,
    revocations: {
      get certain() {
        return state.certain;
      },
      isRevoked: () => state.revoked,
    },
    identityOf: (hash) => {
      state.asked.push(hash);
      return state.answer();
    },
    used: (tokenId) => state.used.push(tokenId),
    now: () => state.now,
  });
  return { state, callers: new Callers({ publicRead: false, authenticators: [authenticate] }) };
}

describe('the text of a personal token', () => {
  it('svc_, 31 random base62 digits and a checksum', () => {
    const tokens = Array.from({ length: 200 }, newPersonalToken);
    for (const token of tokens) {
      expect(token).toMatch(/^svc_[0-9A-Za-z]{37}$/u);
      expect(isPersonalToken(token)).toBe(true);
    }
    expect(new Set(tokens).size).toBe(200);
  });

  it('one digit changed, missing or added is no token', () => {
    const token = newPersonalToken();
    for (let at = 4; at < token.length; at++) {
      const other = token[at] === 'x' ? 'y' : 'x';
      expect(isPersonalToken(token.slice(0, at) + other + token.slice(at + 1))).toBe(false);
    }
    for (const text of [
      '',
      'svc_',
      token.slice(0, -1),
      `${token}0`,
      ` ${token}`,
      `${token}\n`,
      token.toUpperCase(),
      `svc_${'é'.repeat(37)}`,
    ])
      expect(isPersonalToken(text)).toBe(false);
  });

  it('is asked for by its SHA-256 in hex', () => {
    const token = newPersonalToken();
    expect(personalTokenHash(token)).toBe(createHash('sha256').update(token).digest('hex'));
  });
});

describe('personal tokens', () => {
  it('one is its user with its scopes, and each use of it is told', async () => {
    const { state, callers } = judges();
    const token = newPersonalToken();
    expect(await callers.resolve(`Bearer ${token}`)).toMatchObject({
      kind: 'token',
      readTenants: ['user/u1'],
      writeTenant: 'user/u1',
      scopes: ['read'],
      tokenId: 't1',
      user: IDENTITY.user,
    });
    await callers.resolve(`Bearer ${token}`);
    expect(state).toMatchObject({ asked: [personalTokenHash(token)], used: ['t1', 't1'] });
  });

  it('a wrong checksum is refused without asking anybody', async () => {
    const { state, callers } = judges();
    const token = newPersonalToken();
    await expect(callers.resolve(`Bearer ${token.slice(0, -1)}${token.endsWith('x') ? 'y' : 'x'}`)).rejects.toThrow(
      Unauthenticated,
    );
    expect(state.asked).toEqual([]);
  });

  it('of many requests at once with a token not known yet, one asks', async () => {
    const answer = Promise.withResolvers<TokenIdentity>();
    const { state, callers } = judges(() => answer.promise);
    const token = newPersonalToken();
    const all = Array.from({ length: 20 }, () => callers.resolve(`Bearer ${token}`));
    answer.resolve(IDENTITY);
    expect(new Set((await Promise.all(all)).map(({ tokenId }) => tokenId))).toEqual(new Set(['t1']));
    expect(state.asked).toHaveLength(1);
  });

  it('auth is asked again after a minute, and while revocations are not certain', async () => {
    const { state, callers } = judges();
    const token = newPersonalToken();
    await callers.resolve(`Bearer ${token}`);
    state.now += 60_001;
    await callers.resolve(`Bearer ${token}`);
    expect(state.asked).toHaveLength(2);
    state.certain = false;
    await callers.resolve(`Bearer ${token}`);
    expect(state.asked).toHaveLength(3);
  });

  it('one that auth does not know, or that is revoked, is refused; one that nobody can judge is UNAVAILABLE', async () => {
    const { state, callers } = judges();
    const token = newPersonalToken();
    await callers.resolve(`Bearer ${token}`);
    state.revoked = true;
    await expect(callers.resolve(`Bearer ${token}`)).rejects.toThrow(Unauthenticated);
    state.revoked = false;
    state.now += 60_001;
    state.answer = () => Promise.reject(new Unavailable('away'));
    await expect(callers.resolve(`Bearer ${token}`)).rejects.toThrow(Unavailable);
    state.answer = () => Promise.reject(new Unauthenticated());
    await expect(callers.resolve(`Bearer ${token}`)).rejects.toThrow(Unauthenticated);
    expect(state.used).toEqual(['t1']);
  });
});
