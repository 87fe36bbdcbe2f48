/** Who may make, see and delete the webhooks of which tenant; the ingest is asked for all of it. */
import type { BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, type World } from './harness.ts';

const CREATE =
  'mutation ($url: String, $events: [String!]) { createHook(url: $url, events: $events, repository: "git_host_a/a/b") { id secret } }';
const OTHERS: readonly (readonly [text: string, verb: string])[] = [
  ['{ hooks { id active failingSince lastError } }', 'hooks.list'],
  ['{ hookDeliveries(id: "a", limit: 1000) { id status responseStatus } }', 'hooks.deliveries'],
  ['mutation { deleteHook(id: "a") }', 'hooks.delete'],
  ['mutation { redeliverHook(id: "a") { id status } }', 'hooks.redeliver'],
];
const HOOK = {
  id: 'a',
  url: 'https://a.example/',
  events: ['run.started'],
  repository: null,
  createdAt: 'now',
  active: true,
};
const DELIVERY = { id: 'd', hook: 'a', status: 'WAITING', responseStatus: null };

const DEAD = {
  ...DELIVERY,
  status: 'DEAD',
  tenant: 'user/1',
  url: 'https://a.example/',
  event: 'run.started',
  runId: 'r',
  attempts: 3,
  createdAt: 'before',
  endedAt: 'then',
  error: 'it answered 500',
};

let world: World;
let ada: TestUser;
let answering: BusSubscription;
const asked: { readonly verb: string; readonly request: Record<string, unknown> }[] = [];
beforeAll(async () => {
  world = await makeWorld();
  ada = await world.auth.login('ada');
});
beforeEach(async () => {
  asked.length = 0;
  const answers = {
    'hooks.create': { ...HOOK, secret: 'whsec_x' },
    'hooks.list': { hooks: [HOOK] },
    'hooks.deliveries': { deliveries: [DELIVERY] },
    'hooks.delete': { deleted: true },
    'hooks.redeliver': DELIVERY,
    'hooks.dead': { deliveries: [DEAD] },
    'hooks.redrive': DELIVERY,
  };
  const handlers = Object.entries(answers).map(([verb, answer]) => [
    verb,
    (request: never): unknown => {
      asked.push({ verb, request });
      return answer;
    },
  ]);
  answering = answerCalls(
    world.bus,
    'webhook-ingest',
    Object.fromEntries(handlers) as Parameters<typeof answerCalls>[2],
  );
  await world.bus.flush();
});
afterEach(async () => {
  answering.stop();
  await world.reset();
});
afterAll(() => world.close());

describe('webhooks', () => {
  it('of a user are those of its tenant, those of the API key those of the service', async () => {
    const app = await world.gateway();
    for (const [token, tenant] of [
      [ada.token, 'user/ada'],
      [API_KEY, 'service'],
    ] as const) {
      const variables = { url: HOOK.url, events: ['run.started'] };
      const made = await graphql(app, CREATE, { token, variables });
      expect(made.data).toEqual({ createHook: { id: 'a', secret: 'whsec_x' } });
      expect(asked.at(-1)).toEqual({
        verb: 'hooks.create',
        request: { ...variables, tenant, repository: 'git_host_a/a/b' },
      });
      for (const [text, verb] of OTHERS) {
        expect((await graphql(app, text, { token })).errors).toEqual([]);
        expect(asked.at(-1)).toMatchObject({ verb, request: { tenant } });
      }
      expect(asked.find(({ verb }) => verb === 'hooks.deliveries')?.request['limit']).toBe(100);
    }
  });

  it('are for nobody who is not known, and for no personal token', async () => {
    const app = await world.gateway();
    const token = world.auth.personalToken('ada', 'read', 'trigger');
    for (const [text] of [[CREATE], ...OTHERS]) {
      const anonymous = await graphql(app, text, { token: null });
      expect(anonymous.errors.map(({ extensions }) => extensions['code'])).toEqual(['UNAUTHENTICATED']);
      const refused = await graphql(app, text, { token });
      expect(refused.errors.map(({ extensions }) => extensions['code'])).toEqual(['FORBIDDEN']);
    }
    expect(asked).toEqual([]);
  });
});

describe('dead letters', () => {
  const LIST = '{ adminDeadLetters { id tenant url event runId attempts createdAt endedAt error } }';
  const REDRIVE = 'mutation { adminRedrive(id: "d") }';

  it('are of all tenants, for who administers and nobody else', async () => {
    const app = await world.gateway({ mode: 'production' });
    const root = await world.auth.login('root', { isAdmin: true });
    const listed = await graphql(app, LIST, { token: root.token });
    expect(listed.data?.['adminDeadLetters']).toMatchObject([{ id: 'd', tenant: 'user/1', error: 'it answered 500' }]);
    expect((await graphql(app, REDRIVE, { token: root.token })).data).toEqual({ adminRedrive: true });
    expect(asked.at(-1)).toEqual({ verb: 'hooks.redrive', request: { id: 'd' } });
    asked.length = 0;
    for (const token of [ada.token, API_KEY, null])
      for (const text of [LIST, REDRIVE]) expect((await graphql(app, text, { token })).errors).toHaveLength(1);
    expect(asked).toEqual([]);
  });
});
