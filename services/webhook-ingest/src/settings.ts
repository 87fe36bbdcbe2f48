/** From variables to what the ingest is started with; the same for `serve` and for a process of its own. */
import { ConfigurationError, type Configuration, type ServerMode } from '@penstock/config';
import type { WebhookIngestOptions } from './start.ts';
import type { HomeHosts } from './model/proof.ts';
import type { ProviderName } from './providers/provider.ts';
import type { StatusHost } from './statuses/host-api.ts';
import { readTemplate } from './processing/template.ts';

export const WEBHOOK_KEYS = [
  'webhookSecret',
  'webhookToken',
  'webhookRequireSecret',
  'webhookUnsigned',
  'webhookWaitSecs',
  'webhookPipeline',
  'webhookRepositories',
  'forkPolicy',
  'gitAllowedHosts',
  'gitHostAToken',
  'gitHostBToken',
  'gitHostApiUrl',
  'gitHostBaseUrl',
  'gitHostProvider',
  'dashboardUrl',
  'tenantTier',
] as const;

export type WebhookSettings = Pick<
  WebhookIngestOptions,
  | 'mode'
  | 'allowedHosts'
  | 'secrets'
  | 'unsigned'
  | 'homes'
  | 'waitSecs'
  | 'template'
  | 'repositories'
  | 'forks'
  | 'tenantTier'
  | 'statusHosts'
  | 'dashboardUrl'
>;

const PUBLIC_APIS: Readonly<Record<ProviderName, string>> = {
  git_host_a: 'https://api.github.com',
  git_host_b: 'https://gitlab.com/api/v4',
};

/** `warnings` are for the lines at the start. Throws ConfigurationError. */
export function webhookSettings(
  settings: Configuration<(typeof WEBHOOK_KEYS)[number]>,
  mode: ServerMode,
): { readonly settings: WebhookSettings; readonly warnings: readonly string[] } {
  const {
    webhookSecret,
    webhookToken,
    webhookRequireSecret: requireSecret,
    webhookUnsigned,
    webhookRepositories: repositories,
  } = settings;
  const missing = [
    ...(webhookSecret === undefined ? ['SERVICE_WEBHOOK_SECRET'] : []),
    ...(webhookToken === undefined ? ['SERVICE_WEBHOOK_TOKEN'] : []),
  ];
  if (mode === 'production' && requireSecret && missing.length === 2) {
    throw new ConfigurationError([
      'SERVICE_WEBHOOK_REQUIRE_SECRET is set, and neither SERVICE_WEBHOOK_SECRET nor SERVICE_WEBHOOK_TOKEN is; make one with: openssl rand -hex 32',
    ]);
  }
  if (requireSecret && webhookUnsigned === true)
    throw new ConfigurationError([
      'SERVICE_WEBHOOK_REQUIRE_SECRET and SERVICE_WEBHOOK_UNSIGNED are both true, and mean opposite things: unset one of them',
    ]);
  const unsigned = !requireSecret && (webhookUnsigned ?? missing.length === 2);
  return {
    settings: {
      mode,
      unsigned,
      homes: homesOf(settings),
      repositories,
      forks: settings.forkPolicy,
      allowedHosts: settings.gitAllowedHosts,
      secrets: { git_host_a: webhookSecret, git_host_b: webhookToken },
      waitSecs: settings.webhookWaitSecs,
      template: readTemplate(settings.webhookPipeline),
      tenantTier: settings.tenantTier,
      statusHosts: statusHosts(settings),
      dashboardUrl: settings.dashboardUrl,
    },
    warnings: mode === 'production' && unsigned && missing.length > 0 ? [warningOf(missing, repositories)] : [],
  };
}

function warningOf(missing: readonly string[], repositories: readonly string[] | undefined): string {
  const who =
    repositories === undefined
      ? "THIS SERVER RUNS ANYONE'S CODE: whoever reaches it can send a push of any repository"
      : 'unsigned pushes of the repositories in SERVICE_WEBHOOK_REPOSITORIES are accepted from anyone';
  return `${who}; set ${missing.join(' and ')}, or SERVICE_WEBHOOK_REQUIRE_SECRET=true`;
}

/** Where a provider's repositories are: on the host that is configured for it, else on the public one. */
function homesOf({
  gitHostBaseUrl,
  gitHostApiUrl,
  gitHostProvider,
}: Pick<
  Configuration<(typeof WEBHOOK_KEYS)[number]>,
  'gitHostBaseUrl' | 'gitHostApiUrl' | 'gitHostProvider'
>): Partial<HomeHosts> {
  const own = gitHostBaseUrl ?? gitHostApiUrl;
  if (own === undefined || gitHostProvider === 'oidc') return {};
  const host = new URL(own).hostname.replace(/^\[|\]$/gu, '').toLowerCase();
  return { [gitHostProvider === 'gitlab' ? 'git_host_b' : 'git_host_a']: host.replace(/^api\./u, '') };
}

/** An address of one's own is that of the provider which is configured; where none is, of every host that has a token. */
function statusHosts({
  gitHostAToken,
  gitHostBToken,
  gitHostApiUrl,
  gitHostProvider,
}: Pick<
  Configuration<(typeof WEBHOOK_KEYS)[number]>,
  'gitHostAToken' | 'gitHostBToken' | 'gitHostApiUrl' | 'gitHostProvider'
>): { readonly [P in ProviderName]?: StatusHost | undefined } {
  const own = gitHostProvider === undefined ? null : gitHostProvider === 'gitlab' ? 'git_host_b' : 'git_host_a';
  const hostOf = (provider: ProviderName, token: string | undefined): StatusHost | undefined => {
    if (token === undefined) return undefined;
    return {
      token,
      apiUrl: gitHostApiUrl !== undefined && (own ?? provider) === provider ? gitHostApiUrl : PUBLIC_APIS[provider],
    };
  };
  return { git_host_a: hostOf('git_host_a', gitHostAToken), git_host_b: hostOf('git_host_b', gitHostBToken) };
}
