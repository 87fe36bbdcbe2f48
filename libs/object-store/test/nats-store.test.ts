import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connectBus, connectionOf } from '@penstock/bus';
import { startTestBroker } from '@penstock/testkit';
import { openNatsStore } from '../src/nats/nats-store.ts';
import { objectStoreSuite } from './object-store-suite.ts';

objectStoreSuite('JetStream', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'objects' });
  return {
    open: () => openNatsStore({ bus, bucket: 'test' }),
    damage: async (key) => {
      const manager = await jetstreamManager(connectionOf(bus));
      const message = await manager.streams.getMessage('OBJ_test', {
        last_by_subj: `$O.test.M.${Buffer.from(key).toString('base64url')}`,
      });
      const { id } = message?.json<{ id: string }>() ?? { id: '' };
      const first = await manager.streams.getMessage('OBJ_test', { last_by_subj: `$O.test.C.${id}.0` });
      const bytes = Buffer.from(first?.data ?? []);
      bytes.write('damaged', 1000);
      await jetstream(connectionOf(bus)).publish(`$O.test.C.${id}.0`, bytes);
    },
    remove: async () => {
      await bus.close();
      await broker.stop();
    },
  };
});
