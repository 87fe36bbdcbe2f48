/** `penstock service registry`: takes its place among the processes of an installation. What it serves comes with its own issue. */
import { runService } from '@penstock/service';

export function runRegistryService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService({
    name: 'registry',
    keys: [],
    start: async () => ({ ready: async () => {}, drain: async () => {} }),
  }, env);
}
