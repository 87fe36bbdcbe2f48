/** Tokens of runners over a store whose answer to a deletion was lost. */
import { type Collection, type DocumentStore, openSqliteStore } from '@penstock/store';
import { expect, it } from 'vitest';
import { runnerTokensSpec } from '../src/model/collections.ts';
import { RunnerTokens } from '../src/model/runner-tokens.ts';

it('is revoked where the store cannot say that it has deleted it: what hangs on it is cut off then', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [runnerTokensSpec] });
  const tokens = new RunnerTokens(forgetful(store), Date.now);
  const { id } = await tokens.create({ name: 'rack', labels: [], untrusted: false });
  await expect(tokens.revoke(id)).resolves.toBeUndefined();
  expect(await tokens.list()).toEqual([]);
  await expect(tokens.revoke(id)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await store.close();
});

/** As MongoDB's adapter where the first answer was lost: there was none any more (docs/adr/0008-mongodb.md). */
function forgetful(store: DocumentStore): DocumentStore {
  const collection: DocumentStore['collection'] = (spec) => {
    const real = store.collection(spec);
    const lost: Pick<Collection<typeof spec>, 'delete'> = {
      delete: async (id) => (await real.delete(id)) && real.delete(id),
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
