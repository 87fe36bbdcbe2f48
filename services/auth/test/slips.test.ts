/** Slips, as runners present them: who gets which values, sealed to whom, and what anybody else gets. */
import { randomBytes } from 'node:crypto';
import {
  acquireLease,
  buckets,
  fleetRunnerId,
  signSlip,
  subjects,
  type CloneAnswer,
  type CloneRequest,
  type RunnerLease,
  type Slip,
  type SlipAnswer,
  type SlipContent,
} from '@penstock/bus';
import { cloneSecretsSpec, connectionIdOf } from '@penstock/store';
import { compactDecrypt, exportJWK, generateKeyPair } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { stageSecretsSpec } from '../src/model/collections.ts';
import { MasterKeys } from '../src/model/master-keys.ts';
import { chooseSecret } from '../src/model/secret-choice.ts';
import { StageSecrets, type KeptSecret } from '../src/model/stage-secrets.ts';
import { makeWorld, type World } from './support.ts';

const SLIP_KEY = randomBytes(32).toString('base64');
const MASTER_KEY = randomBytes(32).toString('base64');
const { publicKey, privateKey } = await generateKeyPair('ECDH-ES', { crv: 'X25519', extractable: true });
const SEAL_TO = (await exportJWK(publicKey)).x ?? '';

let world: World;
let secrets: StageSecrets;
let tenant: string;
let session: string;
let count = 0;
beforeAll(async () => {
  world = await makeWorld();
});
beforeEach(async () => {
  await world.server({ masterKeys: [MASTER_KEY], slipKey: SLIP_KEY });
  secrets = new StageSecrets(world.store, new MasterKeys([MASTER_KEY]), () => Date.now());
  tenant = `user/${(count += 1)}`;
  session = `s${count}`;
});
afterEach(() => world.reset());
afterAll(() => world.close());

const slipOf = (parts: Partial<Slip> = {}): Slip => ({
  run: 'run-1',
  stage: 'deploy',
  attempt: 1,
  runner: 'r1',
  session,
  tenant,
  pipeline: 'release',
  trusted: true,
  trigger: 'api',
  names: ['TOKEN'],
  until: Date.now() + 60_000,
  ...parts,
});

const present = (slip: string | Slip, runner = 'r1'): Promise<SlipAnswer> =>
  world.bus.request(
    subjects.slip(runner),
    { slip: typeof slip === 'string' ? slip : signSlip(SLIP_KEY, slip) },
    { timeoutMs: 20_000 },
  );

async function lease(parts: Partial<RunnerLease> = {}): Promise<void> {
  const value: RunnerLease = {
    runner: 'r1',
    session,
    labels: [],
    slots: 1,
    sealTo: SEAL_TO,
    attempts: [{ runId: 'run-1' as never, stage: 'deploy', attempt: 1, session, credit: 1 }],
    ...parts,
  };
  await acquireLease(world.bus, buckets.runners, `r1.${session}`, value, { ttlMs: 60_000 });
}

async function opened(answer: SlipAnswer): Promise<SlipContent> {
  if (answer.kind !== 'sealed') throw new Error(JSON.stringify(answer));
  const { plaintext } = await compactDecrypt(answer.sealed, privateKey);
  return JSON.parse(Buffer.from(plaintext).toString()) as SlipContent;
}

const text = (content: SlipContent, name: string): string =>
  Buffer.from(content.values[name] ?? '', 'base64').toString();

