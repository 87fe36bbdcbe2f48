export { runWebhookIngestService } from './service.ts';
