/** Outgoing webhooks over a store whose answer to a deletion was lost. */
import { randomBytes } from 'node:crypto';
import { hookDeliveriesSpec, hooksSpec, hookStatesSpec, openSqliteStore } from '@penstock/store';
import { forgetful } from '@penstock/store/testing/forgetful';
import { expect, it } from 'vitest';
import { HooksRepository } from '../src/hooks/hooks-repository.ts';

it('one is known as deleted where the store cannot say so: the audit log has it then', async () => {
  const store = await openSqliteStore({
    path: ':memory:',
    collections: [hooksSpec, hookStatesSpec, hookDeliveriesSpec],
  });
  const hooks = new HooksRepository(forgetful(store), { keys: [randomBytes(32)], mode: 'development' });
  const { id } = await hooks.create({ tenant: 't', url: 'https://hooks.example/x', events: ['run.completed'] }, 1);
  expect(await hooks.delete('t', id)).toBe(true);
  expect(await hooks.of('t')).toEqual([]);
  expect(await hooks.delete('t', id)).toBe(false);
  await store.close();
});