describe('a slip (P31)', () => {
  it('is answered with the values, sealed to the session whose lease lists the attempt', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    await secrets.set({ tenant, name: 'OTHER', value: 'not-named' });
    await lease();
    const answer = await present(slipOf());
    expect(JSON.stringify(answer)).not.toContain('canary');
    const content = await opened(answer);
    expect(content).toEqual({
      run: 'run-1',
      stage: 'deploy',
      attempt: 1,
      values: { TOKEN: expect.any(String) },
      withheld: [],
    });
    expect(text(content, 'TOKEN')).toBe('canary-4711');
    expect((await secrets.list({ tenant })).map(({ name, lastUsedAt }) => [name, lastUsedAt === null])).toEqual([
      ['OTHER', true],
      ['TOKEN', false],
    ]);
  });

  it('is read anew at each answer', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'first-value' });
    await lease();
    expect(text(await opened(await present(slipOf())), 'TOKEN')).toBe('first-value');
    await secrets.set({ tenant, name: 'TOKEN', value: 'second-value' });
    expect(text(await opened(await present(slipOf())), 'TOKEN')).toBe('second-value');
    await secrets.delete({ tenant }, 'TOKEN');
    expect((await opened(await present(slipOf()))).withheld).toEqual([
      { name: 'TOKEN', why: 'there is none for runs without a repository' },
    ]);
  });

  it('is not answered while no lease of its session lists its attempt', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    expect(await present(slipOf())).toEqual({ kind: 'unlisted' });
    await lease();
    for (const other of [{ attempt: 2 }, { stage: 'test' }, { run: 'run-2' }, { session: 'another' }])
      expect(await present(slipOf(other))).toEqual({ kind: 'unlisted' });
    expect((await present(slipOf())).kind).toBe('sealed');
  });

  it('is refused where it is forged, changed, of another runner, or has run out', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    await lease();
    const signed = signSlip(SLIP_KEY, slipOf());
    const [body = '', signature = ''] = signed.split('.');
    const changed = Buffer.from(JSON.stringify(slipOf({ tenant: 'user/other' }))).toString('base64url');
    for (const bad of [
      `${changed}.${signature}`,
      body,
      `${body}.`,
      '',
      'no slip at all',
      signSlip(randomBytes(32).toString('base64'), slipOf()),
    ])
      expect(await present(bad)).toEqual({ kind: 'refused', why: expect.stringContaining('not signed') });
    expect(await present(slipOf(), 'r2')).toEqual({ kind: 'refused', why: expect.stringContaining('another runner') });
    expect(await present(slipOf({ until: Date.now() - 1 }))).toEqual({
      kind: 'refused',
      why: expect.stringContaining('run out'),
    });
  });

  it('gives all or nothing, and an untrusted run nothing', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    await lease();
    const content = await opened(await present(slipOf({ names: ['TOKEN', 'MISSING'] })));
    expect(content).toMatchObject({ values: {}, withheld: [{ name: 'MISSING' }] });
    const untrusted = await opened(await present(slipOf({ trusted: false })));
    expect(untrusted).toMatchObject({
      values: {},
      withheld: [{ name: 'TOKEN', why: expect.stringContaining('trusted') }],
    });
    expect((await secrets.list({ tenant }))[0]?.lastUsedAt).toBeNull();
  });

  it('gives a stage 256 KiB at most', async () => {
    const names = ['A', 'B', 'C', 'D', 'E'];
    for (const name of names) await secrets.set({ tenant, name, value: 'x'.repeat(60_000) });
    await lease();
    expect((await opened(await present(slipOf({ names: names.slice(0, 4) })))).withheld).toEqual([]);
    expect((await opened(await present(slipOf({ names })))).withheld).toEqual([
      { name: 'E', why: expect.stringContaining('262144 bytes') },
    ]);
  });

  it('says where no key of the server opens a value any more', async () => {
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    const rows = world.store.collection(stageSecretsSpec);
    const row = await rows.get((await secrets.ofTenant(tenant))[0]?.id ?? '');
    if (row === null) throw new Error('there is no row');
    await rows.replaceNewer([{ ...row, sealed: 'no.jwe.at.all.', revision: row.revision + 1 }]);
    await lease();
    expect((await opened(await present(slipOf()))).withheld).toEqual([
      { name: 'TOKEN', why: expect.stringContaining('SERVICE_MASTER_KEY') },
    ]);
  });

  it('is refused by a server that has no key to read it by', async () => {
    await world.reset();
    await world.server({ masterKeys: [MASTER_KEY] });
    await lease();
    expect(await present(slipOf())).toEqual({ kind: 'refused', why: expect.stringContaining('SERVICE_SLIP_KEY') });
  });
});

