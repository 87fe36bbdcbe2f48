/** Where the free slots of a runner are on offer (P11), against schedulers that answer as the test says. */
import { CREDIT_RENEWED_AFTER_MS, type Demand, type PullReply, type PullRequest } from '@penstock/bus';
import type { LeaseEvent } from '@penstock/bus';
import { silentLog } from '@penstock/telemetry/log';
import { describe, expect, it } from 'vitest';
import { Credits } from '../src/session/credits.ts';
import { Offers } from '../src/session/offers.ts';
import { Schedulers } from '../src/session/schedulers.ts';

type Answer = (request: PullRequest) => Promise<PullReply>;

/** Takes what is offered, and gives back all that is withdrawn. */
const takesAll: Answer = async ({ withdraw }) => ({ ok: true, withdrawn: withdraw });

class World {
  now = 1_000;
  slots: number;
  /** Stages that run. */
  busy = 0;
  readonly pulls: { readonly scheduler: string; readonly request: PullRequest }[] = [];
  readonly answers = new Map<string, Answer>();
  readonly credits = new Credits(() => this.now);
  readonly offers: Offers;
  /** Called when the offers look at how many slots there are. */
  onSlots: () => void = () => {};
  #timers: { readonly at: number; readonly task: () => void }[] = [];
  #hearLease: (event: LeaseEvent<unknown>) => void = () => {};
  #hearDemand: (demand: Demand) => void = () => {};

  constructor(slots: number, ...schedulers: readonly string[]) {
    this.slots = slots;
    const time = {
      wallNow: () => this.now,
      bootNow: () => this.now,
      after: (milliseconds: number, task: () => void) => {
        const timer = { at: this.now + milliseconds, task };
        this.#timers.push(timer);
        return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
      },
      pause: () => Promise.resolve(),
      turn: () => Promise.resolve(),
    };
    const bus = {
      request: (subject: string, request: PullRequest): Promise<PullReply> => {
        const scheduler = subject.split('.')[1] ?? '';
        this.pulls.push({ scheduler, request });
        return (this.answers.get(scheduler) ?? takesAll)(request);
      },
      subscribe: (_: string, handler: (demand: Demand) => void) => {
        this.#hearDemand = handler;
        return { stop: () => {} };
      },
    };
    const ports = {
      bus,
      time,
      watchLeases: (_: string, handler: (event: LeaseEvent<unknown>) => void) => {
        this.#hearLease = handler;
        return { stop: () => {} };
      },
    } as unknown as ConstructorParameters<typeof Offers>[0]['ports'] & ConstructorParameters<typeof Schedulers>[0];
    const listening = { offers: undefined as Offers | undefined };
    const known = new Schedulers(
      ports,
      { labels: ['linux'], capacity: undefined },
      { log: silentLog, about: {} },
      {
        changed: () => listening.offers?.pump(),
        gone: (scheduler) => listening.offers?.gone(scheduler),
      },
    );
    for (const scheduler of schedulers) this.came(scheduler);
    this.offers = new Offers({
      ports,
      log: silentLog,
      runner: 'r1',
      session: 's1',
      labels: ['linux'],
      slots: () => {
        this.onSlots();
        return this.slots;
      },
      credits: this.credits,
      schedulers: known,
      busy: () => this.busy,
    });
    listening.offers = this.offers;
  }

  came(scheduler: string): void {
    this.#hearLease({ kind: 'put', key: scheduler, value: { member: scheduler }, revision: 1 } as LeaseEvent<unknown>);
  }

  left(scheduler: string): void {
    this.#hearLease({ kind: 'expired', key: scheduler, revision: 2 } as LeaseEvent<unknown>);
  }

  asks(scheduler: string): void {
    this.#hearDemand({ scheduler, waiting: [{ labels: ['linux'], count: 1 }] });
  }

  /** The scheduler grants a stage from one of its credits, and the runner starts it. */
  grants(scheduler: string): void {
    const [credit = 0] = this.credits.openAt(scheduler);
    if (this.credits.take(credit) !== scheduler) throw new Error(`${scheduler} has no credit`);
    this.busy += 1;
  }

  /** Open credits, by scheduler. */
  open(...schedulers: readonly string[]): number[] {
    return schedulers.map((scheduler) => this.credits.openAt(scheduler).length);
  }

  /** Numbers that were offered and withdrawn, in the order of the requests. */
  get sent(): string[] {
    return this.pulls.map(
      ({ scheduler, request }) => `${scheduler} +${request.credits.length} -${request.withdraw.length}`,
    );
  }

  /** How many wait. */
  get timers(): number {
    return this.#timers.length;
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  }

  async pump(): Promise<void> {
    this.offers.pump();
    await this.settle();
  }

  async pass(milliseconds: number): Promise<void> {
    const until = this.now + milliseconds;
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.now = Math.max(this.now, next.at);
      next.task();
      await this.settle();
    }
    this.now = until;
  }
}

