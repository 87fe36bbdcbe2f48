import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buckets, connectBus, ensureStreams, putExpiring, type Bus } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import {
  newPersonalToken,
  openIdentity,
  REVOCATION_TTL_MS,
  Revocations,
  signAccessToken,
  type Identity,
} from '../src/index.ts';

const MIB = 1024 * 1024;
const SECRET = 'a secret of at least thirty-two bytes';

let broker: TestBroker;
let auth: Bus;
let bus: Bus;
const opened: { close(): void | Promise<void> }[] = [];

beforeAll(async () => {
  broker = await startTestBroker();
  auth = await connectBus({ servers: broker.url, name: 'auth' });
  bus = await connectBus({ servers: broker.url, name: 'gateway' });
  await ensureStreams(auth, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
});
afterAll(async () => {
  await Promise.all([bus.close(), auth.close()]);
  await broker.stop();
});

async function revoke(key: string, before = Date.now()): Promise<void> {
  await putExpiring(auth, buckets.revocations, key, { before }, REVOCATION_TTL_MS);
}

/** Kills the broker; resolves when everybody has noticed, with how to bring it back. */
async function cutOff(): Promise<() => Promise<void>> {
  const all = (event: 'disconnected' | 'reconnected'): Promise<unknown> =>
    Promise.all([bus, auth].map(({ events }) => once(events, event)));
  const disconnected = all('disconnected');
  await broker.kill();
  await disconnected;
  return async () => {
    const reconnected = all('reconnected');
    await broker.restart();
    await reconnected;
  };
}

async function revocations(now?: () => number): Promise<Revocations> {
  const made = new Revocations({ bus, now });
  opened.push(made);
  await made.ready;
  return made;
}

const session = (sessionId: string, issuedAt = 1) => ({ user: { id: `user-of-${sessionId}`, sessionId }, issuedAt });

/** Resolves when the credential is revoked here. */
function revoked(known: Revocations, credential: Parameters<Revocations['onRevoked']>[0]): Promise<void> {
  return new Promise((resolve) => known.onRevoked(credential, resolve));
}

describe('revocations', () => {
  it('REVOCATION-1: what was revoked before it began is known when it is ready', async () => {
    await revoke('session.before');
    const known = await revocations();
    expect(known.certain).toBe(true);
    expect(known.isRevoked(session('before'))).toBe(true);
    expect(known.isRevoked(session('another'))).toBe(false);
  });

  it("a session's and a token's revocation end them whatever the time, a user's what was issued until then", async () => {
    const known = await revocations();
    const credential = { user: { id: 'ada', sessionId: 'new' }, issuedAt: 2_000 };
    const heard = revoked(known, { ...credential, issuedAt: 1_000 });
    await revoke('user.ada', 1_000);
    await heard;
    expect([999, 1_000, 1_001].map((issuedAt) => known.isRevoked({ ...credential, issuedAt }))).toEqual([
      true,
      true,
      false,
    ]);
    // A personal token is none of its user's sessions.
    expect(known.isRevoked({ user: { id: 'ada' }, tokenId: 'personal' })).toBe(false);
    const tokenHeard = revoked(known, { tokenId: 'personal' });
    await revoke('token.personal');
    await tokenHeard;
    expect(known.isRevoked({ user: { id: 'ada' }, tokenId: 'personal' })).toBe(true);
    expect(known.isRevoked({})).toBe(false);
  });

  it('REVOCATION-3: who waits for the end of a credential is told once, and not of others', async () => {
    const known = await revocations();
    const told: string[] = [];
    known.onRevoked(session('one'), () => told.push('one'));
    known.onRevoked(session('two'), () => told.push('two'));
    known.onRevoked(session('three'), () => told.push('three'))();
    known.onRevoked({ user: { id: 'user-of-one', sessionId: 'later' }, issuedAt: 9_000 }, () => told.push('later'));
    const heard = revoked(known, session('three'));
    await revoke('session.one');
    await revoke('user.user-of-one', 5_000);
    await revoke('session.three');
    await heard;
    expect(told).toEqual(['one']);
  });

  it('a suspended user is dead whole, tokens that are newer too, until that is lifted', async () => {
    const known = await revocations();
    const ofUser = { user: { id: 'eve', sessionId: 'new' }, issuedAt: Date.now() + 60_000 };
    const personal = { user: { id: 'eve' }, tokenId: 'of-eve' };
    const heard = [revoked(known, ofUser), revoked(known, personal)];
    await revoke('suspended.eve');
    await Promise.all(heard);
    const states = (): boolean[] => [ofUser, personal, { tokenId: 'of-eve' }].map((one) => known.isRevoked(one));
    expect(states()).toEqual([true, true, false]);
    await revoke('suspended.eve', 0);
    await expect.poll(states).toEqual([false, false, false]);
  });

  it('what this process had revoked itself counts at once', async () => {
    const known = await revocations();
    known.note('token.mine');
    expect(known.isRevoked({ tokenId: 'mine' })).toBe(true);
  });

  it('REVOCATION-2: a broken watch is certain for 5 s and no longer, and catches up when the broker is back', async () => {
    let now = 0;
    const known = await revocations(() => now);
    expect(known.certain).toBe(true);
    const back = await cutOff();
    now = 4_999;
    expect(known.certain).toBe(true);
    now = 5_001;
    expect(known.certain).toBe(false);
    await back();
    const heard = revoked(known, session('meanwhile'));
    await revoke('session.meanwhile');
    await heard;
    await expect.poll(() => known.certain).toBe(true);
  });

  it('REVOCATION-3: a break that may have outlasted a revocation ends whatever waits, once the watch is current again', async () => {
    let now = 0;
    const known = await revocations(() => now);
    const ended = revoked(known, session('nobody-revoked-this'));
    expect(known.certain).toBe(true);
    const back = await cutOff();
    now = REVOCATION_TTL_MS;
    await back();
    await ended;
    expect(known.isRevoked(session('nobody-revoked-this'))).toBe(false);
  });
});

describe('everything together', () => {
  function identity(): Identity {
    const made = openIdentity({ bus, apiKey: 'the key', jwtSecret: SECRET, publicRead: false });
    opened.push(made);
    return made;
  }

  it('a logout is known to every process that watches, also to one that starts later', async () => {
    const processes = [identity(), identity()];
    await Promise.all(processes.map(({ revocations: known }) => known.ready));
    const token = await signAccessToken(SECRET, {
      sub: 'grace',
      sid: 'logout',
      email: 'g@x',
      tier: 'free',
      admin: false,
      at: Date.now(),
    });
    for (const { callers } of processes) expect((await callers.resolve(`Bearer ${token}`)).kind).toBe('user');
    const heard = processes.map(({ revocations: known }) =>
      revoked(known, { user: { id: 'grace', sessionId: 'logout' } }),
    );
    await revoke('session.logout');
    await Promise.all(heard);
    const late = identity();
    await late.revocations.ready;
    for (const { callers } of [...processes, late])
      await expect(callers.resolve(`Bearer ${token}`)).rejects.toThrow('valid access token');
  });

  it('personal tokens are asked of auth, and their uses told to it in batches', async () => {
    const used: { tokenId: string; at: number }[][] = [];
    const told = Promise.withResolvers<void>();
    const answering = answerCalls(auth, 'auth', {
      token: () => ({ user: { id: 'u', email: 'u@x', tier: 'free', isAdmin: false }, scopes: ['read'], tokenId: 't' }),
      'token.used': (request: { used: { tokenId: string; at: number }[] }) => {
        used.push(request.used);
        told.resolve();
        return null;
      },
    });
    await auth.flush();
    const known = openIdentity({ bus, jwtSecret: SECRET, publicRead: false });
    await known.revocations.ready;
    const token = newPersonalToken();
    expect(await known.callers.resolve(`Bearer ${token}`)).toMatchObject({
      kind: 'token',
      tokenId: 't',
      scopes: ['read'],
    });
    await told.promise;
    for (let use = 0; use < 10; use++) await known.callers.resolve(`Bearer ${token}`);
    await known.close();
    expect(used.map((batch) => batch.map(({ tokenId }) => tokenId))).toEqual([['t'], ['t']]);
    answering.stop();
  });
});
