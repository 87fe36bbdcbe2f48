/**
 * Pages of runs, the newest first. Where views are kept, a page is a list of versions, which an index answers with next to nothing read,
 * and the documents of those that are new or another version by now.
 */
import { RUN_STATUSES, type RunFilter, type RunView } from '@penstock/run';
import { StoreUsageError } from './errors.ts';
import type { Collection, Condition, DocumentOf } from './port.ts';
import type { runsSpec } from './run-documents.ts';
import type { ViewCache, ViewVersion } from './view-cache.ts';

export interface RunPage extends RunFilter {
  readonly tenants: readonly string[];
  /** The last id of the page before. */
  readonly before?: string | undefined;
  /** 1 to 500. */
  readonly limit: number;
  /** Default true; without, views have no stages, and a page of large runs takes no memory. */
  readonly withStages?: boolean | undefined;
  /** Told the characters of each view before it is taken; what it throws ends the reading. */
  readonly meter?: ((characters: number) => void | Promise<void>) | undefined;
}

const PAGE_LIMIT_MAX = 500;
/** Views read at first: some KiB each as a rule, and at most 2 MiB where runs are as large as they may be. */
const READ_FIRST = 10;
/** Views are then read in steps of about so many characters, so that no answer of the store is large. */
const READ_CHARACTERS = 2 * 1024 * 1024;

export class RunPages {
  readonly #runs: Collection<typeof runsSpec>;
  readonly #views: ViewCache;

  constructor(runs: Collection<typeof runsSpec>, views: ViewCache) {
    this.#runs = runs;
    this.#views = views;
  }

  async read(options: RunPage): Promise<RunView[]> {
    const { limit } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_LIMIT_MAX)
      throw new StoreUsageError('of runs', `a page of ${limit} runs; it is 1 to ${PAGE_LIMIT_MAX}`);
    if (options.tenants.length === 0) return [];
    const page = new Page(this.#runs, this.#views, options);
    if (this.#views.charactersMax === 0) await page.readUpTo(limit);
    else await page.readWithKept();
    return page.views;
  }
}

/** One page being read. */
class Page {
  readonly views: RunView[] = [];
  readonly #runs: Collection<typeof runsSpec>;
  readonly #kept: ViewCache;
  readonly #options: RunPage;
  #before: string | undefined;
  #rowsMax = READ_FIRST;

  constructor(runs: Collection<typeof runsSpec>, kept: ViewCache, options: RunPage) {
    this.#runs = runs;
    this.#kept = kept;
    this.#options = options;
    this.#before = options.before;
  }

  /** Documents until there are so many views; false: there are no more. */
  async readUpTo(count: number): Promise<boolean> {
    while (this.views.length < count) {
      const wanted = Math.min(this.#rowsMax, count - this.views.length);
      const rows = await this.#runs.list({ ...this.#selection(wanted), parts: ['view'] });
      let characters = 0;
      for (const row of rows) characters += await this.#take(row);
      if (rows.length < wanted) return false;
      this.#before = rows.at(-1)?.id;
      this.#rowsMax = Math.max(
        1,
        Math.min(PAGE_LIMIT_MAX, Math.floor((READ_CHARACTERS * rows.length) / (characters + 1))),
      );
    }
    return true;
  }

  /** What is deleted between the list and the documents leaves room, for which another list is asked. */
  async readWithKept(): Promise<void> {
    const { limit } = this.#options;
    while (this.views.length < limit) {
      const wanted = limit - this.views.length;
      const versions: ViewVersion[] = await this.#runs.list({ ...this.#selection(wanted), parts: [] });
      for (let at = 0; at < versions.length && this.views.length < limit;) {
        at = await this.#giveKept(versions, at);
        const next = versions.findIndex((version, index) => index >= at && this.#kept.has(version));
        const count = (next < 0 ? versions.length : next) - at;
        if (!(await this.readUpTo(Math.min(limit, this.views.length + count)))) return;
        // Others may have come between them, and been read in their place.
        const reached = this.#before ?? '';
        while (at < versions.length && (versions[at] as ViewVersion).id >= reached) at += 1;
      }
      if (versions.length < wanted) return;
    }
  }

  /** Answers the place of the first that is not kept. */
  async #giveKept(versions: readonly ViewVersion[], from: number): Promise<number> {
    let at = from;
    for (; at < versions.length && this.views.length < this.#options.limit; at++) {
      const version = versions[at] as ViewVersion;
      const kept = this.#kept.get(version);
      if (kept === undefined) break;
      await this.#options.meter?.(kept.characters);
      this.#give(kept.view);
      this.#before = version.id;
    }
    return at;
  }

  /** Answers its characters. */
  async #take(row: DocumentOf<typeof runsSpec, 'view'>): Promise<number> {
    const text = String(row.view);
    await this.#options.meter?.(text.length);
    const view = JSON.parse(text) as RunView;
    this.#kept.keep(row, view, text.length);
    this.#give(view);
    return text.length;
  }

  #give(view: RunView): void {
    this.views.push(this.#options.withStages === false ? { ...view, stages: [] } : view);
  }

  #selection(limit: number): Omit<Parameters<Collection<typeof runsSpec>['list']>[0], 'parts'> {
    return {
      where: { tenant: { in: this.#options.tenants }, ...conditionsOf(this.#options) },
      orderBy: { field: 'id', direction: 'desc' },
      limit,
      ...(this.#before === undefined ? {} : { after: { id: this.#before } }),
    };
  }
}

function conditionsOf({ pipelineName, status, repository, refs }: RunFilter): Record<string, Condition> {
  const isOrigin = repository !== undefined || refs !== undefined;
  return {
    ...(pipelineName === undefined ? {} : { pipelineName }),
    ...(repository === undefined ? {} : { repository }),
    ...(refs === undefined ? {} : { ref: { in: refs } }),
    ...(status !== undefined ? { status } : isOrigin ? { status: { in: RUN_STATUSES } } : {}),
  };
}
