export { runWebhookIngestService } from './service.ts';
export { WEBHOOK_KEYS, webhookSettings, type WebhookSettings } from './settings.ts';
export { startWebhookIngest, type WebhookIngest, type WebhookIngestOptions } from './webhook-ingest.ts';
export { ingestCollections } from './model/collections.ts';
export { readTemplate } from './processing/template.ts';
export type { FetchedCommit, Mirrors } from './model/ports.ts';
