/** What is told of the queues of the dispatch, and what holds in them, of classes that the test has made. */
import { describe, expect, it } from 'vitest';
import { demandOfTenants } from '../src/dispatch/demand-sets.ts';
import { DispatchInvariants } from '../src/dispatch/dispatch-invariants.ts';
import { OwnLanes } from '../src/dispatch/own-lanes.ts';
import { classId } from '../src/dispatch/place.ts';
import { isServed, Pools } from '../src/dispatch/pools.ts';
import { lanesOf, ReadyClass } from '../src/dispatch/ready-class.ts';
import type { ReadyStages } from '../src/dispatch/ready-stage.ts';
import type { Session } from '../src/dispatch/sessions.ts';
import { waitingLanes } from '../src/dispatch/waiting-sets.ts';

const stagesOf = (key: string, labels: readonly string[], more: Partial<ReadyStages> = {}): ReadyStages => ({
  ...{ key, tenant: key, priority: 0, labels, labelSet: JSON.stringify([labels, more.least]), least: undefined },
  ...{ count: 1, since: () => undefined, boundTo: () => undefined, waits: () => true, grant: () => true },
  rest(from) {
    return { ...this, count: this.count - from };
  },
  ...more,
});

/** The classes that these stand in. */
function queued(...all: readonly ReadyStages[]): Map<string, ReadyClass> {
  const classes = new Map<string, ReadyClass>();
  for (const stages of all) {
    const id = classId(stages, stages.boundTo());
    const ready = classes.get(id) ?? new ReadyClass(id, stages, stages.boundTo());
    classes.set(id, ready);
    (ready.laneOf(stages) ?? ready.newLane(stages, 0)).push(stages);
  }
  return classes;
}

const sessionWith = (labels: readonly string[], tenant?: string): Session =>
  ({ runner: labels.join(), tenant, labels: new Set(labels), slots: 1, leased: true }) as Partial<Session> as Session;

/** A tenant that has a runner of its own. */
function ownOf(tenant: string, classes: ReadonlyMap<string, ReadyClass>): OwnLanes {
  const own = new OwnLanes();
  own.join(sessionWith([], tenant), () => lanesOf(classes));
  return own;
}

describe('what is told of what waits', () => {
  it('of each key, what it waits for and since when, what is paused among it, and nothing that is all taken', () => {
    const classes = queued(
      stagesOf('ada', ['linux'], { count: 2, since: () => 7 }),
      stagesOf('bob', ['linux']),
      stagesOf('eve', ['gpu']),
    );
    for (const { lane } of lanesOf(classes)) if (lane.key === 'bob') lane.take();
    expect([...waitingLanes(classes, (_ready, { key }) => key === 'eve')]).toEqual([
      { labels: ['linux'], key: 'ada', count: 2, since: 7, isPaused: false },
      { labels: ['gpu'], key: 'eve', count: 1, since: undefined, isPaused: true },
    ]);
  });

  it('of a tenant with runners of its own, what of its stages waits per set of labels, without what is paused', () => {
    const classes = queued(
      stagesOf('ada', ['linux'], { count: 2 }),
      stagesOf('ada', ['linux'], { priority: 1 }),
      stagesOf('ada', ['gpu'], { least: { cpu: 4 } }),
      stagesOf('ada', ['mac']),
      stagesOf('bob', ['linux']),
    );
    const isPaused = ({ labels }: ReadyClass): boolean => labels.includes('mac');
    expect([...demandOfTenants(ownOf('ada', classes), isPaused)]).toEqual([
      [
        'ada',
        [
          { labels: ['linux'], count: 3 },
          { labels: ['gpu'], least: { cpu: 4 }, count: 1 },
        ],
      ],
    ]);
  });

  it('of a tenant with runners of its own whose files ask for very many sets of labels, some in each answer, and all of them in turn', () => {
    const SETS = 25_000;
    const classes = queued(...Array.from({ length: SETS }, (_, index) => stagesOf('ada', [`l${index}`])));
    const own = ownOf('ada', classes);
    const named = new Set<string | undefined>();
    for (let answer = 0; answer < 3; answer += 1)
      for (const [, waiting] of demandOfTenants(own, () => false)) {
        expect(waiting.length).toBeLessThan(SETS / 2);
        for (const { labels } of waiting) named.add(labels[0]);
      }
    expect(named.size).toBe(SETS);
  });

  it('of what no runner could take, all but what waits for its one runner or has a runner of its tenant', () => {
    const own = [sessionWith(['gpu'], 'ada')];
    const pools = new Pools({
      sessions: { fewestWith: () => [sessionWith(['linux'])] },
      own: { has: ((tenant?: string) => tenant === 'ada') as never, sessionsOf: () => own },
      isDrained: () => false,
    });
    const classes = queued(
      stagesOf('ada', ['linux']),
      stagesOf('ada', ['gpu']),
      stagesOf('bob', ['gpu'], { count: 3, least: { cpu: 2 } }),
      stagesOf('eve', ['mac'], { boundTo: () => 'gone' }),
    );
    const [linux] = classes.values();
    expect(linux && isServed(pools.of(linux))).toBe(true);
    expect([...pools.unserved(classes.values())]).toEqual([{ labels: ['gpu'], least: { cpu: 2 }, count: 3 }]);
  });

  it('what is left of a lane begins behind what was taken of its first stages', () => {
    const [{ lane } = expect.unreachable()] = lanesOf(
      queued(stagesOf('ada', [], { count: 3 }), stagesOf('ada', [], { count: 2 })),
    );
    lane.take();
    expect([...lane.left()].map(({ count }) => count)).toEqual([2, 2]);
  });
});

