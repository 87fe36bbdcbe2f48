/** P37: what runners of the fleet offer is cut to their entry, and counts for nothing without one. */
import { describe, expect, it } from 'vitest';
import { Dispatch } from '@penstock/scheduler/testing';

const RUNNER = `fr_${'1'.repeat(32)}`;

class World {
  readonly dispatch = new Dispatch();
  readonly granted: string[] = [];

  /** A stage that waits for these labels. */
  offer(stage: string, ...labels: string[]): void {
    let waits = true;
    this.dispatch.offer({
      key: 'k',
      priority: 0,
      labels,
      labelSet: labels.join(','),
      count: 1,
      since: () => undefined,
      boundTo: () => undefined,
      waits: () => waits,
      grant: () => {
        this.granted.push(stage);
        waits = false;
        return true;
      },
      rest() {
        return this;
      },
    });
  }

  seen(labels: readonly string[], runner = RUNNER): void {
    this.dispatch.sessionSeen({ runner, session: `s-${runner}`, labels, slots: 4, attempts: [] });
  }

  credit(labels: readonly string[] | undefined, credits: readonly number[], runner = RUNNER): boolean {
    const taken = this.dispatch.addCredits(0, { runner, session: `s-${runner}`, labels, credits });
    this.dispatch.match(0);
    return taken;
  }

  entry(value: { labels: string[]; untrusted: boolean; revoked?: true } | null): void {
    this.dispatch.fleetChanged(
      value === null ? { kind: 'expired', key: RUNNER, revision: 0 } : { kind: 'put', key: RUNNER, value, revision: 1 },
    );
  }
}

const OFFERED = ['linux', 'x64', 'executor=process', 'takes=image', 'takes=untrusted', 'gpu', 'deploy'];

describe('a runner of the fleet', () => {
  it('is granted nothing without an entry, also not by a credit that comes with a result', () => {
    const world = new World();
    world.offer('plain');
    world.seen(OFFERED);
    expect(world.credit(OFFERED, [1])).toBe(false);
    expect(world.credit(undefined, [2])).toBe(false);
    expect(world.granted).toEqual([]);
  });

  it('is granted what its machine and its entry allow, whatever it offers', () => {
    const world = new World();
    world.entry({ labels: ['gpu'], untrusted: false });
    for (const label of [...OFFERED, 'takes=untrusted']) world.offer(label, label);
    world.seen(OFFERED);
    expect(world.credit(OFFERED, [1, 2, 3, 4, 5, 6, 7, 8])).toBe(true);
    expect(world.granted.toSorted()).toEqual(['executor=process', 'gpu', 'linux', 'takes=image', 'x64']);
  });

  it('takes stages of untrusted runs where its token says so', () => {
    const world = new World();
    world.entry({ labels: [], untrusted: true });
    world.offer('fork', 'takes=untrusted');
    world.seen(OFFERED);
    world.credit(OFFERED, [1]);
    expect(world.granted).toEqual(['fork']);
  });

  it.each([
    ['is revoked', { labels: ['gpu'], untrusted: false, revoked: true as const }],
    ['is over', null],
  ])('has its open offers closed when its entry %s', (_, entry) => {
    const world = new World();
    world.entry({ labels: ['gpu'], untrusted: false });
    world.seen(OFFERED);
    world.credit(OFFERED, [1, 2]);
    world.entry(entry);
    world.offer('late');
    world.seen(OFFERED);
    world.dispatch.match(0);
    expect(world.credit(OFFERED, [3])).toBe(false);
    expect(world.granted).toEqual([]);
  });

  it('is told apart by its name: a configured runner needs no entry', () => {
    const world = new World();
    world.offer('plain');
    world.seen(OFFERED, 'r1');
    expect(world.credit(OFFERED, [1], 'r1')).toBe(true);
    expect(world.granted).toEqual(['plain']);
  });
});
