/** Where the waiting stages of one run stand in the queues, each lane looked at once for all of them. Made for one answer. */
import { ExpectedLine } from '../run/expected-line.ts';
import { ANY_STAGE, stageLengthName, type Lengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import { lackingSentence } from './lacking.ts';
import type { Pool } from './key-slots.ts';
import { classId, placesIn, type Place, type Queues } from './place.ts';
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

export class StandingStages {
  readonly #queues: Queues;
  readonly #lengths: Lengths;
  readonly #run: LiveRun;
  readonly #boot: number;
  readonly #count: number;
  readonly #standing = new Map<string, Standing>();

  /** `stages`: of the run, those that wait for a runner. */
  constructor(
    { queues, lengths }: { readonly queues: Queues; readonly lengths: Lengths },
    run: LiveRun,
    { stages, boot }: { readonly stages: readonly string[]; readonly boot: number },
  ) {
    this.#queues = queues;
    this.#lengths = lengths;
    this.#run = run;
    this.#boot = boot;
    this.#count = stages.length;
    const seen = new Set<string>();
    for (const ready of readyStagesOf(run, stages, ASKED)) this.#stand(ready, seen);
  }

  of(stage: string): Standing | undefined {
    return this.#standing.get(stage);
  }

  #stand(stages: ReadyStages, seen: Set<string>): void {
    const runner = stages.boundTo();
    const { pool, lacking } = this.#takenBy(stages, runner);
    const isDrained = pool.runners.size === 0 && pool.drained > 0;
    const standing = { lacking, place: undefined, slots: pool.slots, isDrained };
    for (let index = 0; index < stages.count; index++) this.#standing.set(stages.nameAt?.(index) ?? '', standing);
    if (lacking !== undefined || isDrained) return;
    // What was queued before its run had a runner stands where anybody may take it.
    for (const id of new Set([classId(stages, runner), classId(stages, undefined)])) {
      const ready = this.#queues.classes.get(id);
      const lane = ready?.laneOf(stages);
      const name = `${id}\n${stages.priority}`;
      if (ready === undefined || lane === undefined || seen.has(name)) continue;
      seen.add(name);
      const places = placesIn(this.#queues, { ready, lane, run: this.#run, stages: this.#count }, this.#expected(pool));
      for (const [stage, place] of places) this.#standing.set(stage, { lacking, place, slots: pool.slots });
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
    return {
      pool,
      lacking: lackingSentence({ labels, least, boundTo: runner }, leased(this.#queues.sessions.values(), tenant)),
    };
  }

  #expected(pool: Pool): Parameters<typeof placesIn>[2] {
    const usualMs = this.#lengths.median(ANY_STAGE);
    const remaining = this.#lengths
      .runningOn(pool.runners)
      .map((attempt) => this.#lengths.remainingOf(attempt, this.#boot));
    return {
      line: new ExpectedLine(pool.slots, remaining),
      usualMs,
      pacedMs: (grants) => this.#lengths.pacedMs(this.#run.state.key, grants, this.#boot),
      lengthOf: (run, stage) => this.#lengths.median(stageLengthName(run as LiveRun, stage)),
    };
  }
}

/** Only asked what they need. */
const ASKED = { has: () => true, grant: () => false };

/** Not the runners of other tenants: that there are any is nobody's business. */
function* leased(sessions: Iterable<Session>, tenant: string | undefined): Iterable<Session> {
  for (const session of sessions)
    if (session.leased && (session.tenant === undefined || session.tenant === tenant)) yield session;
}
