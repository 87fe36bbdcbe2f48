/** `penstock service webhook-ingest`: takes its place among the processes of an installation. What it serves comes with its own issue. */
import { runService } from '@penstock/service';

export function runWebhookIngestService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService({
    name: 'webhook-ingest',
    keys: [],
    start: async () => ({ ready: async () => {}, drain: async () => {} }),
  }, env);
}
