/** Runner tokens, and what a machine gets for one (P37), with a door that notes who is let in. */
import { ensureStreams, FLEET_BUCKET, type FleetEntry, newKeySeed, publicKeyOf, watchLeases } from '@penstock/bus';
import { callAuth, FLEET_PATHS, isRunnerToken, personalTokenHash, readFleetTicket } from '@penstock/identity';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FleetDoor } from '../src/flows/fleet.ts';
import { JWT_SECRET, makeWorld, type TestServer, type World } from './support.ts';

const MEBIBYTE = 1024 * 1024;
const HOUR_SECS = 3_600;

class Door implements FleetDoor {
  readonly inside = new Map<string, Awaited<ReturnType<FleetDoor['admitted']>>[number]>();
  isFull = false;
  onAdmit: () => Promise<void> = () => Promise.resolve();

  async admit(runner: Parameters<FleetDoor['admit']>[0], forMs: number): Promise<boolean> {
    await this.onAdmit();
    if (!this.isFull) this.inside.set(runner.id, { ...runner, leftMs: forMs });
    return !this.isFull;
  }

  shut(runners: readonly string[]): Promise<void> {
    for (const id of runners) this.inside.delete(id);
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

const create = (more: { labels?: string[]; expires?: string; untrusted?: boolean; name?: string } = {}) =>
  callAuth(world.bus, 'runner-tokens.create', { name: '', labels: [], untrusted: false, actor: 'user/boss', ...more });
const attach = (token: string, key: unknown = publicKey) =>
  server.post(FLEET_PATHS.attach, { public_key: key, name: 'box' }, { authorization: `Bearer ${token}` });

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
    let runner = '';
    door.onAdmit = async () => void written.push(await entryOf(runner));
    const first = await attach(token);
    runner = String(first.body['runner']);
    const { status, body } = await attach(token);
    expect(status).toBe(200);
    expect(body).toMatchObject({ runner, labels: ['gpu'], untrusted: false, expires_in: HOUR_SECS });
    expect(readFleetTicket(JWT_SECRET, String(body['ticket']), Date.now())).toBe(runner);
    expect(readFleetTicket(JWT_SECRET, String(body['ticket']), Date.now() + 2 * HOUR_SECS * 1_000)).toBeNull();
    expect(readFleetTicket(`${JWT_SECRET}.`, String(body['ticket']), Date.now())).toBeNull();
    expect(door.inside.get(runner)).toMatchObject({ publicKey, tokenId: id, name: 'box' });
    expect(written.at(-1)).toEqual({ labels: ['gpu'], untrusted: false });
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

  it('says so where there are as many runners as there may be', async () => {
    const { token } = await create();
    door.isFull = true;
    expect((await attach(token)).status).toBe(503);
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
