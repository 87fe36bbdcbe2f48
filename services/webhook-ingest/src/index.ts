export { runWebhookIngestService } from './service.ts';
export type { WebhookSettings } from './settings.ts';
export { startWebhookIngest } from './start.ts';
export { ingestCollections } from './model/collections.ts';
