/** What is taken back over a store whose answer to the deletion was lost. */
import { type Collection, type DocumentStore, openSqliteStore } from '@penstock/store';
import { expect, it } from 'vitest';
import { AccessGrants } from '../src/model/access-grants.ts';
import { accessGrantsSpec, runnerTokensSpec } from '../src/model/collections.ts';
import type { Revocations } from '../src/model/revocations.ts';
import { RunnerTokens } from '../src/model/runner-tokens.ts';
import type { Users } from '../src/model/users.ts';

it('a token of a runner is revoked where the store cannot say that it has deleted it: what hangs on it is cut off then', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [runnerTokensSpec] });
  const tokens = new RunnerTokens(forgetful(store), Date.now);
  const { id } = await tokens.create({ name: 'rack', labels: [], untrusted: false });
  await expect(tokens.revoke(id)).resolves.toBeUndefined();
  expect(await tokens.list()).toEqual([]);
  await expect(tokens.revoke(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
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

/** As MongoDB's adapter where the first answer was lost: there was none any more (docs/adr/0008-mongodb.md). */
function forgetful(store: DocumentStore): DocumentStore {
  const collection: DocumentStore['collection'] = (spec) => {
    const real = store.collection(spec);
    const lost: Pick<Collection<typeof spec>, 'delete'> = {
      delete: async (id, only) => (await real.delete(id, only)) && real.delete(id, only),
    };
    return new Proxy(real, {
      get: (of, name) => {
        const value: unknown = name === 'delete' ? lost.delete : Reflect.get(of, name);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
  };
  return { collection, ping: () => store.ping(), close: () => store.close() };
}
