/** A database that does not answer, rather than refusing: hosts give up after ten seconds, and do not send again. */
import type { IngestCalls } from '@penstock/bus';
import { callService, answerCalls } from '@penstock/service';
import type { Collection, CollectionSpec, DocumentStore } from '@penstock/store';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ConnectionsRepository } from '../src/model/connections-repository.ts';
import { ingestKeys } from '../src/model/delivery.ts';
import { githubPush, githubSignature, makeRepository, pipelineText, type TestRepository } from './repository.ts';
import { JWT_SECRET, makeWorld, type World } from './world.ts';

const MINUTE_MS = 60_000;

let world: World;
let repository: TestRepository;
let [commit, bare] = ['', ''];

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  bare = repository.commit({ 'README.md': 'x' });
  commit = repository.commit({ '.pipeline.yaml': pipelineText('demo') });
  answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});

/** The world's, of which calls wait from `hang`, or from when this delivery's decision is in it, to `goOn`. */
function hangingStore(decided?: string): {
  readonly store: DocumentStore;
  hang(): void;
  goOn(): void;
} {
  let gate: PromiseWithResolvers<void> | undefined;
  const hang = (): void => void (gate ??= Promise.withResolvers());
  const waiting = <S extends CollectionSpec>(spec: S): Collection<S> =>
    new Proxy(world.store.collection(spec), {
      get: (collection, name: keyof Collection<S>) => {
        const method = collection[name].bind(collection) as (...given: unknown[]) => Promise<unknown>;
        return async (...given: unknown[]) => {
          await gate?.promise;
          const answer = await method(...given);
          const [document] = given as [{ readonly deliveryId?: unknown }];
          if (name === 'insert' && decided !== undefined && document.deliveryId === decided) hang();
          return answer;
        };
      },
    });
  const store: DocumentStore = {
    collection: waiting,
    ping: () => world.store.ping(),
    close: () => world.store.close(),
  };
  return { store, hang, goOn: () => (gate ??= Promise.withResolvers()).resolve() };
}

const connect = (userId: string, name: string): Promise<IngestCalls['connect']['answer']> =>
  callService(world.bus, 'webhook-ingest', 'connect', { userId, provider: 'git_host_a', repository: name });

const signed = (payload: unknown, secret: string, id: string): [string, Record<string, string>] => {
  const text = JSON.stringify(payload);
  const headers = { 'x-github-event': 'push', 'x-github-delivery': id };
  return [text, { ...headers, 'x-hub-signature-256': githubSignature(text, secret) }];
};

it('a push of a connected repository whose secret nobody knows is refused in time: 503, and it can be sent again', async () => {
  const { store, hang, goOn } = hangingStore();
  const ingest = await world.ingest({ store });
  const { secret } = await connect('u1', 'acme/unknown');
  const push = signed(githubPush({ url: repository.url, commit, repository: 'acme/unknown' }), secret, 'd1');
  hang();
  const refused = await ingest.send(...push);
  expect([refused.status, refused.body['error'], Number(refused.headers['retry-after']) > 0]).toEqual([
    503,
    'unavailable',
    true,
  ]);
  goOn();
  expect((await ingest.send(...push)).body).toMatchObject({ status: 'Success' });
}, 60_000);

it('CONNECTION-2: what the store has said of a repository holds for a quarter of an hour while it does not answer', async () => {
  const clock = { ms: 0 };
  const { store, hang } = hangingStore();
  const connections = new ConnectionsRepository(store, ingestKeys(JWT_SECRET).connections, () => clock.ms);
  const { secret } = await connections.connect('u2', 'git_host_a', 'acme/known', { now: 1, haveToBeProved: false });
  const known = async () => {
    const { secrets, mayBeOld } = await connections.secretsOf('git_host_a', 'acme/known');
    return { secrets: secrets.map((found) => found.secret), mayBeOld };
  };
  expect(await known()).toEqual({ secrets: [secret], mayBeOld: false });
  hang();
  clock.ms += 14 * MINUTE_MS;
  expect(await known()).toEqual({ secrets: [secret], mayBeOld: true });
  clock.ms += MINUTE_MS;
  expect(await known()).toEqual({ secrets: [], mayBeOld: true });
}, 60_000);

it('CONNECTION-3: so it does though others connect theirs and strangers ask for very many meanwhile, until it is told to be forgotten', async () => {
  const { store, hang } = hangingStore();
  const connections = new ConnectionsRepository(store, ingestKeys(JWT_SECRET).connections);
  const named = { provider: 'git_host_a', repository: 'acme/mine' } as const;
  const options = { now: 1, haveToBeProved: false };
  const { secret } = await connections.connect('u5', named.provider, named.repository, options);
  const secrets = async () =>
    (await connections.secretsOf(named.provider, 'Acme/Mine')).secrets.map((each) => each.secret);
  expect(await secrets()).toEqual([secret]);
  await connections.connect('u6', 'git_host_a', 'acme/else', options);
  hang();
  const strangers = Array.from({ length: 10_000 }, (_, number) =>
    connections.secretsOf('git_host_a', `acme/${number}`),
  );
  connections.forget({ ...named, repository: 'acme/else' });
  expect(await secrets()).toEqual([secret]);
  await Promise.all(strangers);
  connections.forget({ ...named, repository: 'ACME/mine' });
  expect(await secrets()).toEqual([]);
}, 60_000);

it('P24: an id that was answered while the schedule of a push was kept becomes a run, though the push has no pipeline', async () => {
  const { store, goOn } = hangingStore('d4');
  const ingest = await world.ingest({ store, waitSecs: 2 });
  const { secret } = await connect('u4', 'acme/bare');
  const push = githubPush({ url: repository.url, commit: bare, repository: 'acme/bare', ref: 'refs/heads/trunk' });
  const { body } = await ingest.send(...signed(push, secret, 'd4'));
  expect(body).toMatchObject({ status: 'Pending', run_id: expect.any(String) });
  goOn();
  await expect
    .poll(async () => (await world.reads.view(body.run_id ?? '', ['user/u4']))?.status, { timeout: 20_000 })
    .toBe('SKIPPED');
}, 60_000);
