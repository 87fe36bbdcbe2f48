/** P37: a tenant's own runners get that tenant's stages alone, and count for nobody else. */
import type { FleetEntry } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { Dispatch } from '@penstock/scheduler/testing';

const OF_ADA = `fr_${'a'.repeat(32)}`;
const OF_BOB = `fr_${'b'.repeat(32)}`;
const SHARED = `fr_${'c'.repeat(32)}`;

interface Granted {
  readonly stage: string;
  readonly tenant: string;
  readonly runner: string;
}

interface Offered {
  readonly tenant: string;
  readonly stage?: string | undefined;
  readonly labels?: readonly string[] | undefined;
  readonly priority?: number | undefined;
  readonly boundTo?: string | (() => string | undefined) | undefined;
  readonly runId?: string | undefined;
}

class World {
  readonly granted: Granted[] = [];
  readonly dispatch: Dispatch;
  now = 0;
  #credit = 0;

  constructor(options: ConstructorParameters<typeof Dispatch>[0] = {}) {
    this.dispatch = new Dispatch(options);
  }

  offer({ tenant, stage = tenant, labels = [], priority = 0, boundTo, runId }: Offered): void {
    let waits = true;
    this.dispatch.offer({
      key: tenant,
      tenant,
      priority,
      labels,
      labelSet: labels.join(),
      count: 1,
      runId,
      since: () => undefined,
      boundTo: () => (typeof boundTo === 'function' ? boundTo() : boundTo),
      waits: () => waits,
      grant: (_index, { runner }) => {
        this.granted.push({ stage, tenant, runner });
        waits = false;
        return true;
      },
      rest() {
        return this;
      },
    });
  }

  entry(runner: string, entry: Partial<FleetEntry> | null): void {
    const value = { labels: [], untrusted: false, ...entry };
    this.dispatch.fleetChanged(
      entry === null ? { kind: 'expired', key: runner, revision: 0 } : { kind: 'put', key: runner, value, revision: 1 },
    );
  }

  lease(runner: string, labels: readonly string[] = []): void {
    this.dispatch.sessionSeen({ runner, session: `s-${runner}`, labels, slots: 4, attempts: [] });
  }

