/** What is found of a push before its turn. */
import { describe, expect, it } from 'vitest';
import type { Decision } from '../src/model/decision.ts';
import type { Delivery } from '../src/model/delivery.ts';
import { DecidingAhead } from '../src/processing/deciding-ahead.ts';

const RUN = { kind: 'run', pipelineName: 'a run' } as Decision;
const ENDED = { kind: 'ended', pipelineName: 'an end' } as Decision;
const push = (id: number, more: Partial<Delivery> = {}): Delivery => ({ id: String(id), ...more }) as Delivery;
const pushes = (from: number, to: number): Delivery[] =>
  Array.from({ length: to - from + 1 }, (_, index) => push(from + index));

class World {
  now = 0;
  isFree = true;
  outcome: () => Promise<Decision> = () => Promise.resolve(RUN);
  readonly decided: string[] = [];
  readonly fetched: string[][] = [];
  onFetched: () => void = () => {};
  readonly ahead = new DecidingAhead({
    decide: ({ id }) => {
      this.decided.push(id);
      return this.outcome();
    },
    fetch: (next, behind) => {
      this.fetched.push([next, ...behind].map(({ id }) => id));
      return new Promise((resolve) => (this.onFetched = resolve));
    },
    isFree: () => this.isFree,
    now: () => this.now,
  });
}

describe('PUSHAHEAD-1: of the next push of a lane', () => {
  it('a run is found while the one before it is carried out, also where its turn comes sooner', async () => {
    const world = new World();
    const { promise, resolve } = Promise.withResolvers<Decision>();
    world.outcome = () => promise;
    world.ahead.begin('a', [push(1), push(2)]);
    const taken = world.ahead.take('a', push(1));
    resolve(RUN);
    expect(await taken).toBe(RUN);
    expect(world.decided).toEqual(['1']);
    expect(await world.ahead.take('a', push(1))).toBeNull();
  });

  it('nothing else is taken over: no other end, no failure, none of another delivery, none of a pull request', async () => {
    const world = new World();
    world.outcome = () => Promise.resolve(ENDED);
    world.ahead.begin('a', [push(1)]);
    expect(await world.ahead.take('a', push(1))).toBeNull();
    world.outcome = () => Promise.reject(new Error('the host is away'));
    world.ahead.begin('a', [push(1)]);
    expect(await world.ahead.take('a', push(1))).toBeNull();
    world.outcome = () => Promise.resolve(RUN);
    world.ahead.begin('a', [push(1)]);
    expect(await world.ahead.take('a', push(2))).toBeNull();
    world.ahead.begin('a', [push(3, { pullRequest: {} as Delivery['pullRequest'] })]);
    expect(world.decided).toEqual(['1', '1', '1']);
  });

  it('nothing is taken over that was found long ago', async () => {
    const world = new World();
    world.ahead.begin('a', [push(1)]);
    await Promise.resolve();
    world.now = 10_000;
    expect(await world.ahead.take('a', push(1))).toBeNull();
  });
});

describe('PUSHAHEAD-2: ahead of its turn', () => {
  it('nothing is begun while others want the time', () => {
    const world = new World();
    world.isFree = false;
    world.ahead.begin('a', pushes(1, 31));
    expect([world.decided, world.fetched]).toEqual([[], []]);
  });

  it('what one fetch brings along is fetched while as many are processed, one fetch at a time', async () => {
    const world = new World();
    for (let turn = 0; turn <= 32; turn += 1) {
      world.ahead.begin('a', pushes(turn + 1, turn + 31));
      world.onFetched();
      await new Promise(setImmediate);
    }
    expect(world.fetched.map(([first]) => first)).toEqual(['16', '32', '48']);
    expect(world.fetched[1]).toEqual(pushes(32, 47).map(({ id }) => id));
    const slow = new World();
    for (let turn = 0; turn <= 32; turn += 1) slow.ahead.begin('a', pushes(turn + 1, turn + 31));
    expect(slow.fetched).toHaveLength(1);
  });

  it('a few are fetched in their turn, with those that come along', () => {
    const world = new World();
    for (let turn = 0; turn < 8; turn += 1) world.ahead.begin('a', pushes(turn + 1, 23));
    expect(world.fetched).toEqual([pushes(16, 23).map(({ id }) => id)]);
    world.ahead.begin('b', pushes(1, 22));
    expect(world.fetched).toHaveLength(1);
  });
});

describe('PUSHAHEAD-3: of many lanes', () => {
  it('a few have one decided about ahead, and who has an old one makes room', async () => {
    const world = new World();
    for (let lane = 0; lane < 20; lane += 1) world.ahead.begin(String(lane), [push(lane)]);
    expect(world.decided).toHaveLength(8);
    await Promise.resolve();
    world.now = 10_000;
    world.ahead.begin('late', [push(100)]);
    expect(world.decided).toHaveLength(9);
    expect(await world.ahead.take('late', push(100))).toBe(RUN);
    expect(await world.ahead.take('1', push(1))).toBeNull();
  });

  it('no more have a fetch ahead than leave the line to others', () => {
    const world = new World();
    for (let lane = 0; lane < 1_000; lane += 1) world.ahead.begin(String(lane), pushes(1, 31));
    expect(world.fetched).toHaveLength(4);
  });
});
