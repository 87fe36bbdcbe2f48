/** What every cluster under chaos has: links that break, and doors that take signed pushes. */
import type { ClusterOptions } from '../cluster/cluster.ts';
import { WEBHOOK_SECRET } from './doors/deliveries.ts';

export const CHAOS_CLUSTER: ClusterOptions = {
  linked: true,
  env: {
    SERVICE_WEBHOOK_SECRET: WEBHOOK_SECRET,
    SERVICE_WEBHOOK_WAIT_SECS: '0',
    SERVICE_WEBHOOK_REPOSITORIES: 'acme/*',
  },
};
