import { describe, expect, it } from 'vitest';
import type { Demand } from '@penstock/bus';
import { Dispatch } from '@penstock/scheduler/testing';
import { DemandAnnouncer, DemandParts } from '../src/dispatch/demand.ts';

const MESSAGE_BYTES_MAX = 128 * 1024;

const sets = (count: number, labels: number): { labels: string[]; count: number }[] =>
  Array.from({ length: count }, (_, set) => ({
    labels: Array.from({ length: labels }, (_, label) => `label-${set}-${label}-${'x'.repeat(20)}`),
    count: 1,
  }));

describe('the demand that a scheduler announces', () => {
  it('is one message while it is small, and says once that nothing waits any more', () => {
    const announcer = new DemandAnnouncer();
    const waiting = sets(3, 2);
    expect(announcer.take([waiting, []])).toEqual([waiting]);
    expect(announcer.take([[], []])).toEqual([[]]);
    expect(announcer.take([[], []])).toEqual([]);
  });

  it('never has a message that is larger than its bound, nor more than four at a tick, and every label set has its turn', () => {
    const announcer = new DemandAnnouncer();
    const waiting = sets(2_000, 20);
    const heard = new Set<string>();
    let ticks = 0;
    for (; heard.size < waiting.length && ticks < 10; ticks++) {
      const messages = announcer.take([waiting, []]);
      expect(messages.length).toBeLessThanOrEqual(4);
      for (const message of messages) {
        expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(MESSAGE_BYTES_MAX + 2);
        for (const { labels } of message) heard.add(labels.join());
      }
    }
    expect(heard.size).toBe(waiting.length);
    expect(ticks).toBeGreaterThan(1);
  });

  it('leaves out a set of labels that no message carries, and announces the others', () => {
    const huge = { labels: ['y'.repeat(200_000)], count: 1 };
    const [small] = sets(1, 1);
    expect(new DemandAnnouncer().take([[huge, ...(small === undefined ? [] : [small])], []])).toEqual([[small]]);
  });

  it('names what some runner could take at every tick, whatever waits that none could, of which each has its turn', () => {
    const announcer = new DemandAnnouncer();
    const served = sets(50, 3);
    const others = sets(20_000, 3).map((each) => ({ ...each, labels: ['nobody', ...each.labels] }));
    const heard = new Set<string>();
    for (let tick = 0; tick < 20; tick += 1) {
      const messages = announcer.take([served, others]);
      expect(messages).toHaveLength(4);
      const first = messages[0] ?? [];
      expect(first.slice(0, 50)).toEqual(served);
      for (const { labels } of messages.flat()) if (labels[0] === 'nobody') heard.add(labels.join());
    }
    expect(heard.size).toBe(others.length);
    // They keep a message of each tick, however much could be taken.
    const more = announcer.take([sets(20_000, 3), others]).flat();
    expect(more.some(({ labels }) => labels[0] === 'nobody')).toBe(true);
  });

  it('is one message where little waits, of both kinds', () => {
    const [one = [], two = []] = [sets(1, 1), sets(2, 1)];
    expect(new DemandAnnouncer().take([one, two])).toEqual([[...one, ...two]]);
  });
});

describe('what another scheduler announces', () => {
  const part = (label: string, more?: true, scheduler = 'other'): Demand => ({
    scheduler,
    waiting: [
      { labels: [label], count: 2, below: 1 },
      { labels: [`full ${label}`], count: 2, below: 0 },
    ],
    ...(more === undefined ? {} : { more }),
  });

  it('in several messages is one announcement, whatever others say meanwhile', () => {
    const parts = new DemandParts();
    expect(parts.whole(part('a', true))).toBeUndefined();
    expect(parts.whole(part('x', undefined, 'third'))).toEqual([['x']]);
    expect(parts.whole(part('b'))).toEqual([['a'], ['b']]);
    expect(parts.whole(part('c'))).toEqual([['c']]);
    expect(parts.whole({ scheduler: 'other', waiting: [] })).toEqual([]);
  });

  it('without an end, of one scheduler or of hundreds, takes a bounded room', () => {
    const parts = new DemandParts();
    const answers = Array.from({ length: 30 }, () => parts.whole(part('a', true)));
    expect(answers.map((answer) => answer?.length ?? 0)).toEqual(
      Array.from({ length: 30 }, (_, index) => (index % 8 === 7 ? 8 : 0)),
    );
    parts.whole(part('early', true, 'early'));
    for (let index = 0; index < 300; index += 1) parts.whole(part('a', true, `gone ${index}`));
    expect(parts.whole(part('b', undefined, 'early'))).toEqual([['b']]);
  });
});

