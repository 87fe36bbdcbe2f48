import { startCluster } from '../cluster/cluster.ts';
import { describeCloneSecret } from './clone-secret.ts';

describeCloneSecret('services apart', async (env) => {
  const keys = {
    SERVICE_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
    SERVICE_SLIP_KEY: Buffer.alloc(32, 2).toString('base64'),
  };
  const cluster = await startCluster({
    ...{ schedulers: 1, runners: 1, gateways: 1, partitions: 4, slots: 2 },
    logLevel: 'debug',
    env: { ...keys, ...env },
  });
  return { url: cluster.url, folder: cluster.folder, output: () => '', stop: () => cluster.stop() };
});
