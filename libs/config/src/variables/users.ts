/** Who users are, who lets them in, and what they may have. */
import { choice, list, text, url } from '../kinds.ts';
import { optional, variable } from './declared.ts';

export const userVariables = {
  dashboardUrl: optional({
    name: 'SERVICE_DASHBOARD_URL',
    kind: url('http:', 'https:'),
    defaultText: '`SERVICE_BASE_URL`',
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: 'Where a browser is sent after its login, and what commit statuses link to.',
  }),
  gitHostProvider: optional({
    name: 'GIT_HOST_PROVIDER',
    kind: choice('github', 'gitlab', 'oidc'),
    defaultText: '`github`; in development mode without `GIT_HOST_CLIENT_ID` the embedded provider',
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: 'Who says who a user is.',
  }),
  gitHostBaseUrl: optional({
    name: 'GIT_HOST_BASE_URL',
    kind: url('http:', 'https:'),
    defaultText: "the provider's public address",
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: "The address of the provider's pages; of a server of one's own where there is one.",
  }),
  gitHostApiUrl: optional({
    name: 'GIT_HOST_API_URL',
    kind: url('http:', 'https:'),
    defaultText: "the provider's public address",
    services: ['serve', 'auth', 'webhook-ingest'],
    meaning: "The address of the provider's API.",
  }),
  gitHostIssuer: optional({
    name: 'GIT_HOST_ISSUER',
    kind: url('http:', 'https:'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    meaning: 'The issuer, with `GIT_HOST_PROVIDER=oidc`: over https, or on this machine.',
  }),
  gitHostClientId: optional({
    name: 'GIT_HOST_CLIENT_ID',
    kind: text('text'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    meaning:
      'Of the application that was registered with the provider. Without it logins answer 503 in production mode.',
  }),
  gitHostClientSecret: optional({
    name: 'GIT_HOST_CLIENT_SECRET',
    kind: text('text'),
    defaultText: 'none',
    services: ['serve', 'auth'],
    secret: true,
    meaning: 'Of the same application.',
  }),
  admins: variable({
    name: 'SERVICE_ADMINS',
    kind: list(text('email, login or sub:…'), 1_000),
    default: [],
    defaultText: 'nobody',
    services: ['serve', 'auth'],
    meaning:
      'Who sees and changes the runs of the tenant `service`: emails that the provider has verified, logins at GitHub and GitLab, `sub:<subject>` with OpenID Connect.',
  }),
  allowedLogins: optional({
    name: 'SERVICE_ALLOWED_LOGINS',
    kind: list(text('email, login, sub:…, @domain or org:NAME'), 1_000),
    defaultText: 'everybody with an account at the provider',
    services: ['serve', 'auth'],
    meaning:
      'Who may log in at all: the forms of `SERVICE_ADMINS`, `@domain` for verified emails, `org:NAME` for organisations at GitHub and groups at GitLab.',
  }),
  defaultTier: variable({
    name: 'SERVICE_DEFAULT_TIER',
    kind: choice('free', 'pro', 'team', 'enterprise'),
    default: 'free',
    services: ['serve', 'auth'],
    meaning: 'The tier of new users.',
  }),
  tiersFile: optional({
    name: 'SERVICE_TIERS_FILE',
    kind: text('path'),
    defaultText: 'none',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'A JSON file whose limits stand above those of the built-in tiers.',
  }),
  tenantTier: optional({
    name: 'SERVICE_TENANT_TIER',
    kind: choice('free', 'pro', 'team', 'enterprise'),
    defaultText: 'none: no limits',
    services: ['serve', 'gateway', 'webhook-ingest'],
    meaning: 'The tier whose limits hold in the tenant `service`, for each repository.',
  }),
} as const;
