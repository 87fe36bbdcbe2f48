/** The runs that fit a filter, newest first, kept up to date by the stream of changes. */
import { signal } from '@preact/signals';
import { ask } from '../api/graphql.ts';
import { problemFrom, type Problem } from '../api/http.ts';
import type { Operations } from '../api/operations.ts';
import { followStream, type StreamState } from '../api/sse.ts';
import { newestFirst, notOlder, type RunRow } from './run-rows.ts';

export type RunFilter = Pick<Operations['Runs']['variables'], 'pipelineName' | 'status' | 'repository' | 'ref'>;

const PAGE = 50;
const SHOWN_MAX = 1_000;
/** Runs whose rows are asked for in one go; of more that change at once the page is asked for anew. */
const ROWS_AT_ONCE = 10;
const ASK_MS = 1_000;

export class RunList {
  readonly rows = signal<readonly RunRow[] | null>(null);
  readonly problem = signal<Problem | null>(null);
  readonly state = signal<StreamState>('connecting');
  readonly hasMore = signal(false);
  readonly #filter: RunFilter;
  readonly #closed = new AbortController();
  readonly #stop: () => void;
  /** By id, the version that was told of last. */
  readonly #versions = new Map<string, number>();
  readonly #waiting = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(filter: RunFilter) {
    this.#filter = filter;
    this.#stop = followStream({
      url: '/runs/events',
      onState: (state) => {
        // What has changed before the stream was open is in no event of it.
        if (state === 'open') void this.#load();
        this.state.value = state;
      },
      onEvents: (events) => {
        for (const { name, data } of events) if (name === 'run_changed') this.#heard(JSON.parse(data) as Changed);
      },
    });
    void this.#load();
    document.addEventListener('visibilitychange', this.#onVisibility);
  }

  close(): void {
    this.#closed.abort();
    this.#stop();
    document.removeEventListener('visibilitychange', this.#onVisibility);
    clearTimeout(this.#timer);
  }

  /** Where nothing tells of changes, whoever comes back to the page sees what there is. */
  readonly #onVisibility = (): void => {
    if (document.visibilityState === 'visible' && this.state.peek() === 'refused') void this.#load();
  };

  /** Older ones too, until there are so many of them or no more. */
  async upTo(count: number): Promise<void> {
    while (this.hasMore.peek() && !this.#closed.signal.aborted) {
      const had = this.rows.peek()?.length ?? 0;
      if (had >= count) return;
      await this.more();
      if ((this.rows.peek()?.length ?? 0) === had) return;
    }
  }

  async more(): Promise<void> {
    const before = this.rows.peek()?.at(-1)?.id;
    if (before === undefined) return;
    await this.#guarded(async () => {
      const { runs } = await ask('Runs', { ...this.#filter, limit: PAGE, before }, this.#closed.signal);
      this.#show([...(this.rows.peek() ?? []), ...runs]);
      this.hasMore.value = runs.length === PAGE && (this.rows.peek()?.length ?? 0) < SHOWN_MAX;
    });
  }

  async #load(): Promise<void> {
    await this.#guarded(async () => {
      const { runs } = await ask('Runs', { ...this.#filter, limit: PAGE }, this.#closed.signal);
      const last = runs.at(-1);
      const known = this.rows.peek() ?? [];
      const older = last === undefined ? [] : known.filter(({ id }) => id < last.id);
      this.#show([...notOlder(runs, known), ...older]);
      if (older.length === 0) this.hasMore.value = runs.length === PAGE;
    });
  }

  #heard({ id, status, version, pipelineName }: Changed): void {
    if ((this.#versions.get(id) ?? 0) >= version) return;
    this.#versions.set(id, version);
    if (this.#versions.size > 10 * SHOWN_MAX) this.#versions.clear();
    const rows = this.rows.peek() ?? [];
    const known = rows.find((row) => row.id === id);
    const { pipelineName: wanted } = this.#filter;
    if (known === undefined && typeof wanted === 'string' && wanted !== pipelineName) return;
    if (known !== undefined && known.status !== status)
      this.rows.value = rows.map((row) => (row.id === id ? { ...row, status } : row));
    // Everything else about it is asked for: who began it, when it ended, and whether it still fits the filter.
    if (known === undefined || known.status !== status) this.#askFor(id);
  }

  #askFor(id: string): void {
    this.#waiting.add(id);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const ids = [...this.#waiting];
      this.#waiting.clear();
      const isFiltered = Object.values(this.#filter).some((each) => each !== undefined);
      void (ids.length > ROWS_AT_ONCE || isFiltered ? this.#load() : this.#update(ids));
    }, ASK_MS);
  }

  async #update(ids: readonly string[]): Promise<void> {
    await this.#guarded(async () => {
      const found = await Promise.all(ids.map((id) => ask('RunRow', { id }, this.#closed.signal)));
      const fresh = found.flatMap(({ run }) => (run === null ? [] : [run]));
      const known = this.rows.peek() ?? [];
      this.#show([...known, ...notOlder(fresh, known)]);
    });
  }

  #show(rows: readonly RunRow[]): void {
    this.rows.value = newestFirst(rows, SHOWN_MAX);
  }

  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.problem.value = null;
    } catch (error) {
      if (!this.#closed.signal.aborted) this.problem.value = problemFrom(error);
    }
  }
}

interface Changed {
  readonly id: string;
  readonly pipelineName: string;
  readonly status: RunRow['status'];
  readonly version: number;
}
