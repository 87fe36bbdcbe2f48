/** What is paused or drained (P35): the picture of it, and what the dispatch makes of that. */
import { controlName, type Control, type ControlTarget } from '@penstock/bus';
import { Controls, Dispatch } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';

class World {
  boot = 1_000_000;
  wall = 1_700_000_000_000;
  heardAt = this.boot;
  readonly controls = new Controls({ bootNow: () => this.boot, wallNow: () => this.wall });
  readonly dispatch = new Dispatch({ controls: this.controls, keySlots: 100 });
  readonly granted: string[] = [];
  readonly #bound = new Map<string, string>();

  async begin(...paused: readonly ControlTarget[]): Promise<void> {
    for (const target of paused) this.set(target);
    await this.follow(Promise.resolve());
  }

  /** The watch is heard from here on, and has told all when `ready` resolves. */
  async follow(ready: Promise<void>): Promise<void> {
    const heardAt = (): number => this.heardAt;
    await this.controls.follow({
      ready,
      stop: () => {},
      get heardAt() {
        return heardAt();
      },
    });
  }

  set(target: ControlTarget, more: Partial<Control> = {}): void {
    const value: Control = { target, since: this.wall, by: 'admin', ...more };
    this.controls.take({ kind: 'put', key: controlName(target), value, revision: 1 });
    this.dispatch.controlsChanged();
  }

  expire(target: ControlTarget): void {
    this.controls.take({ kind: 'expired', key: controlName(target), revision: 2 });
    this.dispatch.controlsChanged();
  }

  bind(stage: string, runner: string): void {
    this.#bound.set(stage, runner);
  }

  offer(
    stage: string,
    { key = 'k', labels = [] }: { readonly key?: string; readonly labels?: readonly string[] } = {},
  ): void {
    let waits = true;
    this.dispatch.offer({
      key,
      priority: 0,
      labels,
      labelSet: labels.join(','),
      count: 1,
      since: () => this.wall,
      boundTo: () => this.#bound.get(stage),
      waits: () => waits,
      grant: (_, { runner }) => {
        waits = false;
        this.granted.push(`${stage}@${runner}`);
        return true;
      },
      rest() {
        return this;
      },
    });
  }

  runner(runner: string, credits: readonly number[], labels: readonly string[] = []): void {
    this.dispatch.sessionSeen({ runner, session: runner, labels, slots: 4, attempts: [] });
    this.dispatch.addCredits(this.boot, { runner, session: runner, credits });
  }

  /** The runner says that it leaves. */
  leaves(runner: string, credits: readonly number[] = []): void {
    this.dispatch.addCredits(this.boot, { runner, session: runner, credits, leaving: true });
  }

  match(): string[] {
    this.dispatch.match(this.boot);
    this.dispatch.assertInvariants();
    return this.granted.splice(0);
  }
}

const all: ControlTarget = { kind: 'all' };
const ofKey = (key: string): ControlTarget => ({ kind: 'key', key });
const ofLabel = (label: string): ControlTarget => ({ kind: 'label', label });
const drained = (runner: string): ControlTarget => ({ kind: 'runner', runner });

describe('pauses', () => {
  it('nothing is granted before all of them are read, nor 4 s after their watch was last heard (CONTROLS-1)', async () => {
    const world = new World();
    world.runner('r', [1, 2, 3]);
    world.offer('a');
    expect(world.match()).toEqual([]);
    const read = Promise.withResolvers<void>();
    const following = world.follow(read.promise);
    expect(world.match()).toEqual([]);
    read.resolve();
    await following;
    expect(world.match()).toEqual(['a@r']);
    world.offer('b');
    world.boot += 4_000;
    expect(world.controls.areKnown).toBe(false);
    expect(world.match()).toEqual([]);
    world.heardAt = world.boot;
    expect(world.match()).toEqual(['b@r']);
  });

  it('of everything: what waits stays, and goes when it is taken back', async () => {
    const world = new World();
    await world.begin(all);
    world.runner('r', [1, 2]);
    world.offer('a');
    world.offer('b');
    expect(world.match()).toEqual([]);
    world.set(all, { resumedAt: world.wall });
    expect(world.match()).toEqual(['a@r', 'b@r']);
  });

  it('of a key, or of what asks for a label: others go on, past it', async () => {
    const world = new World();
    await world.begin(ofKey('slow'), ofLabel('gpu'));
    world.runner('r', [1, 2, 3, 4, 5], ['gpu']);
    world.offer('a', { key: 'slow' });
    world.offer('b', { labels: ['gpu'] });
    world.offer('c');
    expect(world.match()).toEqual(['c@r']);
    expect(world.dispatch.waiting).toBe(2);
    expect(world.dispatch.demand().flat()).toEqual([]);
    expect([...world.dispatch.waitingLanes()].map(({ key, isPaused }) => [key, isPaused])).toEqual([
      ['slow', true],
      ['k', true],
    ]);
    expect([...world.dispatch.waitingSets()]).toEqual([]);
    // What is paused is not let go of, however long nobody looks at it.
    world.dispatch.forgetIdle(world.boot);
    world.expire(ofKey('slow'));
    expect(world.match()).toEqual(['a@r']);
    world.set(ofLabel('gpu'), { resumedAt: world.wall });
    expect(world.match()).toEqual(['b@r']);
    expect(world.dispatch.waiting).toBe(0);
  });
});

