/** What every service with routes of its own reads from its variables, and makes its server with. */
import type { Configuration } from '@penstock/config';
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
): Required<Pick<ServerOptions, 'corsOrigins' | 'rateLimits' | 'trustProxy'>> {
  const { corsOrigins, rateLimitRead: read, rateLimitApi: api, rateLimitWebhook: webhook, trustProxy } = settings;
  return { corsOrigins, rateLimits: { read, api, webhook, shares }, trustProxy };
}
