/** The list of who is let in, and what the broker is told of it. */
import { silentLog } from '@penstock/telemetry/log';
import { afterEach, describe, expect, it } from 'vitest';
import { FleetDoor, type FleetDoorOptions } from '../src/fleet-door.ts';

let door: FleetDoor;
let now = 0;
/** Each list that the broker was told. */
const told: string[][] = [];
let telling: (names: readonly string[]) => Promise<void> = () => Promise.resolve();

const make = (more: Partial<FleetDoorOptions> = {}): FleetDoor =>
  (door = new FleetDoor({
    broker: {
      setRunners: async (runners) => {
        const names = [...runners.keys()];
        await telling(names);
        told.push(names);
      },
    },
    log: silentLog,
    now: () => now,
    lookMs: 3_600_000,
    ...more,
  }));
const runner = (id: string) => ({ id, publicKey: `key of ${id}`, tokenId: 't', name: '' });

afterEach(() => {
  door.close();
  now = 0;
  told.length = 0;
  telling = () => Promise.resolve();
});

describe('the door', () => {
  it('answers when the broker has it, and tells nothing for what it has', async () => {
    make();
    expect(await door.admit(runner('a'), 1_000)).toBe(true);
    expect(await door.admit(runner('a'), 9_000)).toBe(true);
    expect(told).toEqual([['a']]);
    expect(door.list()).toMatchObject([{ id: 'a', leftMs: 9_000 }]);
  });

  it('tells together what comes while it tells', async () => {
    make();
    const { promise, resolve } = Promise.withResolvers<void>();
    telling = () => promise;
    const all = ['a', 'b', 'c', 'd'].map((id) => door.admit(runner(id), 1_000));
    resolve();
    expect(await Promise.all(all)).toEqual([true, true, true, true]);
    expect(told).toEqual([['a'], ['a', 'b', 'c', 'd']]);
  });

  it('cuts off whose time is over, unless it was renewed', async () => {
    make();
    await door.admit(runner('a'), 1_000);
    await door.admit(runner('b'), 1_000);
    now = 900;
    await door.admit(runner('b'), 1_000);
    now = 1_000;
    await door.look();
    expect(told.at(-1)).toEqual(['b']);
    expect(door.list().map(({ id }) => id)).toEqual(['b']);
  });

  it('cuts off whom it is told to, and says nothing for others', async () => {
    make();
    await door.admit(runner('a'), 1_000);
    await door.shut(['nobody']);
    expect(told).toHaveLength(1);
    await door.shut(['a']);
    expect(told.at(-1)).toEqual([]);
  });

  it('tells a broker again that could not be told', async () => {
    make();
    await door.admit(runner('a'), 1_000);
    telling = () => Promise.reject(new Error('away'));
    await expect(door.shut(['a'])).rejects.toThrow('away');
    await door.look();
    telling = () => Promise.resolve();
    await door.look();
    expect(told).toEqual([['a'], []]);
    await door.look();
    expect(told).toHaveLength(2);
  });

  it('has a key once: who comes with it by another token takes its place', async () => {
    make();
    await door.admit(runner('a'), 1_000);
    await door.admit({ ...runner('b'), publicKey: 'key of a' }, 1_000);
    expect(told.at(-1)).toEqual(['b']);
  });

  it('cuts off in time who came with a key that then came by a token for which there was no room', async () => {
    make({ runnersMax: 2 });
    await door.admit(runner('a'), 1_000);
    await door.admit({ ...runner('b'), tenant: 'ada' }, 9_000);
    expect(await door.admit({ ...runner('c'), publicKey: 'key of a', tenant: 'ada' }, 9_000)).toBe(false);
    expect(door.list().map(({ id }) => id)).toEqual(['a', 'b']);
    now = 1_000;
    await door.look();
    expect(told.at(-1)).toEqual(['b']);
  });

  it('answers no second time before the broker has it', async () => {
    make();
    const { promise, resolve } = Promise.withResolvers<void>();
    telling = () => promise;
    const answered: string[] = [];
    const first = door.admit(runner('a'), 1_000).then(() => answered.push(`first, told ${told.length}`));
    const second = door.admit(runner('a'), 1_000).then(() => answered.push(`second, told ${told.length}`));
    resolve();
    await Promise.all([first, second]);
    expect(answered.toSorted()).toEqual(['first, told 1', 'second, told 1']);
  });

  it('lets in as many as it may', async () => {
    make({ runnersMax: 1 });
    expect(await door.admit(runner('a'), 1_000)).toBe(true);
    expect(await door.admit(runner('b'), 1_000)).toBe(false);
    await door.shut(['a']);
    expect(await door.admit(runner('b'), 1_000)).toBe(true);
  });
});

describe('the door of tenants', () => {
  const of = (tenant: string | undefined, id: string) => ({ ...runner(id), tenant });

  it('takes so many of each, and of all so many that the installation has room', async () => {
    make({ runnersMax: 60 });
    const admitted = async (tenant: string | undefined, count: number): Promise<number> => {
      const answers = Array.from({ length: count }, (_, index) => door.admit(of(tenant, `${tenant}${index}`), 1_000));
      return (await Promise.all(answers)).filter((isIn) => isIn).length;
    };
    expect(await admitted('ada', 30)).toBe(20);
    expect(await admitted('bob', 15)).toBe(15);
    expect(await admitted('eve', 15)).toBe(5);
    expect(await admitted(undefined, 30)).toBe(20);
    // Who is in goes on.
    expect(await door.admit(of('ada', 'ada0'), 5_000)).toBe(true);
    await door.shut(['ada1']);
    expect(await door.admit(of('ada', 'another'), 1_000)).toBe(true);
  });

  it('tells the broker whose each is', async () => {
    const wholes: unknown[] = [];
    make({ broker: { setRunners: async (runners) => void wholes.push(...runners.values()) } });
    await door.admit(of('ada', 'a'), 1_000);
    expect(wholes).toEqual([{ publicKey: 'key of a', tenant: 'ada' }]);
  });
});
