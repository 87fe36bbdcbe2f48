/** What the API takes of one client. */
import { addressRange, boolean, integer, list } from '../kinds.ts';
import { variable } from './declared.ts';

export const requestVariables = {
  introspection: variable({
    name: 'SERVICE_INTROSPECTION',
    kind: boolean(),
    default: true,
    services: ['serve', 'gateway'],
    meaning: 'Whether GraphQL answers questions about its schema.',
  }),
  streamsPerUser: variable({
    name: 'SERVICE_STREAMS_PER_USER',
    kind: integer({ min: 1, max: 1_000_000 }),
    default: 100,
    services: ['serve', 'gateway'],
    meaning: 'Log streams that a user, and that an address, may have open; beyond it 429.',
  }),
  trustProxy: variable({
    name: 'SERVICE_TRUST_PROXY',
    kind: list(addressRange()),
    default: [],
    defaultText: 'none',
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Proxies whose `X-Forwarded-For` is believed.',
  }),
  rateLimitRead: variable({
    name: 'SERVICE_RATE_LIMIT_READ',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 240,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'Reading requests a minute and client address; 0: no limit.',
  }),
  rateLimitApi: variable({
    name: 'SERVICE_RATE_LIMIT_API',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 240,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning: 'GraphQL operations and authenticated writes a minute and client address; 0: no limit.',
  }),
  rateLimitWebhook: variable({
    name: 'SERVICE_RATE_LIMIT_WEBHOOK',
    kind: integer({ min: 0, max: 1_000_000_000 }),
    default: 600,
    services: ['serve', 'gateway', 'auth', 'registry', 'webhook-ingest'],
    meaning:
      'Webhook deliveries a minute and client address, those of connected repositories a minute and user; 0: no limit.',
  }),
} as const;
