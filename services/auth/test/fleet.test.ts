/** Runner tokens, and what a machine gets for one (P37), with a door that notes who is let in. */
import {
  connectionOf,
  ensureStreams,
  FLEET_BUCKET,
  type FleetEntry,
  fleetRunnerId,
  newKeySeed,
  publicKeyOf,
  watchLeases,
} from '@penstock/bus';
import { callAuth, FLEET_PATHS, isRunnerToken, personalTokenHash, readFleetTicket } from '@penstock/identity';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FleetDoor } from '../src/flows/fleet.ts';
import { JWT_SECRET, loginByWeb, makeWorld, type TestServer, type World } from './support.ts';

const MEBIBYTE = 1024 * 1024;
const HOUR_SECS = 3_600;

class Door implements FleetDoor {
  readonly inside = new Map<string, Awaited<ReturnType<FleetDoor['admitted']>>[number]>();
  isFull = false;
  onShut: () => unknown = () => {};
  onAdmit: () => Promise<void> = () => Promise.resolve();

  async admit(runner: Parameters<FleetDoor['admit']>[0], forMs: number): Promise<boolean> {
    await this.onAdmit();
    if (!this.isFull) this.inside.set(runner.id, { ...runner, leftMs: forMs });
    return !this.isFull;
  }

  shut(runners: readonly string[]): Promise<void> {
    for (const id of runners) this.inside.delete(id);
    this.onShut();
    return Promise.resolve();
  }

  admitted(): ReturnType<FleetDoor['admitted']> {
    return Promise.resolve([...this.inside.values()]);
  }
}

let world: World;
let door: Door;
let server: TestServer;
const publicKey = publicKeyOf(newKeySeed());

beforeAll(async () => {
  world = await makeWorld();
  const limits = { journalBytesMax: 64 * MEBIBYTE, logsBytesMax: 64 * MEBIBYTE };
  await ensureStreams(world.bus, { partitions: 1, fleet: true, ...limits });
});
beforeEach(async () => {
  door = new Door();
  server = await world.server({ fleetDoor: door });
});
afterEach(() => world.reset());
afterAll(() => world.close());

const create = (
  more: { labels?: string[]; expires?: string; untrusted?: boolean; name?: string; tenant?: string } = {},
) =>
  callAuth(world.bus, 'runner-tokens.create', { name: '', labels: [], untrusted: false, actor: 'user/boss', ...more });
const attach = (token: string, key: unknown = publicKey) =>
  server.post(FLEET_PATHS.attach, { public_key: key, name: 'box' }, { authorization: `Bearer ${token}` });

async function tenantOf(login: string, id: number): Promise<string> {
  world.host.account = { id, login };
  const { access_token: token } = await loginByWeb(server);
  const { body } = await server.get('/auth/me', { authorization: `Bearer ${token}` });
  return `user/${String(body['id'])}`;
}

async function entryOf(runner: string): Promise<FleetEntry | undefined> {
  let entry: FleetEntry | undefined;
  const watch = watchLeases<FleetEntry>(world.bus, FLEET_BUCKET, (event) => {
    if (event.kind === 'put' && event.key === runner) entry = event.value;
  });
  await watch.ready;
  watch.stop();
  return entry;
}

