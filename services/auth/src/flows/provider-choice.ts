/** The provider that the settings mean, made when the server's address is known. */
import { startEmbedded, type Embedded } from '../embedded/embedded-provider.ts';
import { githubProvider } from '../providers/github.ts';
import { gitlabProvider } from '../providers/gitlab.ts';
import { oidcProvider } from '../providers/oidc.ts';
import type { IdentityProvider } from '../providers/port.ts';
import { checkedOidc } from '../providers/provider-check.ts';
import { withoutSlash, type ProviderSettings } from '../providers/settings.ts';

export interface ChosenProvider {
  /** Whether logins are possible at all: in production mode only with an application of the provider. */
  readonly isConfigured: boolean;
  get(): Promise<IdentityProvider>;
  /** The embedded provider; null where another is configured. */
  readonly embedded: (() => Promise<Embedded>) | null;
}

export interface ChoiceOptions {
  readonly settings: ProviderSettings;
  readonly mode: 'development' | 'production';
  readonly baseUrl: () => string;
  /** What `SERVICE_ALLOWED_LOGINS` names; a login asks about them. */
  readonly organizations?: readonly string[] | undefined;
}

/** Throws a RangeError that names the variable which is missing or cannot be. */
export function chosenProvider({ settings, mode, baseUrl, organizations = [] }: ChoiceOptions): ChosenProvider {
  const { clientId } = settings;
  if (clientId === undefined) {
    if (mode === 'production')
      return {
        isConfigured: false,
        embedded: null,
        get: () => Promise.reject(new Error('no identity provider is configured')),
      };
    let started: Promise<Embedded> | null = null;
    const embedded = (): Promise<Embedded> => (started ??= startEmbedded(baseUrl()));
    return { isConfigured: true, embedded, get: async () => (await embedded()).client };
  }
  const provider = providerOf(settings, clientId, organizations);
  return { isConfigured: true, embedded: null, get: () => Promise.resolve(provider) };
}

function providerOf(settings: ProviderSettings, clientId: string, organizations: readonly string[]): IdentityProvider {
  const { clientSecret } = settings;
  const host = {
    clientId,
    clientSecret,
    organizations,
    ...(settings.baseUrl === undefined ? {} : { baseUrl: withoutSlash(settings.baseUrl) }),
    ...(settings.apiUrl === undefined ? {} : { apiUrl: withoutSlash(settings.apiUrl) }),
  };
  switch (settings.provider ?? 'github') {
    case 'github':
      return githubProvider(host);
    case 'gitlab':
      return gitlabProvider(host);
    case 'oidc':
      return oidcProvider({ ...checkedOidc(settings, organizations), clientId, clientSecret });
  }
}
