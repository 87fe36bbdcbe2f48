import { expect, it } from 'vitest';
import { isServed, Pools } from '../src/dispatch/pools.ts';
import { ReadyClass } from '../src/dispatch/ready-class.ts';
import type { Session } from '../src/dispatch/sessions.ts';

const sessionWith = (runner: string, capacity: Session['capacity']): Session =>
  ({ runner, session: runner, labels: new Set(), slots: 1, leased: true, capacity }) as Partial<Session> as Session;
const wanting = (memoryBytes: number): ReadyClass =>
  new ReadyClass(`${memoryBytes}`, { labels: [], labelSet: `${memoryBytes}`, least: { memoryBytes } }, undefined);

it('of stages that ask for more than any runner has it takes one look at the runners to know it, until these change', () => {
  let looks = 0;
  let sessions = [sessionWith('small', { cpu: 1, memoryBytes: 10 }), sessionWith('large', { cpu: 1, memoryBytes: 20 })];
  const pools = new Pools({
    sessions: { fewestWith: () => ((looks += 1), sessions) },
    own: { has: (() => false) as never, sessionsOf: () => [] },
    isDrained: () => false,
  });
  const classes = Array.from({ length: 100 }, (_, index) => wanting(21 + index));
  const served = (): number => classes.filter((ready) => isServed(pools.of(ready))).length;
  expect([served(), looks]).toEqual([0, 1]);
  expect([...pools.of(wanting(20)).runners]).toEqual(['large']);
  // One that does not say what it has is taken to have enough.
  sessions = [...sessions, sessionWith('silent', undefined)];
  pools.changed();
  expect([...pools.of(wanting(2 ** 40)).runners]).toEqual(['silent']);
  sessions = [sessionWith('larger', { cpu: 1, memoryBytes: 30 })];
  pools.changed();
  expect(served()).toBe(10);
});