describe('what holds in the queues', () => {
  const invariantsOf = (classes: Map<string, ReadyClass>, waiting: number, pass = 0, onGroups = () => {}) =>
    new DispatchInvariants({
      classes,
      sessions: { values: () => [], size: 0 },
      groups: { assertInvariants: onGroups },
      turns: { passOf: () => pass },
      waiting: () => waiting,
    });

  it('DISPATCH-4: the stages that stand there are those that are counted', () => {
    const classes = queued(stagesOf('ada', [], { count: 2 }), stagesOf('bob', []));
    expect(() => invariantsOf(classes, 3).assertAll()).not.toThrow();
    expect(() => invariantsOf(classes, 2).assertAll()).toThrow('DISPATCH-4');
  });

  it('DISPATCH-1: no lane stands behind the turn of its key', () => {
    expect(() => invariantsOf(queued(stagesOf('ada', [])), 1, -1).assertAll()).toThrow('DISPATCH-1');
  });

  it.each<[string, Partial<ReadyStages>]>([
    ['key', { key: 'eve' }],
    ['tenant', { tenant: 'eve' }],
    ['priority', { priority: 1 }],
    ['set of labels', { labelSet: 'gpu' }],
  ])('DISPATCH-2: no stage waits where those of another %s do', (_what, other) => {
    const stages = stagesOf('ada', []);
    const invariants = invariantsOf(queued(stages), 1);
    expect(() => invariants.assertAll()).not.toThrow();
    Object.assign(stages, other);
    expect(() => invariants.assertAll()).toThrow('DISPATCH-2');
  });

  it('a sample of few is a look at all; samples of many look at some each, and come to the last one', () => {
    const groups: string[] = [];
    const few = invariantsOf(queued(stagesOf('ada', [])), 1, 0, () => groups.push('looked at'));
    few.assertSample();
    expect(groups).toHaveLength(1);

    const all = Array.from({ length: 6_000 }, (_, index) => stagesOf(`k${index}`, []));
    const many = invariantsOf(queued(...all), all.length, 0, () => groups.push('looked at'));
    Object.assign(all.at(-1) ?? {}, { key: 'eve' });
    const looks = [1, 2, 3].map(() => {
      try {
        many.assertSample();
        return 'sound';
      } catch (error) {
        return (error as Error).message.includes('DISPATCH-2') ? 'broken' : 'else';
      }
    });
    expect(looks.slice(0, looks.indexOf('broken') + 1)).toEqual(['sound', 'sound', 'broken']);
    expect(groups).toHaveLength(1);
  });
});
