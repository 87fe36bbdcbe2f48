/**
 * Who decides at the gates of a load: people of the embedded provider, logged in before anything happens to the cluster. That provider
 * vouches for nobody, so their addresses are written where a provider's word would stand.
 */
import { authCollections } from '@penstock/auth';
import { openStore, storeAddressOf, type DocumentOf } from '@penstock/store';
import { deviceLogin } from '../../support/device-login.ts';
import type { Random } from '../../support/random.ts';
import type { Api } from '../api.ts';
import type { Approver } from './client.ts';

/** `storeUrl`: of the services' own store. */
export async function logInApprovers(api: Api, storeUrl: string, random: Random): Promise<Approver[]> {
  const spec = authCollections.find(({ name }) => name === 'users');
  if (spec === undefined) throw new Error('auth keeps no users');
  const store = await openStore(storeAddressOf(storeUrl), [spec]);
  try {
    const users = store.collection(spec);
    const approvers: Approver[] = [];
    for (const name of ['alice', 'bob']) {
      const login = `${name}-${random.int(2 ** 31)}`;
      const email = `${login}@example.com`;
      const { access_token: token, user } = await deviceLogin(api.url, login);
      const row = await users.get(user.id);
      const vouched = { ...row, email, emailVerified: true, updatedAt: Number(row?.['updatedAt']) + 1 };
      await users.replaceNewer([vouched as unknown as DocumentOf<typeof spec>]);
      approvers.push({ person: `user/${user.id}`, name: email, api: api.as(token) });
    }
    return approvers;
  } finally {
    await store.close();
  }
}
