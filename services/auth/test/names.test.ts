/** Names that people and machines give: they stand in lists, logs and terminals of others. */
import { ensureStreams, newKeySeed, publicKeyOf } from '@penstock/bus';
import { callAuth, FLEET_PATHS } from '@penstock/identity';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loginByWeb, makeWorld, type TestServer, type World } from './support.ts';

let world: World;
let server: TestServer;
let userId: string;
const admitted: string[] = [];

beforeAll(async () => {
  world = await makeWorld();
  await ensureStreams(world.bus, { partitions: 1, fleet: true, journalBytesMax: 2 ** 26, logsBytesMax: 2 ** 26 });
  const fleetDoor = {
    admit: async ({ name }: { readonly name: string }) => {
      admitted.push(name);
      return true;
    },
    shut: async () => {},
    admitted: async () => [],
  };
  server = await world.server({ fleetDoor });
  world.host.account = { id: 7, login: 'alice' };
  const { access_token: token } = await loginByWeb(server);
  userId = String((await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['id']);
});
afterAll(() => world.close());

const NOBODY_CAN_SEE: readonly (readonly [what: string, name: string])[] = [
  ['a NUL', 'a\0b'],
  ['a line break', 'a\nb'],
  ['a tab', 'a\tb'],
  ['what a terminal acts upon', 'a\x1B[2Jb'],
  ['a control character of the second kind', 'a\x9Bb'],
  ['text that runs the other way', 'a\u202Eb'],
  ['an isolate', 'a\u2066b'],
  ['a blank of no width', 'a\u200Bb'],
  ['a line separator', 'a\u2028b'],
  ['half a character', 'a\uD83Db'],
];
const EMOJI = '\u{1F680}';

const runnerToken = (more: { readonly name?: string; readonly labels?: readonly string[] }) =>
  callAuth(world.bus, 'runner-tokens.create', { name: '', labels: [], untrusted: false, actor: 'user/boss', ...more });
const GIVEN: readonly (readonly [what: string, give: (name: string) => Promise<unknown>])[] = [
  ['a personal token', (name) => callAuth(world.bus, 'tokens.create', { userId, name, scopes: ['read'] })],
  ['a runner token', (name) => runnerToken({ name })],
  ['a label of a runner token', (name) => runnerToken({ labels: [name] })],
  ['a secret', (name) => setSecret({ name })],
  ['the pipeline of a secret', (pipeline) => setSecret({ pipeline })],
];

async function setSecret(more: { readonly name?: string; readonly pipeline?: string }): Promise<unknown> {
  const whose = { tenant: `user/${userId}`, actor: `user/${userId}` };
  return await callAuth(world.bus, 'secrets.set', { ...whose, name: 'KEY', value: 'long enough to be one', ...more });
}

describe.each(GIVEN)('the name of %s', (_, give) => {
  it.each(NOBODY_CAN_SEE)('has not %s', async (_what, name) => {
    await expect(give(name)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });
});

describe.each(GIVEN.slice(0, 2))('the length of the name of %s', (_, give) => {
  it('is that of its characters', async () => {
    await expect(give(EMOJI.repeat(100))).resolves.toMatchObject({ name: EMOJI.repeat(100) });
    await expect(give(EMOJI.repeat(101))).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    await expect(give('ünï cödé')).resolves.toMatchObject({ name: 'ünï cödé' });
  });
});

it('what a machine calls itself is cut at a character, and shows what nobody could see', async () => {
  const { token } = await runnerToken({});
  const attach = async (name: string): Promise<string | undefined> => {
    const body = { public_key: publicKeyOf(newKeySeed()), name };
    await server.post(FLEET_PATHS.attach, body, { authorization: `Bearer ${token}` });
    return admitted.at(-1);
  };
  expect(await attach(`a${EMOJI.repeat(200)}`)).toBe(`a${EMOJI.repeat(99)}`);
  for (const [, name] of NOBODY_CAN_SEE) expect(await attach(name)).toMatch(/^a\\[ntu]?.*b$/u);
});
