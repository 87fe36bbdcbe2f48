/** GitLab, the public one or one's own. */
import { ProviderUnavailable } from '../model/errors.ts';
import { oauthHostProvider } from './oauth-host.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider } from './port.ts';
import { fieldOf, getJson, textOf } from './provider-http.ts';
import type { HostSettings } from './settings.ts';

const GITLAB = 'https://gitlab.com';

export function gitlabProvider({ baseUrl = GITLAB, apiUrl, clientId, clientSecret }: HostSettings): IdentityProvider {
  const api = apiUrl ?? `${baseUrl}/api/v4`;
  return oauthHostProvider({
    kind: 'gitlab',
    baseUrl,
    clientId,
    clientSecret,
    authorizePath: '/oauth/authorize',
    tokenPath: '/oauth/token',
    devicePath: '/oauth/authorize_device',
    scope: 'read_user',
    profile: (accessToken) => profileAt(api, accessToken),
  });
}

async function profileAt(api: string, accessToken: string): Promise<Profile> {
  const { status, body: user } = await getJson(`${api}/user`, accessToken);
  if (status !== 200) throw new ProviderUnavailable(`${api}/user answers ${status}`);
  const id = fieldOf(user, 'id');
  const email = textOf(user, 'email');
  return {
    subject: typeof id === 'number' || typeof id === 'string' ? String(id) : '',
    login: textOf(user, 'username'),
    name: textOf(user, 'name'),
    avatarUrl: textOf(user, 'avatar_url'),
    // An account is confirmed by a mail to its address.
    email,
    emailVerified: email !== '' && textOf(user, 'confirmed_at') !== '',
  };
}
