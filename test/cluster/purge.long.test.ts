/**
 * Everything of a tenant deleted where each service is a process of its own and the store is a server of MongoDB's protocol: the same as on
 * one machine.
 */
import { randomBytes } from 'node:crypto';
import { reportNotRun, startMongoServer } from '../support/mongodb.ts';
import { describePurge } from '../support/purge-suite.ts';
import { startCluster } from './cluster.ts';

const probe = await startMongoServer();
if ('missing' in probe) reportNotRun(`a purge on a server of MongoDB's protocol: ${probe.missing}`);
else await probe.stop();

const key = (): string => randomBytes(32).toString('base64');

describePurge(`with services apart, on ${'missing' in probe ? 'SQLite' : probe.name}`, async (env) => {
  const [masterKey, slipKey] = [key(), key()];
  return await startCluster({
    ...{ schedulers: 2, runners: 1, gateways: 2, partitions: 4, slots: 3 },
    store: 'missing' in probe ? 'sqlite' : 'mongodb',
    env,
    envOf: {
      auth: { SERVICE_MASTER_KEY: masterKey, SERVICE_SLIP_KEY: slipKey },
      scheduler: { SERVICE_SLIP_KEY: slipKey },
    },
  });
});