  /** As a pull, or with a result. */
  credit(runner: string, more: { count?: number; only?: { runId: string; key: string } } = {}): boolean {
    const credits = Array.from({ length: more.count ?? 1 }, () => (this.#credit += 1));
    const session = `s-${runner}`;
    const taken = this.dispatch.addCredits(this.now, { runner, session, credits, only: more.only });
    this.match();
    return taken;
  }

  match(): void {
    while (this.dispatch.match(this.now));
    this.dispatch.assertInvariants();
  }

  runner(runner: string, entry: Partial<FleetEntry>, count = 1): void {
    this.entry(runner, entry);
    this.lease(runner, entry.labels);
    this.credit(runner, { count });
  }

  stagesOn(runner: string): readonly string[] {
    return this.granted.filter((each) => each.runner === runner).map(({ stage }) => stage);
  }
}

describe("a tenant's own runner", () => {
  it('is granted stages of that tenant alone, whoever waits longer or goes first', () => {
    const world = new World();
    world.offer({ tenant: 'bob', priority: 9 });
    world.offer({ tenant: 'bob', labels: ['gpu'] });
    world.offer({ tenant: 'ada', stage: 'later' });
    world.offer({ tenant: 'ada', stage: 'first', priority: 5 });
    world.runner(OF_ADA, { tenant: 'ada', labels: ['gpu'] }, 4);
    expect(world.stagesOn(OF_ADA)).toEqual(['first', 'later']);
    expect(world.granted).toHaveLength(2);
  });

  it('is granted what is offered while its credits stand', () => {
    const world = new World();
    world.runner(OF_ADA, { tenant: 'ada' }, 3);
    world.offer({ tenant: 'bob' });
    world.match();
    expect(world.granted).toEqual([]);
    world.offer({ tenant: 'ada' });
    world.match();
    expect(world.stagesOn(OF_ADA)).toEqual(['ada']);
  });

  it('is not granted what its token does not say, or what is bound elsewhere', () => {
    const world = new World();
    world.offer({ tenant: 'ada', labels: ['gpu'] });
    world.offer({ tenant: 'ada', labels: ['takes=untrusted'] });
    world.offer({ tenant: 'ada', boundTo: 'r1' });
    world.offer({ tenant: 'ada', stage: 'bound here', boundTo: OF_ADA });
    world.entry(OF_ADA, { tenant: 'ada', labels: ['arm'] });
    world.lease(OF_ADA, ['arm', 'gpu', 'takes=untrusted']);
    world.credit(OF_ADA, { count: 5 });
    expect(world.stagesOn(OF_ADA)).toEqual(['bound here']);
  });

  it('is not granted the run of another tenant that its session names', () => {
    const world = new World();
    world.offer({ tenant: 'bob', runId: 'run-of-bob' });
    world.entry(OF_ADA, { tenant: 'ada' });
    world.lease(OF_ADA);
    expect(world.credit(OF_ADA, { count: 2, only: { runId: 'run-of-bob', key: 'bob' } })).toBe(true);
    expect(world.granted).toEqual([]);
  });

  it('is granted nothing between its lease and its entry, and only what its tenant has after it', () => {
    const world = new World();
    world.offer({ tenant: 'bob' });
    world.offer({ tenant: 'ada' });
    world.lease(OF_ADA);
    expect(world.credit(OF_ADA)).toBe(false);
    world.entry(OF_ADA, { tenant: 'ada' });
    world.credit(OF_ADA, { count: 3 });
    expect(world.granted.map(({ tenant }) => tenant)).toEqual(['ada']);
  });

  it('is granted nothing after its entry, though its lease goes on', () => {
    const world = new World();
    world.runner(OF_ADA, { tenant: 'ada' }, 2);
    world.entry(OF_ADA, null);
    world.lease(OF_ADA);
    world.offer({ tenant: 'ada' });
    world.offer({ tenant: 'bob' });
    world.match();
    expect(world.credit(OF_ADA)).toBe(false);
    expect(world.granted).toEqual([]);
  });

  it("leaves its tenant's stages to everybody's runners, too", () => {
    const world = new World();
    world.offer({ tenant: 'ada' });
    world.runner(OF_BOB, { tenant: 'bob' });
    world.runner('r1', {});
    expect(world.granted).toEqual([{ stage: 'ada', tenant: 'ada', runner: 'r1' }]);
  });

  it("may be all its tenant's, whatever its tenant has of everybody's slots", () => {
    const world = new World({ keySlots: 1 });
    world.dispatch.keySlots.add('ada', 'r1', 1);
    world.lease('r1');
    for (let index = 0; index < 4; index += 1) world.offer({ tenant: 'ada' });
    world.offer({ tenant: 'bob' });
    world.runner(OF_ADA, { tenant: 'ada' }, 4);
    expect(world.stagesOn(OF_ADA)).toHaveLength(4);
  });

  it('is paused and drained as any other', () => {
    let [paused, drained] = ['ada', ''];
    const controls = {
      areKnown: true,
      isAllPaused: false,
      pauseOf: ({ key }: { readonly key: string }) =>
        key === paused ? { target: { kind: 'all' as const }, since: 0, by: '' } : undefined,
      isDrained: (runner: string) => runner === drained,
      get drained() {
        return drained === '' ? [] : [drained];
      },
    };
    const world = new World({ controls });
    world.offer({ tenant: 'ada' });
    world.offer({ tenant: 'ada', stage: 'bound', boundTo: OF_ADA });
    world.runner(OF_ADA, { tenant: 'ada' }, 4);
    expect(world.granted).toEqual([]);
    [paused, drained] = ['', OF_ADA];
    world.dispatch.controlsChanged();
    world.match();
    expect(world.stagesOn(OF_ADA)).toEqual(['bound']);
    drained = '';
    world.dispatch.controlsChanged();
    world.match();
    expect(world.stagesOn(OF_ADA)).toEqual(['bound', 'ada']);
  });

  it('is given, when it leaves, what was queued before its run had begun there', () => {
    const world = new World();
    const bound: { to?: string } = {};
    world.offer({ tenant: 'ada' });
    world.offer({ tenant: 'ada', stage: 'bound', boundTo: () => bound.to });
    world.runner(OF_ADA, { tenant: 'ada' }, 0);
    bound.to = OF_ADA;
    const offer = { runner: OF_ADA, session: `s-${OF_ADA}`, credits: [1, 2] };
    world.dispatch.addCredits(world.now, { ...offer, leaving: true });
    world.match();
    expect(world.stagesOn(OF_ADA)).toEqual(['bound']);
  });

  it('begins so many sessions and no more, with no lease', () => {
    const { dispatch } = new World();
    const entry = { labels: [], untrusted: false, tenant: 'ada' };
    dispatch.fleetChanged({ kind: 'put', key: OF_ADA, value: entry, revision: 1 });
    const offers = Array.from({ length: 40 }, (_, index) =>
      dispatch.addCredits(0, { runner: OF_ADA, session: `s${index}`, credits: [1] }),
    );
    expect(offers.filter((taken) => taken)).toHaveLength(8);
  });

  it('has so many credits open and remembered, however many it offers and withdraws', () => {
    const { dispatch } = new World();
    const entry = { labels: [], untrusted: false, tenant: 'ada' };
    dispatch.fleetChanged({ kind: 'put', key: OF_ADA, value: entry, revision: 1 });
    let withdrawn = 0;
    for (let round = 0; round < 100; round += 1) {
      const credits = Array.from({ length: 1_000 }, (_, index) => round * 1_000 + index);
      dispatch.addCredits(0, { runner: OF_ADA, session: 's', credits });
      withdrawn += dispatch.withdraw('s', credits).length;
    }
    expect(withdrawn).toBe(4_096);
  });

  it("offers nothing in another's session", () => {
    const world = new World();
    world.lease('r1');
    world.entry(OF_ADA, { tenant: 'ada' });
    expect(world.dispatch.addCredits(0, { runner: OF_ADA, session: 's-r1', credits: [1] })).toBe(false);
    world.offer({ tenant: 'bob' });
    world.match();
    expect(world.granted).toEqual([]);
  });
});

describe('of the runners of another tenant', () => {
  it('nothing is declared or counted among what everybody has', () => {
    const world = new World();
    world.offer({ tenant: 'ada', labels: ['gpu'] });
    world.offer({ tenant: 'bob', labels: ['gpu'] });
    world.runner(OF_BOB, { tenant: 'bob', labels: ['gpu'] }, 0);
    expect([...world.dispatch.waitingSets()].map(({ isDeclared }) => isDeclared)).toEqual([false]);
    expect(world.dispatch.unserved().toArray()).toEqual([{ labels: ['gpu'], least: undefined, count: 1 }]);
    expect([...world.dispatch.demandOfTenants()]).toEqual([['bob', [{ labels: ['gpu'], count: 1 }]]]);
    expect(world.dispatch.tenantOf(OF_BOB)).toBe('bob');
    world.runner('r1', { labels: ['gpu'] }, 0);
    expect(world.dispatch.unserved().toArray()).toEqual([]);
    expect([...world.dispatch.waitingSets()].map(({ isDeclared }) => isDeclared)).toEqual([true]);
  });

  it('no offer, lease or end of theirs has what waits for others looked at anew', () => {
    const world = new World();
    world.runner('r1', { labels: ['gpu'] }, 0);
    world.offer({ tenant: 'bob', labels: ['gpu'] });
    const [ready] = world.dispatch.queues.classes.values();
    if (ready === undefined) throw new Error('nothing waits');
    const before = world.dispatch.queues.poolOf(ready);
    world.runner(OF_ADA, { tenant: 'ada', labels: ['gpu'] }, 2);
    world.lease(OF_ADA, ['gpu', 'linux']);
    world.dispatch.sessionGone(`s-${OF_ADA}`);
    expect(world.dispatch.queues.poolOf(ready)).toBe(before);
  });
});

const TENANTS = ['ada', 'bob', 'eve'] as const;
const RUNNERS = [
  { runner: OF_ADA, tenant: 'ada' },
  { runner: OF_BOB, tenant: 'bob' },
  { runner: SHARED, tenant: undefined },
  { runner: 'r1', tenant: undefined },
] as const;
const runner = fc.constantFrom(...RUNNERS);
const labels = fc.subarray(['gpu', 'arm']);
const step = fc.oneof(
  fc.record({
    do: fc.constant('offer' as const),
    tenant: fc.constantFrom(...TENANTS),
    labels,
    priority: fc.integer({ min: 0, max: 2 }),
    boundTo: fc.option(
      runner.map((each) => each.runner),
      { nil: undefined, freq: 4 },
    ),
  }),
  fc.record({ do: fc.constant('credit' as const), of: runner, count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('lease' as const), of: runner, labels }),
  fc.record({ do: fc.constant('entry' as const), of: runner, labels, isThere: fc.boolean() }),
  fc.record({ do: fc.constant('gone' as const), of: runner }),
  fc.record({ do: fc.constant('second' as const) }),
);

it('never is a stage granted to the runner of another tenant, and what a runner may take does not wait beside its credits', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const world = new World();
      for (const each of steps) {
        if (each.do === 'offer') world.offer(each);
        if (each.do === 'credit') world.credit(each.of.runner, { count: each.count });
        if (each.do === 'lease') world.lease(each.of.runner, each.labels);
        if (each.do === 'entry')
          world.entry(each.of.runner, each.isThere ? { labels: each.labels, tenant: each.of.tenant } : null);
        if (each.do === 'gone') world.dispatch.sessionGone(`s-${each.of.runner}`);
        if (each.do === 'second') world.dispatch.forgetIdle((world.now += 1_000));
        world.match();
      }
      for (const { runner: granted, tenant } of world.granted) {
        const own = RUNNERS.find((each) => each.runner === granted)?.tenant;
        expect([undefined, tenant]).toContain(own);
      }
      // All have an entry and credits now: what is bound to nobody waits no more where there is somebody for it.
      for (const { runner: each, tenant } of RUNNERS) {
        if (tenant === 'ada') world.runner(each, { labels: ['gpu', 'arm'], tenant }, 100);
      }
      const [own] = [...world.dispatch.demandOfTenants()].filter(([tenant]) => tenant === 'ada');
      const open = [...world.dispatch.queues.classes.values()].filter(
        (ready) =>
          ready.runner === undefined && [...ready.lanes.values()].some((l) => l.tenant === 'ada' && l.count > 0),
      );
      expect(own).toBeDefined();
      expect(open).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
