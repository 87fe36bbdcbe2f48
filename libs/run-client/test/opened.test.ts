/** What a new owner's message sets going, without a broker. */
import { EventEmitter } from 'node:events';
import { subjects, type Bus, type PartitionOpened } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { Owners } from '../src/index.ts';

function owners(): { readonly owners: Owners; readonly events: Bus['events']; opened(epoch: number): void } {
  const events: Bus['events'] = new EventEmitter();
  const handlers = new Map<string, (message: PartitionOpened) => void>();
  const bus = {
    events,
    subscribe: (subject: string, handler: (message: PartitionOpened) => void) => {
      handlers.set(subject, handler);
      return { stop: () => {} };
    },
  };
  return {
    owners: new Owners(bus as unknown as Bus, 4),
    events,
    opened: (epoch) => handlers.get(subjects.opened('*'))?.({ partition: 2, epoch, owner: 'm' }),
  };
}

describe('who listens for owners of a partition (P20)', () => {
  it('is told at once that a new one has opened it, which is believed from then on alone (P4)', () => {
    const world = owners();
    let told = 0;
    const stop = world.owners.onAskAgain(2, () => (told += 1));
    world.owners.onAskAgain(3, () => (told += 100));
    world.opened(7);
    expect([told, world.owners.accepts(2, 6), world.owners.accepts(2, 7)]).toEqual([1, false, true]);
    stop();
    world.opened(8);
    expect(told).toBe(1);
  });

  it('is told, whichever partition it is, that the connection was away', () => {
    const world = owners();
    const told: number[] = [];
    for (const partition of [1, 2]) world.owners.onAskAgain(partition, () => told.push(partition));
    world.events.emit('reconnected');
    expect(told).toEqual([1, 2]);
    world.owners.close();
    world.events.emit('reconnected');
    expect(told).toHaveLength(2);
  });
});
