import { createHash } from 'node:crypto';
import { DiscardPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connectBus, connectionOf } from '@penstock/bus';
import { startTestBroker } from '@penstock/testkit';
import { expect, it } from 'vitest';
import { ObjectsFull, ObjectsUnavailable } from '../src/errors.ts';
import type { ObjectStore } from '../src/port.ts';
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

it('a bucket that has its bytes says that it is full, and has room when something is deleted', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'full' });
  try {
    const store = await openNatsStore({ bus, bucket: 'small', bytesMax: 1024 ** 2 });
    await put(store, 'first');
    await expect(put(store, 'second')).rejects.toBeInstanceOf(ObjectsFull);
    await store.delete('first');
    await put(store, 'second');
  } finally {
    await bus.close();
    await broker.stop();
  }
});

it('of whatever else its store has failed the broker is not full: it is worth a retry', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'failing' });
  try {
    const manager = await jetstreamManager(connectionOf(bus));
    const perSubject = { max_msgs_per_subject: 1, discard: DiscardPolicy.New, discard_new_per_subject: true };
    await manager.streams.add({ name: 'OBJ_strict', subjects: ['$O.strict.C.>', '$O.strict.M.>'], ...perSubject });
    const store = await openNatsStore({ bus, bucket: 'strict' });
    await put(store, 'once');
    const again = put(store, 'once').catch((error: unknown) => error);
    expect(await again).toBeInstanceOf(ObjectsUnavailable);
    expect(await again).not.toBeInstanceOf(ObjectsFull);
  } finally {
    await bus.close();
    await broker.stop();
  }
});

async function put(store: ObjectStore, key: string): Promise<void> {
  const content = Buffer.alloc(700 * 1024, key);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const bytes = (async function* given() {
    yield content;
  })();
  await store.put(key, bytes, { sha256, bytesMax: content.length });
}
