/** GitHub and servers that speak as it does. */
import { ProviderUnavailable } from '../model/errors.ts';
import { oauthHostProvider } from './oauth-host.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider } from './port.ts';
import { fieldOf, getJson, textOf } from './provider-http.ts';
import type { HostSettings } from './settings.ts';

const GITHUB = 'https://github.com';
const GITHUB_API = 'https://api.github.com';

export function githubProvider({ baseUrl = GITHUB, apiUrl, clientId, clientSecret }: HostSettings): IdentityProvider {
  // A server of one's own has its API under a path of the same host.
  const api = apiUrl ?? (baseUrl === GITHUB ? GITHUB_API : `${baseUrl}/api/v3`);
  return oauthHostProvider({
    kind: 'github',
    baseUrl,
    clientId,
    clientSecret,
    authorizePath: '/login/oauth/authorize',
    tokenPath: '/login/oauth/access_token',
    devicePath: '/login/device/code',
    scope: 'read:user user:email',
    profile: (accessToken) => profileAt(api, accessToken),
  });
}

async function profileAt(api: string, accessToken: string): Promise<Profile> {
  const { status, body: user } = await getJson(`${api}/user`, accessToken);
  if (status !== 200) throw new ProviderUnavailable(`${api}/user answers ${status}`);
  const id = fieldOf(user, 'id');
  // The address on the profile is one that GitHub has verified; where it is hidden the list is asked.
  const email = textOf(user, 'email') || (await primaryEmail(api, accessToken));
  return {
    subject: typeof id === 'number' || typeof id === 'string' ? String(id) : '',
    login: textOf(user, 'login'),
    name: textOf(user, 'name'),
    avatarUrl: textOf(user, 'avatar_url'),
    email,
    emailVerified: email !== '',
  };
}

/** '' where there is none that is verified, or it may not be read: a login does not fail for it. */
async function primaryEmail(api: string, accessToken: string): Promise<string> {
  const { status, body } = await getJson(`${api}/user/emails`, accessToken);
  if (status !== 200 || !Array.isArray(body)) return '';
  const primary = body.find((entry) => fieldOf(entry, 'primary') === true && fieldOf(entry, 'verified') === true);
  return textOf(primary, 'email');
}
