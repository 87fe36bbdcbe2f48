export { runWebhookIngestService } from './service.ts';
export { WEBHOOK_KEYS, webhookSettings, type WebhookSettings } from './settings.ts';
export { startWebhookIngest } from './start.ts';
export { ingestCollections } from './model/collections.ts';