describe('free slots', () => {
  it('are each on offer at one scheduler, shared out evenly, by one request to each', async () => {
    const world = new World(5, 'a', 'b');
    let rounds = 0;
    world.onSlots = () => (rounds += 1);
    world.offers.pump();
    world.offers.pump();
    await world.settle();
    expect(rounds).toBe(1);
    expect(world.open('a', 'b').toSorted()).toEqual([2, 3]);
    expect(world.sent.toSorted()).toEqual(['a +3 -0', 'b +2 -0']);
  });

  it('are never more with the stages that run than there are (OFFERS-1)', async () => {
    const world = new World(2, 'a');
    await world.pump();
    world.grants('a');
    await world.pump();
    expect(world.open('a')).toEqual([1]);
    expect(world.offers.offerAlong('a')).toBeNull();
    world.slots = 1;
    await world.pump();
    expect(world.sent).toEqual(['a +2 -0']);
  });

  it('go to who asks before who does not, and of equals to who has had none for longest', async () => {
    const world = new World(1, 'a', 'b', 'c');
    world.asks('b');
    await world.pump();
    expect(world.open('a', 'b', 'c')).toEqual([0, 1, 0]);
    const quiet = new World(1, 'a', 'b');
    await quiet.pump();
    expect(quiet.open('a', 'b')).toEqual([1, 0]);
    quiet.grants('a');
    quiet.busy = 0;
    quiet.now += 10;
    await quiet.pump();
    expect(quiet.open('a', 'b')).toEqual([0, 1]);
  });

  it('are offered to a scheduler when it comes, and its offers are over when it is gone', async () => {
    const world = new World(2);
    await world.pump();
    expect(world.sent).toEqual([]);
    world.came('a');
    await world.settle();
    expect(world.open('a')).toEqual([2]);
    world.left('a');
    world.came('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([0, 2]);
  });

  it('that nobody has told of are offered within a second', async () => {
    const world = new World(0, 'a');
    await world.pump();
    world.slots = 1;
    await world.pass(1_000);
    expect(world.open('a')).toEqual([1]);
  });

  it('are offered by the next round where one has thrown', async () => {
    const world = new World(1, 'a');
    world.onSlots = () => {
      throw new Error('no slots are known');
    };
    await world.pump();
    world.onSlots = () => {};
    await world.pump();
    expect(world.open('a')).toEqual([1]);
  });
});

describe('a slot that a result carries', () => {
  it('is offered along where it is free, to a scheduler that is there', async () => {
    const world = new World(1, 'a');
    const credit = world.offers.offerAlong('a');
    expect(world.credits.openAt('a')).toEqual([credit]);
    expect(world.offers.offerAlong('a')).toBeNull();
    const strange = new World(1, 'a');
    expect(strange.offers.offerAlong('unknown')).toBeNull();
    await strange.offers.stop();
    expect(strange.offers.offerAlong('a')).toBeNull();
  });

  it('goes to a scheduler that asks and was offered nothing for a quarter of a second (OFFERS-4)', async () => {
    const world = new World(1, 'a', 'b');
    await world.pump();
    world.grants('a');
    world.asks('b');
    await world.settle();
    // It was offered nothing ever.
    world.busy = 0;
    expect(world.offers.offerAlong('a')).toBeNull();
    expect(world.offers.offerAlong('b')).not.toBeNull();
  });

  it('stays where it is for as long as nobody else starves', async () => {
    const world = new World(1, 'a', 'b');
    const first = world.offers.offerAlong('b');
    expect(world.credits.take(first ?? 0)).toBe('b');
    // It does not ask.
    await world.pass(0);
    world.now += 10_000;
    expect(world.offers.offerAlong('a')).not.toBeNull();
    const asking = new World(2, 'a', 'b');
    const second = asking.offers.offerAlong('b');
    asking.asks('b');
    // It asks and has an open offer.
    asking.now += 1_000;
    expect(asking.offers.offerAlong('a')).not.toBeNull();
    expect(asking.credits.take(second ?? 0)).toBe('b');
  });

  it('and does so a quarter of a second after its last offer, not before', () => {
    const offered = (afterMs: number): boolean => {
      const world = new World(2, 'a', 'b');
      const credit = world.offers.offerAlong('b');
      expect(world.credits.take(credit ?? 0)).toBe('b');
      world.busy = 1;
      world.asks('b');
      world.now += afterMs;
      return world.offers.offerAlong('a') !== null;
    };
    expect([offered(250), offered(251)]).toEqual([true, false]);
  });
});

it('a scheduler that comes again under its name has been offered nothing', async () => {
  const world = new World(2, 'a', 'b');
  await world.pump();
  world.grants('a');
  world.busy = 2;
  world.left('b');
  world.came('b');
  world.asks('b');
  await world.settle();
  world.busy = 1;
  expect(world.offers.offerAlong('a')).toBeNull();
});

describe('an offer', () => {
  it('moves to a scheduler that asks: half of what one without demand holds, withdrawn first (OFFERS-2)', async () => {
    const world = new World(4, 'a');
    await world.pump();
    world.came('b');
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([2, 2]);
    expect(world.sent).toEqual(['a +4 -0', 'a +0 -2', 'b +2 -0']);
  });

  it('of a scheduler that asks itself moves only when it has lain there for a while', async () => {
    const world = new World(2, 'a');
    world.asks('a');
    await world.pump();
    world.now += 49;
    world.came('b');
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([2, 0]);
    world.now += 1;
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([1, 1]);
  });

  it('does not move where nobody asks, or who asks has one', async () => {
    const world = new World(2, 'a', 'b');
    await world.pump();
    world.asks('b');
    await world.settle();
    await world.pump();
    expect(world.sent).toEqual(['a +1 -0', 'b +1 -0']);
    const alone = new World(2, 'a');
    alone.asks('a');
    await alone.pump();
    alone.now += 1_000;
    await alone.pump();
    expect(alone.sent).toEqual(['a +2 -0']);
  });

  it('that is being withdrawn is not withdrawn twice', async () => {
    const world = new World(2, 'a');
    await world.pump();
    const answered = Promise.withResolvers<PullReply>();
    world.answers.set('a', () => answered.promise);
    world.came('b');
    world.asks('b');
    await world.settle();
    world.asks('b');
    await world.settle();
    const withdrawn = world.pulls.flatMap(({ request }) => request.withdraw);
    expect(withdrawn).toEqual([...new Set(withdrawn)]);
    answered.resolve({ ok: true, withdrawn });
    await world.settle();
    expect(world.open('a', 'b')).toEqual([1, 1]);
  });

  it('that was granted meanwhile stays open for its stage', async () => {
    const world = new World(2, 'a');
    await world.pump();
    world.answers.set('a', async () => ({ ok: true, withdrawn: [] }));
    world.came('b');
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([2, 0]);
    // What was asked for once may be asked for again.
    world.answers.set('a', takesAll);
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([1, 1]);
  });

  it('is renewed before it is over: withdrawn, and made again', async () => {
    const world = new World(1, 'a');
    await world.pump();
    const [first] = world.credits.openAt('a');
    await world.pass(CREDIT_RENEWED_AFTER_MS - 1);
    expect(world.credits.openAt('a')).toEqual([first]);
    await world.pass(1_001);
    const [second] = world.credits.openAt('a');
    expect(second).not.toBe(first);
    expect(world.sent).toEqual(['a +1 -0', 'a +0 -1', 'a +1 -0']);
  });

  it.each<[string, Answer]>([
    ['refused', async () => ({ ok: false, withdrawn: [] })],
    ['not answered', () => Promise.reject(new Error('no answer'))],
  ])(
    'that is %s is over here, and its scheduler is left alone for a quarter of a second (OFFERS-3)',
    async (_, answer) => {
      const world = new World(1, 'a');
      world.answers.set('a', answer);
      await world.pump();
      expect(world.open('a')).toEqual([0]);
      world.answers.set('a', takesAll);
      await world.pump();
      await world.pass(249);
      await world.pump();
      expect(world.open('a')).toEqual([0]);
      await world.pass(1);
      await world.pump();
      expect(world.open('a')).toEqual([1]);
    },
  );

  it('to such a scheduler is made again without anybody asking for it', async () => {
    const world = new World(1, 'a');
    world.answers.set('a', async () => ({ ok: false, withdrawn: [] }));
    await world.pump();
    world.answers.set('a', takesAll);
    await world.pass(251);
    expect(world.open('a')).toEqual([1]);
  });

  it('that a withdrawal was not answered for is over too', async () => {
    const world = new World(1, 'a');
    await world.pump();
    world.answers.set('a', () => Promise.reject(new Error('no answer')));
    world.came('b');
    world.asks('b');
    await world.settle();
    expect(world.open('a', 'b')).toEqual([0, 1]);
  });

  it('is made at once to a scheduler that comes again under its name, whatever it did before', async () => {
    const world = new World(1, 'a');
    world.answers.set('a', async () => ({ ok: false, withdrawn: [] }));
    await world.pump();
    world.left('a');
    world.answers.set('a', takesAll);
    world.came('a');
    await world.settle();
    expect(world.open('a')).toEqual([1]);
  });
});

describe('the end of all offers', () => {
  it('withdraws them, is over when that is answered, and offers nothing more', async () => {
    const world = new World(2, 'a');
    await world.pump();
    const answered = Promise.withResolvers<PullReply>();
    world.answers.set('a', () => answered.promise);
    let isOver = false;
    const stopping = world.offers.stop().then(() => (isOver = true));
    await world.settle();
    expect(isOver).toBe(false);
    expect(world.sent.at(-1)).toBe('a +0 -2');
    answered.resolve({ ok: true, withdrawn: [1] });
    await stopping;
    expect(world.credits.openCount).toBe(0);
    world.slots = 5;
    await world.pump();
    await world.pass(40_000);
    await world.offers.stop();
    expect(world.sent).toHaveLength(2);
    expect(world.timers).toBe(0);
  });

  it('also where a round was about to begin', async () => {
    const world = new World(1, 'a');
    world.offers.pump();
    await world.offers.stop();
    await world.settle();
    expect(world.sent).toEqual([]);
  });
});
