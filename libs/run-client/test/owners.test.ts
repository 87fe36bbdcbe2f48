import {
  connectBus,
  subjects,
  type Bus,
  type CreateReply,
  type CreateRequest,
  type PartitionOpened,
} from '@penstock/bus';
import { keyOf, newRunId, SERVICE_TENANT } from '@penstock/run';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Owners } from '../src/index.ts';

const KEY = keyOf({ tenant: SERVICE_TENANT, pipelineName: 'p' });
const REQUEST: CreateRequest = {
  runId: newRunId({ now: Date.now(), key: KEY, random: new Uint8Array(8) }),
  tenant: SERVICE_TENANT,
  key: KEY,
  yaml: '',
  origin: { kind: 'api' },
};
const created = (epoch: number): CreateReply => ({ ok: true, created: true, epoch, run: null });

let broker: TestBroker;
let bus: Bus;
let other: Bus;
let owners: Owners;
beforeAll(async () => {
  broker = await startTestBroker();
  [bus, other] = await Promise.all([
    connectBus({ servers: broker.url, name: 'gateway' }),
    connectBus({ servers: broker.url, name: 'scheduler' }),
  ]);
});
afterAll(async () => {
  await Promise.all([bus.close(), other.close()]);
  await broker.stop();
});
afterEach(() => owners.close());

it('what an owner that hands over has left without an answer is asked of the next one as soon as that has opened, not when time is up', async () => {
  owners = new Owners(bus, 1, 3_600_000);
  const asked: string[] = [];
  const received = Promise.withResolvers<void>();
  // From `released` on it answers nothing (P3).
  const releasing = other.respond<CreateRequest, CreateReply>(subjects.owner(0, 'create'), (_request, call) => {
    asked.push('the one before');
    call.drop();
    received.resolve();
    return new Promise<never>(() => {});
  });
  await other.flush();
  const answer = owners.create(REQUEST);
  await received.promise;
  releasing.stop();
  const next = other.respond<CreateRequest, CreateReply>(subjects.owner(0, 'create'), () => {
    asked.push('the new one');
    return created(2);
  });
  await other.flush();
  other.publish<PartitionOpened>(subjects.opened(0), { partition: 0, epoch: 2, owner: 'next' });
  expect(await answer).toEqual(created(2));
  expect(asked).toEqual(['the one before', 'the new one']);
  next.stop();
});

it('the message of an owner that is known already changes nothing: the request goes out once', async () => {
  owners = new Owners(bus, 1);
  owners.accepts(0, 2);
  let asked = 0;
  const owner = other.respond<CreateRequest, CreateReply>(subjects.owner(0, 'create'), async () => {
    asked += 1;
    other.publish<PartitionOpened>(subjects.opened(0), { partition: 0, epoch: 2, owner: 'same' });
    await other.flush();
    return created(2);
  });
  await other.flush();
  expect(await owners.create(REQUEST)).toEqual(created(2));
  expect(asked).toBe(1);
  owner.stop();
});

it('an owner that was replaced is not asked again and again without a pause, for as long as its successor says nothing (P4)', async () => {
  const msMax = 1_000;
  owners = new Owners(bus, 1, msMax);
  owners.accepts(0, 2);
  let asked = 0;
  const replaced = other.respond<CreateRequest, CreateReply>(subjects.owner(0, 'create'), () => {
    asked += 1;
    return created(1);
  });
  await other.flush();
  await expect(owners.create(REQUEST)).rejects.toMatchObject({ tag: 'Unavailable' });
  // Ten times a second, and a timer may fire a part of a millisecond early; a busy machine asks less often.
  expect(asked).toBeLessThanOrEqual(msMax / 100 + 2);
  replaced.stop();
});

it('a request that is answered, or fails, hears of no new owner any more', async () => {
  owners = new Owners(bus, 1, 500);
  let listening = 0;
  const { onAskAgain } = owners;
  owners.onAskAgain = (partition, listener) => {
    const stop = onAskAgain.call(owners, partition, listener);
    listening += 1;
    return () => {
      listening -= 1;
      stop();
    };
  };
  const owner = other.respond<CreateRequest, CreateReply>(subjects.owner(0, 'create'), () => {
    expect(listening).toBe(1);
    return created(1);
  });
  await other.flush();
  await owners.create(REQUEST);
  expect(listening).toBe(0);
  owner.stop();
  await other.flush();
  await expect(owners.create(REQUEST)).rejects.toMatchObject({ tag: 'Unavailable' });
  expect(listening).toBe(0);
});