describe('what a connected repository is read with (P31)', () => {
  const URL_OF_IT = 'https://github.com/acme/shop.git';
  const KEY = '-----BEGIN OPENSSH PRIVATE KEY-----\r\nbm90IG9uZQ==\r\n-----END OPENSSH PRIVATE KEY-----';
  const userId = (): string => tenant.slice('user/'.length);
  const ofCheckout = (parts: Partial<Slip> = {}): Slip =>
    slipOf({ names: [], provider: 'git_host_a', repository: 'acme/shop', cloneUrl: URL_OF_IT, ...parts });
  async function name(host = 'github.com', provider = 'git_host_a'): Promise<void> {
    const id = connectionIdOf(userId(), provider, 'acme/shop');
    const row = { id, name: 'CLONE', createdAt: 1, host, changedAt: Date.now(), step: 0 };
    await world.store.collection(cloneSecretsSpec).replaceNewer([row]);
  }
  const ask = async (parts: Partial<CloneRequest> = {}): Promise<CloneAnswer> =>
    await world.bus.request<CloneRequest, CloneAnswer>(
      subjects.cloneSecret,
      {
        ...{ userId: userId(), provider: 'git_host_a', repository: 'acme/shop', cloneUrl: URL_OF_IT, sealTo: SEAL_TO },
        ...parts,
      },
      { timeoutMs: 20_000 },
    );
  const given = async (answer: CloneAnswer): Promise<unknown> => {
    if (answer.kind !== 'sealed') throw new Error(JSON.stringify(answer));
    return JSON.parse(Buffer.from((await compactDecrypt(answer.sealed, privateKey)).plaintext).toString());
  };

  it('is the secret that its user has named, sealed to who reads it, and to no stage', async () => {
    await secrets.set({ tenant, name: 'CLONE', value: 'canary-4711\n' });
    await name();
    const clone = { name: 'CLONE', opens: { user: 'x-access-token', password: 'canary-4711' } };
    expect(await given(await ask())).toEqual(clone);
    await lease();
    for (const parts of [{}, { trusted: false }, { edited: true as const }]) {
      const answer = await present(ofCheckout(parts));
      expect(JSON.stringify(answer)).not.toContain('canary');
      expect(await opened(answer)).toEqual({ ...about(), values: {}, withheld: [], clone });
    }
    expect((await opened(await present(slipOf({ names: ['CLONE'] })))).clone).toBeUndefined();
    expect((await secrets.list({ tenant }))[0]?.lastUsedAt).not.toBeNull();
  });

  it('is none where none is named, also to a slip that nobody has signed; that one is given nothing else', async () => {
    const unsigned = signSlip(undefined, ofCheckout());
    expect([await present(unsigned), await present(ofCheckout()), await ask()]).toEqual(
      Array.from({ length: 3 }, () => ({ kind: 'none' })),
    );
    const fleet = fleetRunnerId('token', 'machine');
    const ofFleet = ofCheckout({ runner: fleet });
    expect(await present(signSlip(undefined, ofFleet), fleet)).toMatchObject({ kind: 'refused' });
    expect(await present(ofFleet, fleet)).toEqual({ kind: 'none' });
    await secrets.set({ tenant, name: 'CLONE', value: 'canary-4711' });
    await name();
    await lease();
    expect(await present(unsigned)).toEqual({ kind: 'refused', why: expect.stringContaining('not signed') });
    expect(await present(ofCheckout({ runner: 'r2' }))).toMatchObject({ kind: 'refused' });
    expect(await present(ofCheckout({ attempt: 2 }))).toEqual({ kind: 'unlisted' });
    for (const other of [{ tenant: 'user/other' }, { tenant: 'service' }, { provider: 'git_host_b' }])
      expect((await present(ofCheckout(other))).kind).not.toBe('refused');
    expect(await ask({ userId: 'other' })).toEqual({ kind: 'none' });
  });

  it('is shown by https and ssh alone, on their ports, where the connection was proved (CLONE-2)', async () => {
    await secrets.set({ tenant, name: 'CLONE', value: 'canary-4711' });
    await name();
    await lease();
    const refused = [
      'http://github.com',
      'http://github.com:443',
      'https://github.com:8443',
      'ssh://git@github.com:2222',
    ];
    for (const origin of refused) {
      const cloneUrl = `${origin}/acme/shop.git`;
      for (const answer of [await present(ofCheckout({ cloneUrl })), await ask({ cloneUrl })]) {
        expect(answer, origin).toEqual({ kind: 'refused', why: expect.stringContaining('by https or ssh') });
        expect(JSON.stringify(answer)).not.toContain('canary');
      }
    }
    for (const origin of [
      'https://github.com',
      'https://github.com:443',
      'ssh://git@github.com',
      'ssh://git@github.com:22',
    ])
      expect((await ask({ cloneUrl: `${origin}/acme/shop.git` })).kind, origin).toBe('sealed');
  });

  it('is for the host where the connection was proved, and for nobody but who looks for the proof before', async () => {
    await secrets.set({ tenant, name: 'CLONE', value: 'canary-4711' });
    await name();
    const elsewhere = 'https://gitlab.com/acme/shop.git';
    await lease();
    for (const answer of [await present(ofCheckout({ cloneUrl: elsewhere })), await ask({ cloneUrl: elsewhere })])
      expect(answer).toEqual({ kind: 'refused', why: expect.stringContaining('for github.com') });
    await name('');
    expect((await ask()).kind).toBe('sealed');
    expect((await present(ofCheckout())).kind).toBe('sealed');
    await world.reset();
    await world.server({ masterKeys: [MASTER_KEY], slipKey: SLIP_KEY, mode: 'production' });
    expect((await ask()).kind).toBe('sealed');
    expect(await present(ofCheckout())).toEqual({ kind: 'refused', why: expect.stringContaining('verifyRepository') });
  });

  it.each([
    ['a-token-of-b', 'git_host_b', { user: 'oauth2', password: 'a-token-of-b' }],
    ['robot:pass:word 1', 'git_host_a', { user: 'robot', password: 'pass:word 1' }],
    [KEY, 'git_host_a', { key: `${KEY.replaceAll('\r', '')}\n` }],
  ])('%j is, for %s, %j', async (value, provider, opens) => {
    await secrets.set({ tenant, name: 'CLONE', value });
    await name('', provider);
    expect(await given(await ask({ provider }))).toEqual({ name: 'CLONE', opens });
  });

  it.each(['user:abc', ':password', 'two\nlines', '-----BEGIN CERTIFICATE-----\nx'])(
    '%j opens nothing, and is not shown',
    async (value) => {
      await secrets.set({ tenant, name: 'CLONE', value });
      await name('');
      expect(await ask()).toEqual({
        kind: 'refused',
        why: 'the secret CLONE is neither a token, nor user:password with 4 characters or more, nor a private key',
      });
    },
  );

  it('is the narrower of two, none of a pipeline, and none that is bound to refs', async () => {
    await name('');
    const repository = 'git_host_a/Acme/Shop';
    await secrets.set({ tenant, name: 'CLONE', value: 'of-a-pipeline', pipeline: 'release' });
    expect(await ask()).toEqual({ kind: 'refused', why: expect.stringContaining('there is no secret CLONE') });
    await secrets.set({ tenant, name: 'CLONE', value: 'of-the-tenant' });
    await secrets.set({ tenant, name: 'CLONE', value: 'of-another', repository: 'git_host_a/acme/other' });
    expect(await given(await ask())).toMatchObject({ opens: { password: 'of-the-tenant' } });
    await secrets.set({ tenant, name: 'CLONE', value: 'of-the-repository', repository });
    expect(await given(await ask())).toMatchObject({ opens: { password: 'of-the-repository' } });
    await secrets.set({ tenant, name: 'CLONE', value: 'of-main', repository, refs: ['main'] });
    expect(await ask()).toEqual({ kind: 'refused', why: expect.stringContaining('set it without refs') });
  });

  const about = (): Pick<Slip, 'run' | 'stage' | 'attempt'> => ({ run: 'run-1', stage: 'deploy', attempt: 1 });
});

