/**
 * Creates and adjusts the streams and buckets of an installation, as the broker's user `setup`: once, and after an upgrade.
 * Idempotent; deletes nothing. See README.md beside it.
 */
import { brokerAddress, connectBus, ensureStreams, inboxPrefixOf } from '@penstock/bus';
import { ConfigurationError, readConfiguration } from '@penstock/config';
import { openObjectStore } from '@penstock/object-store';
import { PACKAGES_BUCKET } from '@penstock/registry';

const USAGE = `usage: SERVICE_NATS_URL=nats://setup:<password>@<host>:4222 node bootstrap/run.js deploy/nats/setup.ts
  SERVICE_PARTITIONS      as the services have it; default 16
  SERVICE_NATS_REPLICAS   copies; default 3 where the broker names a cluster, else 1
  SERVICE_LOG_RETENTION   as the schedulers have it; default 90d`;

const PARTITIONS = 16;

const say = (line: string): boolean => process.stdout.write(`${line}\n`);

async function setUp(): Promise<void> {
  const settings = readConfiguration(['natsUrl', 'partitions', 'natsReplicas', 'logRetention'], { env: process.env });
  if (settings.natsUrl === undefined) throw new ConfigurationError([`SERVICE_NATS_URL is missing\n${USAGE}`]);
  const partitions = settings.partitions ?? PARTITIONS;
  const address = brokerAddress(settings.natsUrl);
  const bus = await connectBus({
    ...address,
    name: 'setup',
    inboxPrefix: address.user === undefined ? undefined : inboxPrefixOf(address.user),
  });
  try {
    await ensureStreams(bus, { partitions, replicas: settings.natsReplicas, logsAgeMsMax: settings.logRetention });
    await openObjectStore('nats', { bus, bucket: PACKAGES_BUCKET });
    say(`The streams and buckets are there, for ${partitions} ${partitions === 1 ? 'partition' : 'partitions'}.`);
  } finally {
    await bus.close();
  }
}

try {
  await setUp();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(error instanceof ConfigurationError ? 2 : 1);
}
