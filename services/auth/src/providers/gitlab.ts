/** GitLab, the public one or one's own. */
import { ProviderUnavailable } from '../model/errors.ts';
import { oauthHostProvider } from './oauth-host.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider } from './port.ts';
import { fieldOf, getJson, textOf } from './provider-http.ts';
import type { HostSettings } from './settings.ts';

const GITLAB = 'https://gitlab.com';

export function gitlabProvider({
  baseUrl = GITLAB,
  apiUrl,
  clientId,
  clientSecret,
  organizations = [],
}: HostSettings): IdentityProvider {
  const api = apiUrl ?? `${baseUrl}/api/v4`;
  return oauthHostProvider({
    kind: 'gitlab',
    baseUrl,
    clientId,
    clientSecret,
    authorizePath: '/oauth/authorize',
    tokenPath: '/oauth/token',
    devicePath: '/oauth/authorize_device',
    scope: organizations.length === 0 ? 'read_user' : 'read_user openid',
    profile: async (accessToken) => ({
      ...(await profileAt(api, accessToken)),
      organizations: organizations.length === 0 ? [] : await groupsAt(baseUrl, accessToken, organizations),
    }),
  });
}

async function profileAt(api: string, accessToken: string): Promise<Omit<Profile, 'organizations'>> {
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

/** GitLab's own list of the groups that an account is a member of, by their full paths; `openid` is all it takes to read it. */
async function groupsAt(baseUrl: string, accessToken: string, wanted: readonly string[]): Promise<readonly string[]> {
  const { status, body } = await getJson(`${baseUrl}/oauth/userinfo`, accessToken);
  const groups = fieldOf(body, 'groups');
  if (status !== 200 || !Array.isArray(groups))
    throw new ProviderUnavailable(`${baseUrl}/oauth/userinfo answers ${status} without the groups of the account`);
  const member = new Set(groups.map((group) => String(group).toLowerCase()));
  return wanted.filter((name) => member.has(name));
}
