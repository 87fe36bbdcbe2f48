/** The run that is shown: asked for at first, and again whenever something has come of it, once in a while at most. */
import { signal } from '@preact/signals';
import { ask } from '../api/graphql.ts';
import { problemFrom, type Problem } from '../api/http.ts';
import type { Run } from './stage-groups.ts';

const ASK_MS_MIN = 1_200;
/** Places in a queue change without an event of the run. */
const WAITING_MS = 10_000;

export class RunView {
  readonly run = signal<Run | null>(null);
  readonly problem = signal<Problem | null>(null);
  readonly isMissing = signal(false);
  readonly #id: string;
  readonly #closed = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #askedAt = -Infinity;
  #asking = false;
  #again = false;

  constructor(id: string) {
    this.#id = id;
    void this.#ask();
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  /** Something has come; `now` where somebody waits for it to be seen. */
  changed({ now = false }: { readonly now?: boolean } = {}): void {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#askIn(now ? 0 : Math.max(0, this.#askedAt + ASK_MS_MIN - performance.now()));
  }

  #askIn(ms: number): void {
    if (this.#closed.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#ask(), ms);
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    this.#again = false;
    this.#askedAt = performance.now();
    let retryMs: number | null = null;
    try {
      const { run } = await ask('Run', { id: this.#id }, this.#closed.signal);
      if (this.#closed.signal.aborted) return;
      this.isMissing.value = run === null;
      this.run.value = run;
      this.problem.value = null;
      if (run !== null && run.finishedAt === null && isWaiting(run)) retryMs = WAITING_MS;
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      const problem = problemFrom(error);
      this.problem.value = problem;
      if (['NETWORK', 'UNAVAILABLE', 'RATE_LIMITED'].includes(problem.code) || problem.code.startsWith('HTTP_5'))
        retryMs = Math.max(WAITING_MS, (problem.retryAfterSecs ?? 0) * 1000);
    } finally {
      this.#asking = false;
    }
    if (this.#again) this.changed();
    else if (retryMs !== null) this.#askIn(retryMs);
  }
}

function isWaiting(run: Run): boolean {
  return run.waitingOn.length > 0 || run.stages.some(({ waitingOn }) => waitingOn.length > 0);
}
