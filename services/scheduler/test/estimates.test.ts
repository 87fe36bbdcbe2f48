/** `etaSecs` on a trace: a thousand runs as they come to a server, and how far off each was told when it began to wait. */
import type { Job } from '@penstock/bus';
import type { RunWaits } from '@penstock/run';
import { expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

const RUNS = 1_000;
const SLOTS = 4;
const KEYS = 5;
const PIPELINES_OF_KEY = 4;
/** Runs that come with the first of them: one push starts several pipelines. */
const BURST = 6;
/** A credit is spent within 25 s. */
const RENEW_MS = 20_000;

/** The same numbers in every run of the test. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Running {
  readonly job: Job;
  readonly endsAt: number;
}

class Trace {
  readonly world = new Harness({ settings: { liveRunsPerKeyMax: RUNS } });
  readonly #random = numbers(7);
  readonly #typicalMs = new Map<string, number>();
  readonly #waiting = new Map<string, { readonly from: number; readonly etaMs: number | undefined }>();
  readonly errors: number[] = [];
  /** Those that were told nothing. */
  untold = 0;
  #running: Running[] = [];
  #credits = 0;
  #idle: { readonly credit: number; readonly at: number }[] = [];
  #jobs = 0;

  constructor() {
    this.world.session('r1-s');
    for (let slot = 0; slot < SLOTS; slot++) this.#offer();
  }

  run(): void {
    let arrivesAt = this.world.boot;
    for (let count = 0; count < RUNS;) {
      const ends = this.#running.toSorted((a, b) => a.endsAt - b.endsAt);
      const endsAt = ends[0]?.endsAt ?? Infinity;
      const renewAt = Math.min(Infinity, ...this.#idle.map(({ at }) => at + RENEW_MS));
      const next = Math.min(arrivesAt, endsAt, renewAt);
      this.world.later(next - this.world.boot);
      if (next === endsAt && ends[0] !== undefined) this.#end(ends[0]);
      else if (next === renewAt) this.#renew();
      else {
        const burst = Math.min(RUNS - count, 1 + Math.floor(this.#random() * BURST));
        for (let each = 0; each < burst; each++) this.#arrive();
        count += burst;
        // Nine of ten slots are taken on average.
        arrivesAt += burst * (MEAN_MS / SLOTS / 0.9) * -Math.log(1 - this.#random());
      }
      this.#take();
      if (count % 50 === 0) this.world.project();
    }
  }

  #arrive(): void {
    const key = `key${Math.floor(this.#random() * KEYS)}`;
    const name = `pipeline${Math.floor(this.#random() * PIPELINES_OF_KEY)}`;
    const { id } = this.world.create(text([stage('a')], { name }), { key });
    this.world.settle();
    this.#take();
    if (this.world.jobs.some(({ message }) => message.runId === id)) return;
    const answers: RunWaits[] = [];
    this.world.partition.waits({ runIds: [id], tenants: ['ada'] }, (reply) => {
      if (reply.ok) answers.push(...reply.runs);
    });
    this.#waiting.set(id, { from: this.world.boot, etaMs: answers[0]?.waits[0]?.etaMs });
  }

  /** What was granted begins. */
  #take(): void {
    this.world.settle();
    for (; this.#jobs < this.world.jobs.length; this.#jobs++) {
      const job = this.world.job(this.#jobs);
      this.world.jobs[this.#jobs]?.answer('accepted');
      this.#idle = this.#idle.filter(({ credit }) => credit !== job.credit);
      this.#running.push({ job, endsAt: this.world.boot + this.#lengthOf(job) });
      const told = this.#waiting.get(job.runId);
      if (told === undefined) continue;
      const waitedMs = this.world.boot - told.from;
      if (told.etaMs === undefined) this.untold += 1;
      else if (waitedMs > 0) this.errors.push(Math.abs(told.etaMs - waitedMs) / waitedMs);
    }
  }

  /** From half a minute to five, the same for a pipeline but for a fifth up and down. */
  #lengthOf({ key, pipelineName }: Job): number {
    const name = `${key} ${pipelineName}`;
    const typical = this.#typicalMs.get(name) ?? 30_000 * 10 ** this.#random();
    this.#typicalMs.set(name, typical);
    return typical * (0.8 + 0.4 * this.#random());
  }

  #end(ended: Running): void {
    this.#running = this.#running.filter((each) => each !== ended);
    this.world.result(ended.job);
    this.#offer();
  }

  #renew(): void {
    const [oldest] = this.#idle;
    if (oldest === undefined) return;
    this.#idle.shift();
    this.world.dispatch.withdraw('r1-s', [oldest.credit]);
    this.#offer();
  }

  #offer(): void {
    this.#credits += 1;
    this.#idle.push({ credit: this.#credits, at: this.world.boot });
    this.world.credit('r1-s', 'r1', this.#credits);
  }
}

/** Of a decade that is spread evenly by its logarithm: nine over the natural logarithm of ten of its beginning. */
const MEAN_MS = (30_000 * 9) / Math.LN10;

it(
  'is at most a quarter off for half of a thousand runs, and told to nearly all that wait',
  { timeout: 120_000 },
  () => {
    const trace = new Trace();
    trace.run();
    const sorted = trace.errors.toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
    expect(sorted.length).toBeGreaterThan(RUNS / 4);
    expect(trace.untold).toBeLessThan(RUNS / 50);
    expect(median).toBeLessThan(0.25);
  },
);