describe('a drained runner', () => {
  it('gets nothing but what is bound to it; others get the rest (CONTROLS-3)', async () => {
    const world = new World();
    await world.begin(drained('r'));
    world.runner('r', [1, 2]);
    world.bind('a', 'r');
    world.offer('a');
    world.offer('b');
    expect(world.match()).toEqual(['a@r']);
    world.runner('other', [1]);
    expect(world.match()).toEqual(['b@other']);
  });

  it('is given what was queued before its run had begun there', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', []);
    world.offer('a');
    world.offer('b');
    world.bind('b', 'r');
    world.set(drained('r'));
    world.runner('r', [1, 2]);
    expect(world.match()).toEqual(['b@r']);
    world.set(drained('r'), { resumedAt: world.wall });
    expect(world.match()).toEqual(['a@r']);
    expect(world.dispatch.waiting).toBe(0);
  });

  it('has what is bound to it counted once, however often it is drained', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', []);
    for (const stage of ['a', 'b', 'c']) world.offer(stage);
    world.bind('b', 'r');
    for (let times = 0; times < 3; times += 1) {
      world.set(drained('r'));
      world.set(drained('r'), { resumedAt: world.wall });
    }
    expect(world.match()).toEqual([]);
    expect(world.dispatch.demand().flat()).toMatchObject([{ count: 3 }]);
    expect(world.dispatch.waiting).toBe(3);
    world.runner('r', [1, 2, 3]);
    expect(world.match().toSorted()).toEqual(['a@r', 'b@r', 'c@r']);
    expect(world.dispatch.waiting).toBe(0);
  });

  it('is no runner that is missing', async () => {
    const world = new World();
    await world.begin(drained('r'));
    world.runner('r', [1]);
    world.offer('a');
    expect(world.match()).toEqual([]);
    expect(world.dispatch.unserved().toArray()).toEqual([]);
    world.dispatch.sessionGone('r');
    expect(world.dispatch.unserved().toArray()).toHaveLength(1);
  });
});

describe('a runner that leaves (DISPATCH-6)', () => {
  it('gets nothing but what is bound to it, also from what it had offered before; others get the rest', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', [1, 2]);
    world.leaves('r', [3]);
    world.offer('a');
    expect(world.match()).toEqual([]);
    world.bind('b', 'r');
    world.offer('b');
    expect(world.match()).toEqual(['b@r']);
    world.runner('other', [1]);
    expect(world.match()).toEqual(['a@other']);
  });

  it('counts no more among those that could take what waits', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', [1]);
    world.offer('a');
    expect([...world.dispatch.unserved()]).toEqual([]);
    world.leaves('r');
    expect([...world.dispatch.unserved()]).toMatchObject([{ count: 1 }]);
  });

  it('is given what was queued before its run had begun there, once', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', []);
    for (const stage of ['a', 'b']) world.offer(stage);
    world.bind('b', 'r');
    world.leaves('r');
    world.leaves('r', [1, 2]);
    expect(world.match()).toEqual(['b@r']);
    expect(world.dispatch.waiting).toBe(1);
  });

  it('gets everything again once it has begun another session', async () => {
    const world = new World();
    await world.begin();
    world.runner('r', [1]);
    world.leaves('r');
    world.offer('a');
    expect(world.match()).toEqual([]);
    world.dispatch.sessionGone('r');
    world.runner('r', [1]);
    expect(world.match()).toEqual(['a@r']);
  });
});

describe('what was held up has not waited (CONTROLS-2)', () => {
  const stage = { key: 'k', labels: ['linux'] };

  it('begins to wait when it is let go, by the boot clock', async () => {
    const world = new World();
    await world.begin();
    expect(world.controls.heldUntil(stage)).toBeUndefined();
    world.set(ofLabel('linux'));
    expect(world.controls.heldUntil(stage)).toBe(world.boot);
    expect(world.controls.heldUntil({ key: 'k', labels: [] })).toBeUndefined();
    world.set(ofLabel('linux'), { resumedAt: world.wall - 5_000 });
    expect(world.controls.heldUntil(stage)).toBe(world.boot - 5_000);
    // Whose clock was ahead has let it go now, not later.
    world.set(ofLabel('linux'), { resumedAt: world.wall + 3_600_000 });
    expect(world.controls.heldUntil(stage)).toBe(world.boot);
    world.expire(ofLabel('linux'));
    expect(world.controls.heldUntil(stage)).toBeUndefined();
  });
});