describe('a runner token', { timeout: 60_000 }, () => {
  it('is shown once, and its hash alone is kept', async () => {
    const created = await create({ labels: ['gpu', 'arm', 'gpu'], expires: '90d', untrusted: true, name: ' rack 4 ' });
    expect(created).toMatchObject({ labels: ['arm', 'gpu'], untrusted: true, name: 'rack 4' });
    expect(isRunnerToken(created.token)).toBe(true);
    expect(Date.parse(created.expiresAt ?? '') - Date.parse(created.createdAt)).toBe(90 * 86_400_000);
    const { tokens } = await callAuth(world.bus, 'runner-tokens.list', {});
    const { token, ...shown } = created;
    expect(tokens.find(({ id }) => id === created.id)).toEqual({ ...shown, runners: [] });
    expect(JSON.stringify([tokens, world.audit])).not.toContain(token.slice(3, 12));
    expect(JSON.stringify(tokens)).not.toContain(personalTokenHash(token).slice(0, 12));
    expect(world.audit.at(-1)).toMatchObject({ action: 'runner_token.create', target: `runner-token/${created.id}` });
  });

  it.each([
    ['a label that is none', { labels: ['takes=untrusted'] }],
    ['an empty label', { labels: [''] }],
    ['too many labels', { labels: Array.from({ length: 51 }, (_, index) => `l${index}`) }],
    ['a time that is none', { expires: 'soon' }],
    ['a time that is over at once', { expires: '1s' }],
    ['a name without end', { name: 'x'.repeat(101) }],
  ])('is not made with %s', async (_, wish) => {
    await expect(create(wish)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('is not made by a server without a fleet', async () => {
    await world.reset();
    server = await world.server();
    await expect(create()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect((await attach('rt_x')).status).toBe(503);
  });
});

describe('attaching', { timeout: 60_000 }, () => {
  it('lets the key in for an hour, and writes what it may be granted first', async () => {
    const { token, id } = await create({ labels: ['gpu'] });
    const written: (FleetEntry | undefined)[] = [];
    const runner = fleetRunnerId(id, publicKey);
    door.onAdmit = async () => void written.push(await entryOf(runner));
    expect((await attach(token)).body['runner']).toBe(runner);
    const { status, body } = await attach(token);
    expect(status).toBe(200);
    expect(body).toMatchObject({ runner, labels: ['gpu'], untrusted: false, expires_in: HOUR_SECS });
    expect(readFleetTicket(JWT_SECRET, String(body['ticket']), Date.now())).toEqual({ runner });
    expect(readFleetTicket(JWT_SECRET, String(body['ticket']), Date.now() + 2 * HOUR_SECS * 1_000)).toBeNull();
    expect(readFleetTicket(`${JWT_SECRET}.`, String(body['ticket']), Date.now())).toBeNull();
    expect(door.inside.get(runner)).toMatchObject({ publicKey, tokenId: id, name: 'box' });
    const entry = { labels: ['gpu'], untrusted: false };
    expect(written).toEqual([entry, entry]);
    const { tokens } = await callAuth(world.bus, 'runner-tokens.list', {});
    expect(tokens.find((each) => each.id === id)?.runners).toMatchObject([{ id: runner, name: 'box' }]);
  });

  it('makes another runner of the same key by another token', async () => {
    const [one, two] = [await create(), await create()];
    expect((await attach(one.token)).body['runner']).not.toBe((await attach(two.token)).body['runner']);
  });

  it.each([
    ['no token', ''],
    ['a token of another kind', 'svc_0000000000000000000000000000000000000'],
    ['one that never was', 'rt_O5frGX7VH0MtIb0d5n0qNIcKqIKzzlo176p7l'],
  ])('is refused with %s', async (_, token) => {
    expect((await attach(token)).status).toBe(401);
    expect(door.inside.size).toBe(0);
    expect(world.audit.at(-1)).toMatchObject({ action: 'runner.attach', outcome: 'unauthenticated' });
  });

  it('is refused with what is no public key', async () => {
    const { token } = await create();
    const mistyped = `${publicKey.slice(0, 20)}${publicKey[20] === 'A' ? 'B' : 'A'}${publicKey.slice(21)}`;
    for (const key of [null, 7, 'U', mistyped, `S${publicKey.slice(1)}`, `${publicKey}"`, publicKey.toLowerCase()])
      expect((await attach(token, key)).status).toBe(400);
    expect(door.inside.size).toBe(0);
  });

  it('says so where there are as many runners as there may be, and leaves nothing behind for longer than a minute', async () => {
    const { token } = await create();
    const written = Promise.withResolvers<string>();
    const bucket = `$KV.${FLEET_BUCKET}.`;
    const watch = watchLeases<FleetEntry>(world.bus, FLEET_BUCKET, (event) => {
      if (event.kind === 'put' && event.value.labels.includes('refused')) written.resolve(event.key);
    });
    const refused = await create({ labels: ['refused'] });
    door.isFull = true;
    expect((await attach(refused.token)).status).toBe(503);
    const secondsOf = async (runner: string): Promise<number> => {
      const stored = await connectionOf(world.bus).request(`$JS.API.DIRECT.GET.KV_${FLEET_BUCKET}.${bucket}${runner}`);
      return Number.parseFloat(stored.headers?.get('Nats-TTL') ?? 'NaN') / 1_000;
    };
    expect(await secondsOf(await written.promise)).toBeLessThanOrEqual(60);
    watch.stop();
    door.isFull = false;
    expect(await secondsOf(String((await attach(token)).body['runner']))).toBe(HOUR_SECS);
  });

  it('ends with the token, and no later', async () => {
    const { token } = await create({ expires: '10m' });
    expect((await attach(token)).body['expires_in']).toBeLessThanOrEqual(600);
    world.aheadMs = 10 * 60_000;
    expect((await attach(token)).status).toBe(401);
  });

  it('asks no more of who has asked in vain too often', async () => {
    for (let tries = 0; tries < 30; tries += 1) expect((await attach('rt_x')).status).toBe(401);
    const refused = await attach('rt_x');
    expect(refused.status).toBe(429);
  });
});

describe('revoking', { timeout: 60_000 }, () => {
  it('cuts its runners off, grants them nothing more, and leaves others alone', async () => {
    const [gone, stays] = [await create(), await create()];
    const runner = String((await attach(gone.token)).body['runner']);
    const other = String((await attach(stays.token)).body['runner']);
    await callAuth(world.bus, 'runner-tokens.revoke', { id: gone.id, actor: 'user/boss' });
    expect([...door.inside.keys()]).toEqual([other]);
    expect(await entryOf(runner)).toMatchObject({ revoked: true });
    expect((await attach(gone.token)).status).toBe(401);
    await expect(
      callAuth(world.bus, 'runner-tokens.revoke', { id: gone.id, actor: 'user/boss' }),
    ).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(world.audit.map(({ action }) => action)).toContain('runner_token.revoke');
  });

  it('while a runner attaches lets it not in', async () => {
    const { id, token } = await create();
    door.onAdmit = async () => {
      await callAuth(world.bus, 'runner-tokens.revoke', { id, actor: 'user/boss' });
    };
    expect((await attach(token)).status).toBe(401);
    expect(door.inside.size).toBe(0);
  });
});

describe("a tenant's token", { timeout: 60_000 }, () => {
  let ada: string;
  let bob: string;

  beforeEach(async () => {
    ada = await tenantOf('fleet-ada', 901);
    bob = await tenantOf('fleet-bob', 902);
  });

  it('lets its runners in for that tenant alone, and says so to owners, to the door and in the ticket', async () => {
    const { token, tenant } = await create({ tenant: ada });
    expect(tenant).toBe(ada);
    const { body } = await attach(token);
    const runner = String(body['runner']);
    expect(body['tenant']).toBe(ada);
    expect(await entryOf(runner)).toEqual({ labels: [], untrusted: false, tenant: ada });
    expect(door.inside.get(runner)).toMatchObject({ tenant: ada });
    expect(readFleetTicket(JWT_SECRET, String(body['ticket']), Date.now())).toEqual({ runner, tenant: ada });
    const [ofRunner, until, whose, seal] = String(body['ticket']).split('.');
    const other = Buffer.from(bob).toString('base64url');
    for (const forged of [`${ofRunner}.${until}.${seal}`, `${ofRunner}.${until}.${other}.${seal}`])
      expect(readFleetTicket(JWT_SECRET, forged, Date.now())).toBeNull();
    expect(whose).not.toBe(other);
  });

  it('is listed for and revoked by that tenant, and does not exist for another', async () => {
    const [own, others, shared] = [await create({ tenant: ada }), await create({ tenant: bob }), await create()];
    const idsOf = async (tenant?: string): Promise<string[]> =>
      (await callAuth(world.bus, 'runner-tokens.list', { tenant })).tokens.map(({ id }) => id);
    expect(await idsOf(ada)).toContain(own.id);
    expect(await idsOf(ada)).not.toContain(others.id);
    expect(await idsOf(ada)).not.toContain(shared.id);
    expect(await idsOf()).toEqual(expect.arrayContaining([own.id, others.id, shared.id]));
    const revoke = (id: string, tenant?: string) =>
      callAuth(world.bus, 'runner-tokens.revoke', { id, tenant, actor: 'user/x' });
    const runner = String((await attach(others.token)).body['runner']);
    for (const id of [others.id, shared.id]) await expect(revoke(id, ada)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(door.inside.has(runner)).toBe(true);
    await revoke(own.id, ada);
    await revoke(others.id);
    expect(door.inside.has(runner)).toBe(false);
  });

  it('is one of so many, whoever makes them, and leaves others their own', async () => {
    const made: unknown[] = [];
    const eve = await tenantOf('fleet-eve', 903);
    for (let count = 0; count < 25; count += 1)
      await create({ tenant: eve }).then(
        (token) => made.push(token),
        (error: unknown) => expect(error).toMatchObject({ code: 'CONFLICT' }),
      );
    expect(made).toHaveLength(20);
    await create({ tenant: bob });
    await create();
  });

  it('is one of so many, too, where all are made at the same moment', async () => {
    const mallory = await tenantOf('fleet-mallory', 904);
    const answers = await Promise.allSettled(Array.from({ length: 60 }, () => create({ tenant: mallory })));
    const made = answers.filter(({ status }) => status === 'fulfilled');
    expect(made.length).toBeLessThanOrEqual(20);
    const { tokens } = await callAuth(world.bus, 'runner-tokens.list', { tenant: mallory });
    expect(tokens).toHaveLength(made.length);
  });

  it.each(['user/nobody', 'user/', 'ada', ''])('is not made for a tenant that there is not: %j', async (tenant) => {
    await expect(create({ tenant })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('brings so many new machines an hour, and those that it has go on', async () => {
    const { token } = await create({ tenant: bob });
    const [first, ...more] = Array.from({ length: 31 }, () => publicKeyOf(newKeySeed()));
    expect((await attach(token, first)).status).toBe(200);
    const answers: number[] = [];
    for (const key of more) answers.push((await attach(token, key)).status);
    expect(answers.filter((status) => status === 200)).toHaveLength(29);
    expect(answers.at(-1)).toBe(503);
    const refused = await attach(token, publicKeyOf(newKeySeed()));
    expect(refused.status).toBe(503);
    expect((await attach(token, first)).status).toBe(200);
    world.aheadMs = 61 * 60_000;
    expect((await attach(token, publicKeyOf(newKeySeed()))).status).toBe(200);
  });

  it('lets nobody in while its user is suspended, cuts off who is there, and lets them in again afterwards', async () => {
    const { token } = await create({ tenant: ada });
    const runner = String((await attach(token)).body['runner']);
    const { promise, resolve } = Promise.withResolvers<void>();
    door.onShut = () => door.inside.has(runner) || resolve();
    await callAuth(world.bus, 'user.suspend', { login: 'fleet-ada', actor: 'user/boss' });
    await promise;
    expect((await attach(token)).status).toBe(401);
    expect(await entryOf(runner)).toMatchObject({ revoked: true });
    await callAuth(world.bus, 'user.unsuspend', { login: 'fleet-ada', actor: 'user/boss' });
    expect((await attach(token)).status).toBe(200);
  });

  it('goes with all that a tenant has, and its runners with it', async () => {
    const [own, others] = [await create({ tenant: ada }), await create({ tenant: bob })];
    await attach(own.token);
    const stays = String((await attach(others.token)).body['runner']);
    const { runnerTokens } = await callAuth(world.bus, 'tenant.forget', { tenant: ada });
    expect(runnerTokens).toBeGreaterThan(0);
    expect([...door.inside.keys()]).toEqual([stays]);
    expect((await attach(own.token)).status).toBe(401);
  });
});