describe('of several secrets of a name', () => {
  const kept = (id: string, parts: Partial<KeptSecret> = {}): KeptSecret => ({
    id,
    name: 'TOKEN',
    repository: '',
    pipeline: '',
    refs: null,
    ...parts,
  });
  const all = [
    kept('all'),
    kept('pipeline', { pipeline: 'release' }),
    kept('repository', { repository: 'git_host_a/Acme/Shop' }),
    kept('both', { repository: 'git_host_a/acme/shop', pipeline: 'release' }),
    kept('elsewhere', { repository: 'git_host_b/acme/shop' }),
  ];
  const push = { trigger: 'push', provider: 'git_host_a', repository: 'acme/shop', ref: 'refs/heads/main' };
  const chosen = (slip: Partial<Slip>, among: readonly KeptSecret[] = all): string => {
    const choice = chooseSecret('TOKEN', slipOf({ tenant: 'user/1', ...slip }), among);
    return 'why' in choice ? choice.why : choice.secret.id;
  };

  it('the narrowest that is meant is taken', () => {
    expect(chosen(push)).toBe('both');
    expect(chosen({ ...push, pipeline: 'x' })).toBe('repository');
    expect(chosen({})).toBe('pipeline');
    expect(chosen({ pipeline: 'x' })).toBe('all');
    expect(chosen({ ...push, provider: 'git_host_b' })).toBe('elsewhere');
    expect(chosen({ pipeline: 'x' }, all.slice(1))).toMatch('there is none');
  });

  it('a run with another file than its repository’s gets none of the repository, and none of a ref (P30)', () => {
    const [first] = all;
    expect(chosen({ ...push, edited: true })).toMatch('another file');
    expect(chosen({ ...push, pipeline: 'x', edited: true })).toMatch('another file');
    expect(chosen({ pipeline: 'x', edited: true })).toBe('all');
    const ofRef = first === undefined ? [] : [{ ...first, repository: '', pipeline: '', refs: ['main'] }];
    expect(chosen({ ...push, edited: true }, ofRef)).toMatch('another file');
  });

  it('one of a pipeline of the service reaches no run of a repository: anybody could call a pipeline so', () => {
    const [, pipeline] = all;
    const among = pipeline === undefined ? [] : [pipeline];
    expect(chosen({ tenant: 'service' }, among)).toBe('pipeline');
    expect(chosen({ tenant: 'service', ...push }, among)).toMatch('there is none for git_host_a/acme/shop');
    expect(chosen({ tenant: 'user/1', ...push }, among)).toBe('pipeline');
  });

  it.each([
    [['main'], {}, true],
    [['main'], { ref: 'refs/heads/main2' }, false],
    [['release/*'], { ref: 'refs/heads/release/1' }, true],
    [['release/*'], { ref: 'refs/heads/release/1/x' }, false],
    [['v*'], { ref: 'refs/tags/v1' }, true],
    [['refs/heads/v*'], { ref: 'refs/tags/v1' }, false],
    [['refs/tags/v*', 'main'], { ref: 'refs/tags/v1' }, true],
    [['main'], { trigger: 'schedule' }, true],
    [['main'], { trigger: 'dispatch' }, true],
    [['**'], { trigger: 'api' }, false],
    [['**'], { trigger: 'pull_request' }, false],
    [['**'], { ref: undefined }, false],
  ])('refs %j are looked at for a run %j: it is given %s', (refs, slip, isGiven) => {
    const choice = chosen({ ...push, ...slip }, [kept('refs', { refs })]);
    expect(choice).toMatch(isGiven ? /^refs$/ : /^it is given at .* alone/);
  });

  it('the narrowest decides also where its refs do not match', () => {
    expect(chosen(push, [kept('all'), kept('narrow', { repository: 'git_host_a/acme/shop', refs: ['v*'] })])).toMatch(
      'given at v* alone, and not at refs/heads/main',
    );
  });

  it('a run that is not trusted gets none', () => {
    expect(chosen({ ...push, trusted: false })).toMatch('not trusted');
  });
});

