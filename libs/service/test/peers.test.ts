import { connectBus, type Bus } from '@penstock/bus';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { countPeers, type PeerCount } from '../src/peers.ts';

const WAIT = { timeout: 30_000 };

let broker: TestBroker;
let bus: Bus;
let elsewhere: Bus;
beforeAll(async () => {
  broker = await startTestBroker();
  [bus, elsewhere] = await Promise.all([
    connectBus({ servers: broker.url, name: 'one' }),
    connectBus({ servers: broker.url, name: 'two' }),
  ]);
});
afterAll(async () => {
  await Promise.all([bus.close(), elsewhere.close()]);
  await broker.stop();
});

const peers: PeerCount[] = [];
afterEach(() => {
  for (const peer of peers.splice(0)) peer.stop();
});

function started(...args: Parameters<typeof countPeers>): PeerCount {
  const peer = countPeers(...args);
  peers.push(peer);
  return peer;
}

describe('the number of processes of a service', () => {
  it('is one where there is one', async () => {
    const only = started(bus, 'gateway');
    await bus.flush();
    expect(only.count()).toBe(1);
  });

  it('those that are there and one that comes know each other at once; other services do not count', async () => {
    const first = started(bus, 'gateway');
    await bus.flush();
    const second = started(elsewhere, 'gateway');
    started(elsewhere, 'auth');
    await vi.waitFor(() => expect([first.count(), second.count()]).toEqual([2, 2]), WAIT);
    const third = started(elsewhere, 'gateway');
    await vi.waitFor(() => expect([first.count(), second.count(), third.count()]).toEqual([3, 3, 3]), WAIT);
  });

  it('one that stops is not counted any more', async () => {
    const first = started(bus, 'registry');
    await bus.flush();
    const second = started(elsewhere, 'registry');
    await vi.waitFor(() => expect(first.count()).toBe(2), WAIT);
    second.stop();
    await vi.waitFor(() => expect(first.count()).toBe(1), WAIT);
  });

  it('one that falls silent is not counted after some seconds', async () => {
    let now = 0;
    const first = started(bus, 'auth', () => now);
    await bus.flush();
    started(elsewhere, 'auth');
    await vi.waitFor(() => expect(first.count()).toBe(2), WAIT);
    now = 7_001;
    expect(first.count()).toBe(1);
  });
});
