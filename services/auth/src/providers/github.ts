/** GitHub and servers that speak as it does. */
import { ProviderUnavailable } from '../model/errors.ts';
import { oauthHostProvider } from './oauth-host.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider } from './port.ts';
import { fieldOf, getJson, textOf } from './provider-http.ts';
import type { HostSettings } from './settings.ts';

const GITHUB = 'https://github.com';
const GITHUB_API = 'https://api.github.com';

export function githubProvider({
  baseUrl = GITHUB,
  apiUrl,
  clientId,
  clientSecret,
  organizations = [],
}: HostSettings): IdentityProvider {
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
    scope: organizations.length === 0 ? 'read:user user:email' : 'read:user user:email read:org',
    profile: (accessToken) => profileAt(api, accessToken, organizations),
  });
}

async function profileAt(api: string, accessToken: string, organizations: readonly string[]): Promise<Profile> {
  const { status, body: user } = await getJson(`${api}/user`, accessToken);
  if (status !== 200) throw new ProviderUnavailable(`${api}/user answers ${status}`);
  const id = fieldOf(user, 'id');
  const listed = await verifiedEmails(api, accessToken);
  const email = textOf(user, 'email') || listed.primary;
  return {
    subject: typeof id === 'number' || typeof id === 'string' ? String(id) : '',
    login: textOf(user, 'login'),
    name: textOf(user, 'name'),
    avatarUrl: textOf(user, 'avatar_url'),
    email,
    // A profile shows what its owner chose to show; servers that speak as GitHub does may not have verified it.
    emailVerified: listed.all.includes(email.toLowerCase()),
    organizations: await memberships(api, accessToken, organizations),
  };
}

interface VerifiedEmails {
  /** '' where there is none. */
  readonly primary: string;
  /** In lower case. */
  readonly all: readonly string[];
}

/** Empty where the list may not be read: a login does not fail for it. */
async function verifiedEmails(api: string, accessToken: string): Promise<VerifiedEmails> {
  const { status, body } = await getJson(`${api}/user/emails`, accessToken);
  const verified =
    status === 200 && Array.isArray(body) ? body.filter((entry) => fieldOf(entry, 'verified') === true) : [];
  return {
    primary: textOf(
      verified.find((entry) => fieldOf(entry, 'primary') === true),
      'email',
    ),
    all: verified.map((entry) => textOf(entry, 'email').toLowerCase()).filter((email) => email !== ''),
  };
}

/** An invitation that was not accepted is none. One by one, since nobody's whole list is our affair. */
async function memberships(api: string, accessToken: string, wanted: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const name of wanted) {
    const { status, body } = await getJson(`${api}/user/memberships/orgs/${encodeURIComponent(name)}`, accessToken);
    const organization = textOf(fieldOf(body, 'organization'), 'login').toLowerCase();
    if (status === 200 && textOf(body, 'state') === 'active' && organization === name) found.push(name);
  }
  return found;
}
