/** `penstock service auth`: takes its place among the processes of an installation. What it serves comes with its own issue. */
import { runService } from '@penstock/service';

export function runAuthService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService({
    name: 'auth',
    keys: [],
    start: async () => ({ ready: async () => {}, drain: async () => {} }),
  }, env);
}
