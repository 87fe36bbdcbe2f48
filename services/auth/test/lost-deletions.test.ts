/** What is deleted from a store whose answer to that was lost. */
import { randomBytes } from 'node:crypto';
import { openSqliteStore } from '@penstock/store';
import { forgetful } from '@penstock/store/testing/forgetful';
import { expect, it } from 'vitest';
import { AccessGrants } from '../src/model/access-grants.ts';
import {
  accessGrantsSpec,
  runnerTokensSpec,
  stageSecretsSpec,
  stageSecretUsesSpec,
  suspendedUsersSpec,
} from '../src/model/collections.ts';
import { MasterKeys } from '../src/model/master-keys.ts';
import type { Revocations } from '../src/model/revocations.ts';
import { RunnerTokens } from '../src/model/runner-tokens.ts';
import { StageSecrets } from '../src/model/stage-secrets.ts';
import { Suspensions } from '../src/model/suspensions.ts';
import type { Users } from '../src/model/users.ts';

it('a runner token is revoked where the store cannot say that it has deleted it: what hangs on it is cut off then', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [runnerTokensSpec] });
  const tokens = new RunnerTokens(forgetful(store), Date.now);
  const { id } = await tokens.create({ name: 'rack', labels: [], untrusted: false });
  await expect(tokens.revoke(id)).resolves.toBeUndefined();
  expect(await tokens.list()).toEqual([]);
  await expect(tokens.revoke(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await store.close();
});

it('a secret is known as deleted where the store cannot say so: the audit log has it then', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [stageSecretsSpec, stageSecretUsesSpec] });
  const keys = new MasterKeys([randomBytes(32).toString('base64')]);
  const secrets = new StageSecrets(forgetful(store), keys, Date.now);
  await secrets.set({ tenant: 't', name: 'TOKEN', value: 'a value' });
  expect(await secrets.delete({ tenant: 't' }, 'TOKEN')).toBe(true);
  expect(await secrets.list({ tenant: 't' })).toEqual([]);
  expect(await secrets.delete({ tenant: 't' }, 'TOKEN')).toBe(false);
  await store.close();
});

it('access has ended where the store cannot say that it has deleted it: it is told, and in the audit log', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [accessGrantsSpec] });
  const nobody: Pick<Users, 'named'> = { named: () => Promise.resolve(null) };
  const toldTo: Pick<Revocations, 'revoke'> = { revoke: () => Promise.resolve() };
  const access = new AccessGrants(forgetful(store), {
    users: nobody as Users,
    revocations: toldTo as Revocations,
    now: Date.now,
  });
  const shop = { tenant: 'user/owner', provider: 'github', repository: 'acme/shop' } as const;
  await access.grant(shop, { login: 'bob', role: 'read', by: 'user/owner' });
  expect(await access.revoke(shop, 'bob')).toBe(true);
  expect(await access.revoke(shop, 'bob')).toBe(false);
  await access.grant(shop, { login: 'bob', role: 'read', by: 'user/owner' });
  expect(await access.forget('owner')).toEqual({ received: 0, given: 1 });
  await store.close();
});

it('a suspension is known as lifted where the store cannot say so: the audit log has it then', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [suspendedUsersSpec] });
  const users = { get: () => Promise.resolve({ id: 'u1', login: 'ada' }) } as unknown as Users;
  const revocations = { revoke: () => Promise.resolve() } as unknown as Revocations;
  const suspensions = new Suspensions(forgetful(store), { users, revocations, now: Date.now });
  await suspensions.suspend('ada', 'user/admin');
  expect(await suspensions.lift('ada')).toEqual({ id: 'u1', lifted: true });
  expect(await suspensions.lift('ada')).toEqual({ id: 'u1', lifted: false });
  await store.close();
});
