import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newPersonalToken, sessionsSpec, suspendedUsersSpec } from '@penstock/identity';
import { openSqliteStore, type DocumentStore } from '@penstock/store';
import { storedSessions } from '../src/index.ts';
import { graphql, makeWorld, type World } from './harness.ts';

const MINUTE_MS = 60_000;

let world: World;
let folder: string;
let store: DocumentStore;
beforeAll(async () => {
  world = await makeWorld();
  folder = await mkdtemp(join(tmpdir(), 'penstock-sessions-'));
  store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [sessionsSpec, suspendedUsersSpec],
    synchronous: 'normal',
  });
});
afterAll(async () => {
  await store.close();
  await world.close();
  await rm(folder, { recursive: true });
});

it('cut off from the broker for good, a gateway looks into the store for each session, and does not guess', async () => {
  const sessions = store.collection(sessionsSpec);
  const [ada, bob, eve] = await Promise.all(['ada', 'bob', 'eve'].map((id) => world.auth.login(id)));
  for (const user of [ada, eve])
    await sessions.insert({
      id: user?.sessionId ?? '',
      userId: user?.id ?? '',
      kind: 'web',
      createdAt: 0,
      expiresAt: Date.now() + (user === eve ? -1 : MINUTE_MS),
    });
  const { bus } = world;
  // As after the 5 s: the watch has never been current here.
  const disconnected = once(bus.events, 'disconnected');
  await world.broker.kill();
  await disconnected;
  const app = await world.gateway({ isSessionActive: storedSessions(store) });
  expect((await graphql(app, '{ me { id } }', { token: ada?.token ?? '' })).data).toEqual({ me: { id: 'ada' } });
  for (const user of [bob, eve])
    expect((await graphql(app, '{ health }', { token: user?.token ?? '' })).errors[0]?.extensions['code']).toBe(
      'UNAUTHENTICATED',
    );
  expect((await graphql(app, '{ health }', { token: newPersonalToken() })).errors[0]?.extensions['code']).toBe(
    'UNAVAILABLE',
  );
  const suspended = store.collection(suspendedUsersSpec);
  const id = ada?.id ?? '';
  await suspended.insert({ id, login: 'ada', suspendedBy: 'user/root', suspendedAt: 1, deletedAt: 0, step: 0 });
  expect((await graphql(app, '{ health }', { token: ada?.token ?? '' })).errors[0]?.extensions['code']).toBe(
    'UNAUTHENTICATED',
  );
  await suspended.delete(id);
  expect((await graphql(app, '{ health }', { token: ada?.token ?? '' })).errors).toEqual([]);
  await sessions.delete(ada?.sessionId ?? '');
  expect((await graphql(app, '{ health }', { token: ada?.token ?? '' })).errors[0]?.extensions['code']).toBe(
    'UNAUTHENTICATED',
  );
  const back = once(bus.events, 'reconnected');
  await world.broker.restart();
  await back;
});
