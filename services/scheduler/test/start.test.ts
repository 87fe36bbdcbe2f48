/** A scheduler over ports that say what listens and what is published: how its start and its membership end. */
import { machineTime } from '@penstock/async';
import { subjects, type Bus, type Lease } from '@penstock/bus';
import { SchedulerService, type SchedulerPorts } from '@penstock/scheduler/testing';
import type { RunsLedger } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { expect, it, onTestFinished } from 'vitest';

class World {
  listening = 0;
  /** Subjects. */
  readonly published: string[] = [];
  readonly renewed = Promise.withResolvers<void>();
  /** A second passes: what is to be done then. */
  second = (): void => {};
  readonly scheduler: SchedulerService;

  constructor(acquire: SchedulerPorts['membership']['acquire']) {
    const listen = (): { stop(): void } => {
      this.listening += 1;
      return { stop: () => (this.listening -= 1) };
    };
    const publish = (subject: string): void => void this.published.push(subject);
    const bus = { subscribe: listen, respond: listen, publish } as unknown as Bus;
    const ports: SchedulerPorts = {
      bus,
      time: {
        ...machineTime,
        after: (_, task) => {
          this.second = task;
          return () => {};
        },
        turn: () => Promise.resolve(),
      },
      membership: {
        bootNow: () => 0,
        newId: () => 'member',
        // Of those until it has joined again the first is for its renewal.
        pause: (_, signal) =>
          this.#pauses++ === 0
            ? this.renewed.promise
            : new Promise((done) => signal.addEventListener('abort', () => done())),
        acquire,
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
    this.scheduler = new SchedulerService({ bus, ledger: {} as RunsLedger, log: silentLog, partitions: 0 }, ports);
  }

  #pauses = 0;
}

it('a start that cannot join leaves nothing behind that listens: whoever starts it again makes another', async () => {
  const world = new World(() => Promise.reject(new Error('the broker is away')));
  await expect(world.scheduler.start()).rejects.toThrow('the broker is away');
  expect(world.listening).toBe(0);
});

it('a scheduler whose membership is over announces nothing that waits: there is no name to offer slots to', async () => {
  const lease: Pick<Lease, 'sentAtMs' | 'renew' | 'release'> = {
    sentAtMs: 0,
    renew: () => Promise.resolve({ kind: 'lost' }),
    release: () => Promise.resolve(),
  };
  const world = new World(() => Promise.resolve(lease));
  const { scheduler } = world;
  await scheduler.start();
  onTestFinished(() => scheduler.close());
  scheduler.dispatch.offer({
    ...{ key: 'k', priority: 0, labels: [], labelSet: '', count: 1 },
    ...{ since: () => undefined, boundTo: () => undefined, waits: () => true, grant: () => true },
    rest() {
      return this;
    },
  });
  const pass = async (): Promise<void> => {
    world.second();
    await new Promise((done) => setImmediate(done));
  };
  await pass();
  expect(world.published).toEqual([subjects.demand('member')]);
  world.renewed.resolve();
  await expect.poll(() => scheduler.member).toBe('');
  await pass();
  expect(world.published).toEqual([subjects.demand('member')]);
});
