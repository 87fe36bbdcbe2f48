/** A scheduler whose start comes to nothing, over ports that count what listens. */
import { machineTime } from '@penstock/async';
import type { Bus } from '@penstock/bus';
import { SchedulerService, type SchedulerPorts } from '@penstock/scheduler/testing';
import type { RunsLedger } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { expect, it } from 'vitest';

it('a start that cannot join leaves nothing behind that listens: whoever starts it again makes another', async () => {
  let listening = 0;
  const listen = (): { stop(): void } => {
    listening += 1;
    return { stop: () => (listening -= 1) };
  };
  const bus = { subscribe: listen, respond: listen } as unknown as Bus;
  const ports: SchedulerPorts = {
    bus,
    time: machineTime,
    membership: {
      bootNow: () => 0,
      newId: () => 'member',
      pause: () => Promise.resolve(),
      acquire: () => Promise.reject(new Error('the broker is away')),
    },
    newId: () => 'id',
    openLog: () => {
      throw new Error('nothing is opened');
    },
    watchLeases: () => ({ ready: Promise.resolve(), ...listen(), current: true, heardAt: 0 }),
    leaseAtLeader: () => Promise.resolve(null),
    bucketAgeMs: () => Promise.resolve(0),
    onReconnected: () => () => {},
    markLogEnds: () => Promise.resolve([]),
    purgeLogs: () => Promise.resolve(),
  };
  const scheduler = new SchedulerService({ bus, ledger: {} as RunsLedger, log: silentLog, partitions: 1 }, ports);
  await expect(scheduler.start()).rejects.toThrow('the broker is away');
  expect(listening).toBe(0);
});