describe('the sets of labels that are announced', () => {
  const world = (junk: number): Dispatch => {
    const dispatch = new Dispatch();
    const offer = (labels: readonly string[], boundTo?: string): void =>
      dispatch.offer({
        ...{ key: 'k', priority: 0, labels, labelSet: labels.join(), least: undefined, count: 1 },
        ...{ since: () => undefined, boundTo: () => boundTo, waits: () => true, grant: () => true },
        rest() {
          return this;
        },
      });
    for (let index = 0; index < junk; index += 1) offer(['linux', `junk ${index}`]);
    for (const labels of [['linux'], ['linux', 'gpu'], []]) offer(labels);
    offer(['linux', 'bound'], 'r0');
    for (let runner = 0; runner < 20; runner += 1)
      dispatch.sessionSeen({
        ...{ runner: `r${runner}`, session: `s${runner}`, slots: 1, attempts: [] },
        labels: ['linux', ...(runner === 19 ? ['gpu'] : []), ...(runner === 0 ? ['bound'] : [])],
      });
    return dispatch;
  };
  const names = (sets: readonly { readonly labels: readonly string[] }[]): string[] =>
    sets.map(({ labels }) => labels.join()).toSorted();

  it.each([5, 30_000])(
    'DEMANDSETS-1: are those that some runner could take, and %d that none could apart from them',
    (junk) => {
      const dispatch = world(junk);
      for (let look = 0; look < 3; look += 1)
        expect(names(dispatch.demand()[0])).toEqual(['', 'linux', 'linux,bound', 'linux,gpu']);
    },
  );

  it('DEMANDSETS-2: of very many some are named at a time, and each in its turn', () => {
    const dispatch = world(30_000);
    const heard = new Set<string>();
    for (let look = 0; look < 40; look += 1) {
      const [, others] = dispatch.demand();
      expect(others.length).toBeLessThanOrEqual(1_100);
      for (const name of names(others)) heard.add(name);
    }
    expect(heard.size).toBe(30_000);
  });

  it('DEMANDSETS-3: are named in every answer, however many stand near all sessions and ask for what none has', () => {
    const dispatch = new Dispatch();
    const offer = (labels: readonly string[], memoryBytes?: number): void =>
      dispatch.offer({
        ...{ key: 'k', priority: 0, labels, labelSet: `${labels.join()} ${memoryBytes}`, count: 1 },
        least: memoryBytes === undefined ? undefined : { memoryBytes },
        ...{ since: () => undefined, boundTo: () => undefined, waits: () => true, grant: () => true },
        rest() {
          return this;
        },
      });
    for (let runner = 0; runner < 20; runner += 1)
      dispatch.sessionSeen({
        ...{ runner: `r${runner}`, session: `s${runner}`, slots: 1, attempts: [] },
        ...{ labels: runner === 19 ? ['gpu'] : [], capacity: { cpu: 4, memoryBytes: 2 ** 33 } },
      });
    for (let index = 0; index < 15_000; index += 1) offer([], 2 ** 40 + index);
    dispatch.demand();
    offer(['gpu']);
    dispatch.demand();
    for (let look = 0; look < 10; look += 1) {
      const [served, others] = dispatch.demand();
      expect(names(served)).toEqual(['gpu']);
      expect(others.length).toBeLessThanOrEqual(11_000);
    }
  });

  it('are looked at from session to session where all of them are too many for one answer', () => {
    const dispatch = new Dispatch();
    const wanted = Array.from({ length: 12_000 }, (_, index) => [`only ${index}`]);
    for (const labels of wanted)
      dispatch.offer({
        ...{ key: 'k', priority: 0, labels, labelSet: labels.join(), least: undefined, count: 1 },
        ...{ since: () => undefined, boundTo: () => undefined, waits: () => true, grant: () => true },
        rest() {
          return this;
        },
      });
    for (const [index, labels] of wanted.entries())
      dispatch.sessionSeen({ runner: `r${index}`, session: `s${index}`, labels, slots: 1, attempts: [] });
    const heard = new Set<string>();
    for (let look = 0; look < 3; look += 1) for (const name of names(dispatch.demand()[0])) heard.add(name);
    expect(heard.size).toBe(12_000);
  });
});
