/** Which provider the settings mean: `GIT_HOST_*`, and the embedded one where a developer has set none. */

export interface ProviderSettings {
  readonly provider?: 'github' | 'gitlab' | 'oidc' | undefined;
  /** Of the provider's pages; a server of one's own. */
  readonly baseUrl?: string | undefined;
  readonly apiUrl?: string | undefined;
  /** With `oidc`. */
  readonly issuer?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
}

/** Describes one git host; its addresses have no slash at their end. */
export interface HostSettings {
  readonly baseUrl?: string | undefined;
  readonly apiUrl?: string | undefined;
  readonly clientId: string;
  /** Absent: a public client, which PKCE alone protects. GitHub takes none for its web flow. */
  readonly clientSecret?: string | undefined;
  /** Organisations or groups in lower case; a login asks which of them its account is a member of. */
  readonly organizations?: readonly string[] | undefined;
}

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/u, '');
}

interface HostVariables {
  readonly gitHostProvider?: 'github' | 'gitlab' | 'oidc' | undefined;
  readonly gitHostBaseUrl?: string | undefined;
  readonly gitHostApiUrl?: string | undefined;
  readonly gitHostIssuer?: string | undefined;
  readonly gitHostClientId?: string | undefined;
  readonly gitHostClientSecret?: string | undefined;
}

/** `GIT_HOST_*`, as they were read. */
export function providerSettings(settings: HostVariables): ProviderSettings {
  return {
    provider: settings.gitHostProvider,
    baseUrl: settings.gitHostBaseUrl,
    apiUrl: settings.gitHostApiUrl,
    issuer: settings.gitHostIssuer,
    clientId: settings.gitHostClientId,
    clientSecret: settings.gitHostClientSecret,
  };
}
