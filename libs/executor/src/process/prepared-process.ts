/**
 * A stage that is prepared before it is known whether it runs: its job is put together, and in a helper that idles the process for it is
 * forked and has its variables. What could differ once it runs (folders, programs) is not looked at before.
 */
import { UnstartableStage } from '../contract/errors.ts';
import type { OutputSink, StagePreparation, StageProcess, StageSpec } from '../contract/port.ts';
import type { Helper } from './helper.ts';
import type { HelperPool } from './helper-pool.ts';
import { renderJob, type Job } from './job.ts';
import { viewOf } from './view.ts';

export interface Prepared {
  readonly helper: Helper;
  readonly job: Job;
}

export class PreparedProcess implements StagePreparation {
  readonly #key: string;
  readonly #pool: HelperPool;
  readonly #start: (sink: OutputSink, prepared?: Prepared) => StageProcess;
  readonly #job: Job;
  #helper: Helper | null = null;

  /** Throws UnstartableStage. */
  constructor(spec: StageSpec, pool: HelperPool, start: (sink: OutputSink, prepared?: Prepared) => StageProcess) {
    this.#key = spec.helperKey;
    this.#pool = pool;
    this.#start = start;
    this.#job = renderJob(spec, noFile, { isHelpers: true, waits: true });
  }

  begin(): boolean {
    if (this.#helper !== null) return true;
    const helper = this.#pool.takeIdle({ key: this.#key, place: '', view: viewOf(undefined) });
    if (helper === null) return false;
    if (helper.isolation === 'group' || helper.launch.forksAhead !== true) {
      // In a group the end of a stage is the end of its helper. And what is left of a word that a killed process has begun to read may be an order to
      // its helper: one that forks ahead runs nothing after such an end (HELPER-5).
      this.#pool.release(helper);
      return false;
    }
    helper.prepare(this.#job.text);
    this.#helper = helper;
    return true;
  }

  start(sink: OutputSink): StageProcess {
    const helper = this.#helper;
    this.#helper = null;
    return this.#start(sink, helper?.usable === true ? { helper, job: this.#job } : undefined);
  }

  discard(): void {
    const helper = this.#helper;
    this.#helper = null;
    if (helper !== null) void helper.discard().then(() => this.#pool.release(helper));
  }
}

function noFile(): never {
  throw new UnstartableStage('its script goes by a file, which is made when it starts');
}
