import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import { Callers, readFleetTicket, signAccessToken, signFleetTicket, type AccessClaims } from '../src/index.ts';
import { ACCESS_TOKEN } from '../src/auth-messages.ts';
import { callerOfUser } from '../src/callers.ts';
import { jwtAuthenticator } from '../src/jwt-authenticator.ts';

const SECRET = 'a secret of at least thirty-two bytes';
const NOW = 1_795_000_000_000;
const CLAIMS: AccessClaims = { sub: 'u1', sid: 's1', email: 'ada@example.com', tier: 'pro', admin: false, at: NOW };
const KEY = new TextEncoder().encode(SECRET);

interface Judged {
  readonly callers: Callers;
  readonly revoked: Set<string>;
  readonly asked: string[];
  certain: boolean;
  lives: boolean;
  now: number;
}

/** Callers who judge access tokens by what a test says of revocations. */
function judges(): Judged {
  const judged = {
    revoked: new Set<string>(),
    asked: [] as string[],
    certain: true,
    lives: true,
    now: NOW,
  } as unknown as { -readonly [K in keyof Judged]: Judged[K] };
  const authenticate = jwtAuthenticator({
    secret: SECRET,
    publicRead: true,
    revocations: {
      get certain() {
        return judged.certain;
      },
      isRevoked: ({ user }) => judged.revoked.has(user?.sessionId ?? ''),
    },
    isSessionActive: async (sessionId) => {
      judged.asked.push(sessionId);
      return judged.lives;
    },
    now: () => judged.now,
  });
  judged.callers = new Callers({ apiKey: 'the key', publicRead: true, authenticators: [authenticate] });
  return judged;
}

/** A token like ours but for what is changed. */
async function changed(
  change: {
    readonly header?: object;
    readonly payload?: object;
    readonly key?: Uint8Array;
    readonly without?: string;
  } = {},
): Promise<string> {
  const iat = NOW / 1000;
  const payload: Record<string, unknown> = {
    ...CLAIMS,
    iat,
    exp: iat + 900,
    iss: ACCESS_TOKEN.issuer,
    aud: ACCESS_TOKEN.audience,
    jti: randomUUID(),
    ...change.payload,
  };
  if (change.without !== undefined) delete payload[change.without];
  return await new SignJWT(payload)
    .setProtectedHeader({ alg: 'HS256', typ: ACCESS_TOKEN.type, ...change.header })
    .sign(change.key ?? KEY);
}

async function refusal(callers: Callers, token: string): Promise<unknown> {
  return await callers.resolve(`Bearer ${token}`).then(
    () => 'taken',
    (error: Error) => [error.name, error.message],
  );
}

