/** What is deleted from a store whose answer to that was lost. */
import { randomBytes } from 'node:crypto';
import { openSqliteStore } from '@penstock/store';
import { forgetful } from '@penstock/store/testing/forgetful';
import { expect, it } from 'vitest';
import { runnerTokensSpec, stageSecretsSpec, stageSecretUsesSpec } from '../src/model/collections.ts';
import { MasterKeys } from '../src/model/master-keys.ts';
import { RunnerTokens } from '../src/model/runner-tokens.ts';
import { StageSecrets } from '../src/model/stage-secrets.ts';

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
