/** What is paused (P35) over a real broker: it stays, every watch reads all of it, and says when it was last heard. */
import { bootMs } from '@penstock/async';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Bus,
  buckets,
  connectBus,
  type Control,
  controlName,
  ensureStreams,
  type LeaseEvent,
  type LeaseWatch,
  putControl,
  readControls,
  watchLeases,
} from '../src/index.ts';

const MIB = 1024 * 1024;
const WAIT = { timeout: 30_000, interval: 20 };
const everything: Control = { target: { kind: 'all' }, since: 1, by: 'admin', reason: 'upgrade' };
const ofKey: Control = { target: { kind: 'key', key: 'user/1 * > .' }, since: 2, by: 'admin' };

let broker: TestBroker;
let bus: Bus;
const watches: LeaseWatch[] = [];

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'controls' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
}, 60_000);

afterEach(async () => {
  for (const watch of watches.splice(0)) watch.stop();
  await bus.close(0);
  await broker.stop();
}, 60_000);

function watching(seen: LeaseEvent<Control>[]): LeaseWatch {
  const watch = watchLeases<Control>(bus, buckets.controls, (event) => seen.push(event), { asNewAsLeader: true });
  watches.push(watch);
  return watch;
}

describe('controls', () => {
  it('stand until they are taken back, whatever their names, and one name has one', async () => {
    expect(await readControls(bus)).toEqual([]);
    await putControl(bus, everything);
    await putControl(bus, ofKey);
    await putControl(bus, { ...everything, reason: 'longer' });
    const read = await readControls(bus);
    expect(read).toHaveLength(2);
    expect(read).toContainEqual({ ...everything, reason: 'longer' });
    expect(read).toContainEqual(ofKey);
    await putControl(bus, { ...ofKey, resumedAt: 3 });
    expect(await readControls(bus)).toContainEqual({ ...ofKey, resumedAt: 3 });
  }, 60_000);

  it('a watch has read them all when it is ready, and goes on with what comes', async () => {
    await putControl(bus, everything);
    await putControl(bus, ofKey);
    const seen: LeaseEvent<Control>[] = [];
    const watch = watching(seen);
    expect(watch.heardAt).toBe(Number.NEGATIVE_INFINITY);
    await watch.ready;
    expect(seen.map(({ key }) => key).toSorted()).toEqual(
      [everything, ofKey].map(({ target }) => controlName(target)).toSorted(),
    );
    await putControl(bus, { ...everything, resumedAt: 4 });
    await vi.waitFor(() => expect(seen.at(-1)).toMatchObject({ kind: 'put', value: { resumedAt: 4 } }), WAIT);
  }, 60_000);

  it('a watch is ready where nothing is paused, and hears heartbeats when nothing happens', async () => {
    const watch = watching([]);
    await watch.ready;
    const { heardAt } = watch;
    expect(heardAt).toBeLessThanOrEqual(bootMs());
    await vi.waitFor(() => expect(watch.heardAt).toBeGreaterThan(heardAt), WAIT);
  }, 60_000);

  it('they outlive a broker that is killed; until it is back the watch is not heard', async () => {
    const seen: LeaseEvent<Control>[] = [];
    await putControl(bus, everything);
    const watch = watching(seen);
    await watch.ready;
    await broker.kill();
    await vi.waitFor(() => expect(watch.current).toBe(false), WAIT);
    const { heardAt } = watch;
    await broker.restart();
    await vi.waitFor(() => expect(watch.heardAt).toBeGreaterThan(heardAt), WAIT);
    expect(await readControls(bus)).toEqual([everything]);
  }, 90_000);
});
