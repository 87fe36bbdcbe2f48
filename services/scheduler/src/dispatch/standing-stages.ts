/** Where the waiting stages of runs stand in the queues. Made for one answer. */
import { ExpectedLine } from '../run/expected-line.ts';
import { ANY_STAGE, stageLengthName, type Lengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import { Lacking } from './lacking.ts';
import type { Pool } from './key-slots.ts';
import { classId, PickOrder, type Expected, type Looks, type Place, type Queues } from './place.ts';
import { ReadyClass } from './ready-class.ts';
import { readyStagesOf, type ReadyStages } from './ready-stage.ts';
import type { Session } from './sessions.ts';

export interface Standing {
  /** Why no runner can take it, in a sentence; undefined: some can. */
  readonly lacking: string | undefined;
  /** Undefined: it is too far behind to be found, or stands in no queue. */
  readonly place: Place | undefined;
  /** Of the runners that can take it. */
  readonly slots: number;
  /** The runners that could take it are drained, all of them. */
  readonly isDrained?: boolean;
}

/** What stands before the stages of one answer, each order gone through once for all of them. */
export class PickOrders {
  readonly #queues: Queues;
  readonly #lengths: Lengths;
  readonly #boot: number;
  readonly #looks: Looks;
  readonly #orders: { readonly pool: Pool; readonly tenant: string | undefined; readonly order: PickOrder }[] = [];
  readonly lacking: Lacking;

  constructor({ queues, lengths }: { readonly queues: Queues; readonly lengths: Lengths }, boot: number, looks: Looks) {
    this.#queues = queues;
    this.#lengths = lengths;
    this.#boot = boot;
    this.#looks = looks;
    this.lacking = new Lacking((tenant) => leased(queues.sessions.values(), tenant), looks);
  }

  /** Of what waits for these runners. Classes may differ by the thousand, and have the same ones. Undefined: nothing may be looked at any more. */
  of(pool: Pool, tenant: string | undefined): PickOrder | undefined {
    const whose = this.#queues.hasOwnRunners(tenant) ? tenant : undefined;
    const known = this.#orders.find((each) => each.tenant === whose && areSame(each.pool.runners, pool.runners));
    if (known !== undefined) return known.order;
    if (this.#looks.left <= 0) return undefined;
    const order = new PickOrder(this.#queues, pool, whose, this.#expected(pool), this.#looks);
    this.#orders.push({ pool, tenant: whose, order });
    return order;
  }

  #expected(pool: Pool): Expected {
    const running = this.#lengths.runningOn(pool.runners);
    this.#looks.left -= running.length;
    const remaining = running.map((attempt) => this.#lengths.remainingOf(attempt, this.#boot));
    return {
      line: new ExpectedLine(pool.slots, remaining),
      usualMs: this.#lengths.median(ANY_STAGE),
      pacedMs: (key, grants) => this.#lengths.pacedMs(key, grants, this.#boot),
      lengthOf: (run, stage) => this.#lengths.median(stageLengthName(run as LiveRun, stage)),
    };
  }
}

function areSame(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a === b || (a.size === b.size && a.isSubsetOf(b));
}

export class StandingStages {
  readonly #queues: Queues;
  readonly #orders: PickOrders;
  readonly #run: LiveRun;
  readonly #count: number;
  readonly #standing = new Map<string, Standing>();

  /** `stages`: of the run, those that wait for a runner. */
  constructor(queues: Queues, orders: PickOrders, run: LiveRun, stages: readonly string[]) {
    this.#queues = queues;
    this.#orders = orders;
    this.#run = run;
    this.#count = stages.length;
    for (const ready of readyStagesOf(run, stages, ASKED)) this.#stand(ready);
  }

  of(stage: string): Standing | undefined {
    return this.#standing.get(stage);
  }

  #stand(stages: ReadyStages): void {
    const { pool, lacking } = this.#takenBy(stages, stages.boundTo());
    const isDrained = pool.runners.size === 0 && pool.drained > 0;
    const places =
      lacking !== undefined || isDrained
        ? undefined
        : this.#orders.of(pool, stages.tenant)?.placesOf(this.#run, this.#count);
    for (let index = 0; index < stages.count; index++) {
      const name = stages.nameAt?.(index) ?? '';
      this.#standing.set(name, { lacking, place: places?.get(name), slots: pool.slots, isDrained });
    }
  }

  #takenBy(
    stages: ReadyStages,
    runner: string | undefined,
  ): { readonly pool: Pool; readonly lacking: string | undefined } {
    const { labels, least, tenant } = stages;
    const ready = this.#queues.classes.get(classId(stages, runner)) ?? new ReadyClass('', stages, runner);
    const pool = this.#queues.poolOf(ready, tenant);
    if (pool.runners.size + pool.drained > 0) return { pool, lacking: undefined };
    return { pool, lacking: this.#orders.lacking.sentenceOf({ labels, least, boundTo: runner, tenant }) };
  }
}

/** Only asked what they need. */
const ASKED = { has: () => true, grant: () => false };

/** Not the runners of other tenants: that there are any is nobody's business. */
function* leased(sessions: Iterable<Session>, tenant: string | undefined): Iterable<Session> {
  for (const session of sessions)
    if (session.leased && (session.tenant === undefined || session.tenant === tenant)) yield session;
}
