/** Stages that ask for sizes: files may ask for any number of them, runners have few. */
import { expect, it } from 'vitest';
import { Dispatch, type ReadyStages } from '@penstock/scheduler/testing';
import { ReadyClass } from '../src/dispatch/ready-class.ts';
import { ReadyGroups } from '../src/dispatch/ready-groups.ts';
import type { Session } from '../src/dispatch/sessions.ts';

interface Stage {
  readonly key: string;
  readonly priority: number;
  readonly memoryBytes: number | undefined;
  readonly cpu: number | undefined;
  readonly labels: readonly string[];
  readonly since: number | undefined;
  waits: boolean;
}

class World {
  readonly dispatch: Dispatch;
  readonly stages: Stage[] = [];
  readonly granted: { readonly stage: Stage; readonly session: string }[] = [];
  /** Each time that somebody looks how much a stage asks for, whether it waits, or since when. */
  looks = 0;
  #credit = 0;

  constructor(keySlots?: number) {
    this.dispatch = new Dispatch({ keySlots });
  }

  offer(of: Partial<Stage>): Stage {
    const needs = { memoryBytes: undefined, cpu: undefined, labels: ['os=linux'] };
    const stage: Stage = { key: 'k', priority: 0, since: undefined, ...needs, ...of, waits: true };
    this.stages.push(stage);
    const { key, priority, memoryBytes, cpu, labels, since } = stage;
    const looked = (): void => void (this.looks += 1);
    const least = {
      get memoryBytes() {
        looked();
        return memoryBytes;
      },
      ...(cpu === undefined ? {} : { cpu }),
    };
    const ready: ReadyStages = {
      key,
      priority,
      labels,
      labelSet: `${labels.join(',')} ${memoryBytes} ${cpu}`,
      ...(memoryBytes === undefined && cpu === undefined ? {} : { least: least as NonNullable<ReadyStages['least']> }),
      count: 1,
      since: () => {
        looked();
        return since;
      },
      boundTo: () => undefined,
      waits: () => {
        looked();
        return stage.waits;
      },
      grant: (_, { session }) => {
        this.granted.push({ stage, session });
        stage.waits = false;
        return true;
      },
      rest: () => ready,
    };
    this.dispatch.offer(ready);
    return stage;
  }

  lease(session: string, memoryBytes: number, cpu = 8): void {
    const capacity = { cpu, memoryBytes };
    const labels = ['os=linux', 'gpu'];
    this.dispatch.sessionSeen({ runner: session, session, labels, slots: 4, attempts: [], capacity });
  }

