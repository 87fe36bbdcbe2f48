/** What every service with routes of its own reads from its variables, and makes its server with. */
import { serverMode, type Configuration } from '@penstock/config';
import type { ServerOptions } from '@penstock/http';

export const HTTP_KEYS = [
  'listen',
  'mode',
  'baseUrl',
  'corsOrigins',
  'rateLimitRead',
  'rateLimitApi',
  'rateLimitWebhook',
  'trustProxy',
] as const;

/** `shares`: by how many processes the budgets are divided. */
export function httpSettings(
  settings: Configuration<(typeof HTTP_KEYS)[number]>,
  shares: () => number,
): Required<Pick<ServerOptions, 'corsOrigins' | 'rateLimits' | 'trustProxy' | 'loopbackHostsOnly'>> {
  const { corsOrigins, rateLimitRead: read, rateLimitApi: api, rateLimitWebhook: webhook, trustProxy } = settings;
  const loopbackHostsOnly = serverMode(settings) === 'development';
  return { corsOrigins, rateLimits: { read, api, webhook, shares }, trustProxy, loopbackHostsOnly };
}