describe('a runner of a fleet', () => {
  const runner = `fr_${'7'.repeat(32)}`;

  /** It is let in for the stages of one tenant, or everybody's, or not (null); and its lease lists the attempt. */
  async function leased(grant: { readonly tenant?: string } | null): Promise<void> {
    await world.reset();
    const inside = { id: runner, publicKey: 'k', tokenId: 't', name: '', ...grant, leftMs: 60_000 };
    const fleetDoor = {
      admit: () => Promise.resolve(true),
      shut: () => Promise.resolve(),
      admitted: () => Promise.resolve(grant === null ? [] : [inside]),
    };
    await world.server({ masterKeys: [MASTER_KEY], slipKey: SLIP_KEY, fleetDoor });
    const value: RunnerLease = {
      runner,
      session,
      labels: [],
      slots: 1,
      sealTo: SEAL_TO,
      attempts: [{ runId: 'run-1' as never, stage: 'deploy', attempt: 1, session, credit: 1 }],
    };
    await acquireLease(world.bus, buckets.runners, `${runner}.${session}`, value, { ttlMs: 60_000 });
  }

  it("that is a tenant's own gets nothing by a slip for another tenant's run, whatever it is signed by, and what is its own tenant's", async () => {
    await leased({ tenant });
    expect(await present(slipOf({ runner, tenant: 'user/other', names: [] }), runner)).toMatchObject({
      kind: 'refused',
      why: expect.stringContaining("another tenant's run"),
    });
    expect(await present(slipOf({ runner, names: [] }), runner)).toMatchObject({ kind: 'sealed' });
  });

  it('that is not let in gets nothing, whatever is signed and listed; one that is everybody’s gets what anybody’s stages name (SLIPS-5)', async () => {
    await leased(null);
    await secrets.set({ tenant, name: 'TOKEN', value: 'canary-4711' });
    expect(await present(slipOf({ runner }), runner)).toEqual({
      kind: 'refused',
      why: expect.stringContaining('let in by a runner token'),
    });
    session = `${session}-again`;
    await leased({});
    expect(text(await opened(await present(slipOf({ runner }), runner)), 'TOKEN')).toBe('canary-4711');
  });
});