  withdraw(session: string): void {
    this.dispatch.withdraw(
      session,
      Array.from({ length: this.#credit }, (_, index) => index + 1),
    );
  }

  /** The keys that get the slots. */
  credits(session: string, count = 1): string[] {
    const before = this.granted.length;
    const credits = Array.from({ length: count }, () => (this.#credit += 1));
    this.dispatch.addCredits(0, { runner: session, session, credits });
    while (this.dispatch.match(0));
    return this.granted.slice(before).map(({ stage }) => stage.key);
  }
}

type Capacity = Record<'memoryBytes' | 'cpu', number>;

/** One slot of a session goes to a stage that fits, of the highest priority, where there is one. */
function assertPick(world: World, session: string, has: Capacity): void {
  const fits = ({ waits, memoryBytes = 0, cpu = 0 }: Stage): boolean =>
    waits && memoryBytes <= has.memoryBytes && cpu <= has.cpu;
  const fitting = world.stages.filter(fits);
  const before = world.granted.length;
  world.credits(session);
  const picked = world.granted.slice(before);
  expect(picked).toHaveLength(Math.min(1, fitting.length));
  const highest = Math.max(...fitting.map(({ priority }) => priority));
  for (const { stage, session: to } of picked) {
    expect(to).toBe(session);
    expect(fitting).toContain(stage);
    expect(stage.priority).toBe(highest);
  }
  // Else it would have what comes next.
  if (picked.length === 0) world.withdraw(session);
}

it('GROUP-1: a key that asks for thousands of sizes is one turn: what another key gets takes as few looks as without it', () => {
  const world = new World();
  for (const [index, memoryBytes] of [100, 200, 300].entries()) world.lease(`r${index}`, memoryBytes);
  for (let size = 1; size <= 4_000; size += 1) world.offer({ key: 'many', memoryBytes: size / 10 });
  expect(world.credits('r0')).toEqual(['many']);
  world.looks = 0;
  for (const session of ['r0', 'r1', 'r2']) {
    world.offer({ key: 'other', memoryBytes: 7 });
    expect(world.credits(session, 2).toSorted()).toEqual(['many', 'other']);
  }
  expect(world.looks).toBeLessThan(400);
  world.dispatch.assertInvariants();
});

it('what fits a runner goes to it, in the order of the keys, whatever sizes there are and however runners change', () => {
  let state = 11;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const world = new World();
  const capacities = new Map<string, Capacity>();
  for (let step = 0; step < 3_000; step += 1) {
    const session = `r${random(5)}`;
    const kind = random(10);
    if (kind < 5) {
      const sized = random(4) > 0;
      world.offer({
        key: `k${random(4)}`,
        priority: random(2),
        ...(sized ? { memoryBytes: random(60), cpu: random(3) === 0 ? random(6) : undefined } : {}),
      });
    } else if (kind === 5) {
      const waiting = world.stages.filter(({ waits }) => waits);
      const cancelled = waiting[random(waiting.length)];
      if (cancelled !== undefined) cancelled.waits = false;
    } else if (kind === 6 || !capacities.has(session)) {
      const has = { memoryBytes: 10 * random(5), cpu: random(5) };
      capacities.set(session, has);
      world.lease(session, has.memoryBytes, has.cpu);
    } else if (kind === 7) world.dispatch.forgetIdle(0);
    else {
      assertPick(world, session, capacities.get(session) ?? { memoryBytes: 0, cpu: 0 });
    }
    world.dispatch.assertInvariants();
  }
  expect(world.granted.length).toBeGreaterThan(200);
});

it('a key that has all its slots stands back with all its sizes, and comes again when one is free', () => {
  const world = new World(1);
  world.lease('r', 100);
  for (let size = 1; size <= 20; size += 1) world.offer({ key: 'many', memoryBytes: size });
  world.dispatch.keySlots.add('many', 'r', 1);
  for (let count = 0; count < 3; count += 1) world.offer({ key: 'other', memoryBytes: 50 });
  expect(world.credits('r', 2)).toEqual(['other', 'other']);
  world.dispatch.keySlots.add('many', 'r', -1);
  // It has had less.
  expect(world.credits('r', 2)).toEqual(['many', 'many']);
  expect(world.credits('r', 19)).toHaveLength(19);
  world.dispatch.assertInvariants();
});

it('GROUP-2: keys whose stages are over have no turns, though another waits for the same and no runner has looked', () => {
  const world = new World();
  world.lease('r', 100);
  world.offer({ key: 'stays', memoryBytes: 1 });
  for (let key = 0; key < 50; key += 1) world.offer({ key: `k${key}`, memoryBytes: 2 }).waits = false;
  const waits = world.offer({ key: 'k7', memoryBytes: 3, priority: 1 });
  world.dispatch.forgetIdle(0);
  world.dispatch.assertInvariants();
  // Who is left has kept its place, and who comes back has one.
  world.offer({ key: 'k8', memoryBytes: 2 });
  expect(world.credits('r')).toEqual([waits.key]);
  expect(world.credits('r', 3).toSorted()).toEqual(['k8', 'stays']);
  world.dispatch.assertInvariants();
});

it('GROUP-2: nor do those that stood apart, full', () => {
  const world = new World(1);
  world.lease('r', 100);
  const full = (key: string): Stage => world.offer({ key, memoryBytes: 9, priority: 1 });
  const over = Array.from({ length: 5 }, (_, at) => full(`over ${at}`));
  const stays = full('stays');
  for (const { key } of [...over, stays]) world.dispatch.keySlots.add(key, 'r', 1);
  world.offer({ key: 'other', memoryBytes: 50 });
  expect(world.credits('r')).toEqual(['other']);
  for (const stage of over) stage.waits = false;
  world.dispatch.forgetIdle(0);
  world.dispatch.assertInvariants();
  expect(world.credits('r')).toEqual([stays.key]);
});

it('IDLEWALK-1: of very many classes some are looked at a second, and what is over is let go of all the same', () => {
  const world = new World();
  for (let size = 1; size <= 30_000; size += 1) world.offer({ key: `k${size % 7}`, memoryBytes: size });
  const sets = (): number => [...world.dispatch.waitingSets()].length;
  const all = sets();
  world.looks = 0;
  world.dispatch.forgetIdle(0);
  expect(world.looks).toBeLessThanOrEqual(5_000);
  for (const stage of world.stages.slice(100)) stage.waits = false;
  for (let calls = 0; calls < 30; calls += 1) world.dispatch.forgetIdle(0);
  expect(world.dispatch.waiting).toBe(100);
  expect(sets()).toBeLessThan(all);
  world.dispatch.assertInvariants();
});

it('DISPATCH-1: of one key what has waited for longest goes first, whatever it asks for, though more of another size or label comes all the time', () => {
  const others: Partial<Stage>[] = [{ memoryBytes: 2 }, { memoryBytes: 70 }, { labels: ['gpu'] }, { labels: [] }];
  for (const other of others) {
    const world = new World();
    world.lease('small', 50);
    world.lease('r', 100);
    world.offer({ memoryBytes: 1, since: 1 });
    const waiting = world.offer({ ...other, since: 3 });
    world.offer({ memoryBytes: 1, since: 2 });
    for (let since = 4; since < 8; since += 1) {
      world.offer({ memoryBytes: 1, since });
      world.credits('r');
    }
    expect(world.granted.map(({ stage }) => stage.since)).toEqual([1, 2, 3, 4]);
    expect(waiting.waits).toBe(false);
    world.dispatch.assertInvariants();
  }
});

it('a runner of a new size has what it has room for looked at again, and what nobody has room for once', () => {
  const world = new World();
  world.lease('r', 100);
  const credits = (session: string): string[] => world.credits(session);
  for (let size = 1; size <= 2_000; size += 1) world.offer({ memoryBytes: 200 + size });
  expect(credits('r')).toEqual([]);
  world.looks = 0;
  for (let runner = 0; runner < 10; runner += 1) {
    world.lease(`s${runner}`, 101 + runner);
    expect(credits(`s${runner}`)).toEqual([]);
  }
  // Each size is compared with each that is new; to stand in another group since when it waits is asked as well.
  expect(world.looks).toBeLessThan(21_000);
  world.dispatch.assertInvariants();
});

it('sizes that came and went with their runners are forgotten, and those of the runners that are left told apart', () => {
  const groups = new ReadyGroups();
  const labels = ['os=linux'];
  const classes = Array.from({ length: 300 }, (_, size) => {
    const least = { memoryBytes: size };
    return new ReadyClass(`c${size}`, { labels, least } as unknown as ReadyStages, undefined);
  });
  for (const ready of classes) groups.of(ready);
  const sessionOf = (memoryBytes: number): Session =>
    ({
      runner: 'r',
      labels: new Set(labels),
      tenant: undefined,
      capacity: { cpu: 8, memoryBytes },
    }) as unknown as Session;
  for (let memoryBytes = 1; memoryBytes <= 200; memoryBytes += 1) {
    const session = sessionOf(memoryBytes);
    groups.seen(session);
    groups.renew([session]);
  }
  // Twice as many as there are runners, and 64; on both sides of each are others.
  expect([...groups.near(sessionOf(200))].length).toBeLessThan(70);
  const [fitting, tooLarge] = [classes[200], classes[201]];
  if (fitting === undefined || tooLarge === undefined) throw new Error('too few classes');
  expect(groups.of(fitting)).not.toBe(groups.of(tooLarge));
});

it('a runner gets what it has room for, however many sizes came and went before', () => {
  const world = new World();
  for (let size = 1; size <= 300; size += 1) world.offer({ key: `k${size % 3}`, memoryBytes: size });
  for (let round = 1; round <= 200; round += 1) {
    world.lease('r', round);
    expect(world.credits('r')).toHaveLength(1);
    const [last] = world.granted.slice(-1);
    expect(last?.stage.memoryBytes).toBeLessThanOrEqual(round);
    world.dispatch.assertInvariants();
  }
});