describe('access tokens', () => {
  it('one that we signed is its user, for 15 minutes', async () => {
    const { callers } = judges();
    const caller = await callers.resolve(`Bearer ${await signAccessToken(SECRET, CLAIMS)}`);
    const user = { id: 'u1', email: 'ada@example.com', tier: 'pro', isAdmin: false, sessionId: 's1' };
    expect(caller).toEqual({ kind: 'user', ...callerOfUser(user, { publicRead: true }), issuedAt: NOW });
    expect(ACCESS_TOKEN.lifetimeSecs).toBe(900);
  });

  it('whatever is wrong with it, the answer is the same', async () => {
    const { callers } = judges();
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const emptyKey = (await changed()).split('.').slice(0, 2).join('.');
    const wrong: Record<string, string> = {
      'alg none': new UnsecuredJWT({ ...CLAIMS })
        .setIssuer(ACCESS_TOKEN.issuer)
        .setAudience(ACCESS_TOKEN.audience)
        .setExpirationTime('15m')
        .encode(),
      'an empty key': `${emptyKey}.${createHmac('sha256', '').update(emptyKey).digest('base64url')}`,
      'another key': await changed({ key: new TextEncoder().encode('another secret of thirty-two bytes!!') }),
      RS256: await new SignJWT({ ...CLAIMS })
        .setProtectedHeader({ alg: 'RS256', typ: ACCESS_TOKEN.type })
        .setIssuer(ACCESS_TOKEN.issuer)
        .setAudience(ACCESS_TOKEN.audience)
        .setExpirationTime('15m')
        .sign(rsa.privateKey),
      HS512: await changed({ header: { alg: 'HS512' }, key: new TextEncoder().encode(SECRET.repeat(3)) }),
      'no exp': await changed({ without: 'exp' }),
      'ended 61 s ago': await changed({ payload: { exp: NOW / 1000 - 61 } }),
      'ended 1 s ago': await changed({ payload: { exp: NOW / 1000 - 1 } }),
      'ends now': await changed({ payload: { exp: NOW / 1000 } }),
      'not yet': await changed({ payload: { nbf: NOW / 1000 + 61 } }),
      'issued in the future': await changed({ payload: { at: NOW + 61_000 } }),
      'another audience': await changed({ payload: { aud: 'penstock-stream' } }),
      'no audience': await changed({ without: 'aud' }),
      'another issuer': await changed({ payload: { iss: 'somebody' } }),
      'another type': await changed({ header: { typ: 'JWT' } }),
      "a stream ticket's type": await changed({ header: { typ: 'st+jwt' } }),
      'no session': await changed({ without: 'sid' }),
      'no user': await changed({ without: 'sub' }),
      'an empty user': await changed({ payload: { sub: '' } }),
      'no id': await changed({ without: 'jti' }),
      'admin as text': await changed({ payload: { admin: 'true' } }),
      'a key id': await changed({ header: { kid: '../../dev/null' } }),
      'an embedded key': await changed({ header: { jwk: { kty: 'oct', k: 'AAAA' } } }),
      'a refresh token': 'rt_0123456789abcdefghijklmnopqrstuvwxyz',
      'two parts': 'abc.def',
      nothing: '',
      'a long text': `${'x'.repeat(9_000)}.y.z`,
    };
    for (const [name, token] of Object.entries(wrong)) {
      expect([name, await refusal(callers, token)]).toEqual([
        name,
        ['Unauthenticated', 'A valid access token is required: send it as "Authorization: Bearer <token>".'],
      ]);
    }
    expect(await refusal(callers, await changed())).toBe('taken');
  });

  it('one that was taken is known again until it ends, and not after', async () => {
    const judged = judges();
    const token = await signAccessToken(SECRET, CLAIMS);
    const first = await judged.callers.resolve(`Bearer ${token}`);
    expect(await judged.callers.resolve(`Bearer ${token}`)).toBe(first);
    judged.now = NOW + 899_999;
    expect(await judged.callers.resolve(`Bearer ${token}`)).toBe(first);
    judged.now = NOW + 900_000;
    for (let again = 0; again < 2; again++) expect(await refusal(judged.callers, token)).not.toBe('taken');
  });

  it('one that was taken is refused once its session is revoked', async () => {
    const judged = judges();
    const token = await signAccessToken(SECRET, CLAIMS);
    expect(await refusal(judged.callers, token)).toBe('taken');
    judged.revoked.add('s1');
    expect(await refusal(judged.callers, token)).not.toBe('taken');
    expect(judged.asked).toEqual([]);
  });

  it('REVOCATION-2: without certainty about revocations each request asks whether the session lives', async () => {
    const judged = judges();
    const token = await signAccessToken(SECRET, CLAIMS);
    judged.certain = false;
    expect(await refusal(judged.callers, token)).toBe('taken');
    judged.lives = false;
    expect(await refusal(judged.callers, token)).not.toBe('taken');
    expect(judged.asked).toEqual(['s1', 's1']);
    judged.certain = true;
    expect(await refusal(judged.callers, token)).toBe('taken');
    expect(judged.asked).toHaveLength(2);
  });

  it('the API key and an access token are told apart, and a text that is neither is refused', async () => {
    const { callers } = judges();
    expect((await callers.resolve('Bearer the key')).kind).toBe('api-key');
    expect((await callers.resolve('bearer  the key')).kind).toBe('api-key');
    expect((await callers.resolve('Basic dGhlIGtleQ==')).kind).toBe('anonymous');
    expect((await callers.resolve(undefined, 'the key')).kind).toBe('api-key');
    expect(await refusal(callers, 'the keys')).not.toBe('taken');
  });
});

describe('several secrets', () => {
  const callersOf = (secret: string): Callers =>
    new Callers({
      publicRead: false,
      authenticators: [
        jwtAuthenticator({
          secret,
          publicRead: false,
          revocations: { certain: true, isRevoked: () => false },
          isSessionActive: () => Promise.resolve(true),
          now: () => NOW,
        }),
      ],
    });
  const OTHER = 'another secret of thirty-two bytes';

  it('all verify, and the first signs', async () => {
    const old = await signAccessToken(OTHER, CLAIMS);
    const rotated = await signAccessToken(`${SECRET}, ${OTHER}`, CLAIMS);
    expect((await callersOf(`${SECRET},${OTHER}`).resolve(`Bearer ${old}`)).user?.id).toBe('u1');
    expect((await callersOf(SECRET).resolve(`Bearer ${rotated}`)).user?.id).toBe('u1');
    await expect(callersOf(OTHER).resolve(`Bearer ${rotated}`)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    await expect(callersOf(SECRET).resolve(`Bearer ${old}`)).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('a ticket of a fleet is of any of them', () => {
    const runner = `fr_${'0'.repeat(32)}`;
    const ticket = signFleetTicket(OTHER, { runner }, NOW + 1);
    expect(readFleetTicket(`${SECRET},${OTHER}`, ticket, NOW)).toEqual({ runner });
    expect(readFleetTicket(SECRET, ticket, NOW)).toBeNull();
  });
});
