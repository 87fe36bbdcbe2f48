/**
 * Pages of runs, the newest first. Where views are kept, a page that is asked for again is one question to the store: a list of
 * versions, which an index answers with next to nothing read, and the documents of those that are new or another version by now.
 */
import { RUN_STATUSES, type RunFilter, type RunView } from '@penstock/run';
import type { Collection, Condition, KnownVersion } from './port.ts';
import type { runsSpec } from './run-documents.ts';
import { isDamage, StoreUsageError } from './errors.ts';
import type { RunPlace, RunViews, ViewRow } from './run-views.ts';
import type { ViewCache } from './view-cache.ts';

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

/** About as many as views are kept, at 100 bytes each. */
const ASKED_IDS_MAX = 10_000;
const ASKED_PAGES_MAX = 500;

export class RunPages {
  readonly #runs: Collection<typeof runsSpec>;
  readonly #views: RunViews;
  readonly #kept: ViewCache;
  readonly #asked = new AskedPages();

  constructor(runs: Collection<typeof runsSpec>, views: RunViews, kept: ViewCache) {
    this.#runs = runs;
    this.#views = views;
    this.#kept = kept;
  }

  async read(options: RunPage): Promise<RunView[]> {
    const { limit } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > PAGE_LIMIT_MAX)
      throw new StoreUsageError('of runs', `a page of ${limit} runs; it is 1 to ${PAGE_LIMIT_MAX}`);
    if (options.tenants.length === 0) return [];
    const page = new Page(this.#runs, this.#views, this.#kept, options);
    if (this.#kept.charactersMax === 0) await page.read();
    else {
      await page.readWithKept(this.#asked.idsOf(options)).catch((error: unknown) => {
        if (!isDamage(error)) throw error;
        // A document among those that it has not given yet cannot be decoded.
        return page.read();
      });
      this.#asked.set(
        options,
        page.views.map(({ id }) => id),
      );
    }
    return page.views;
  }
}

/** Which runs a page had when it was read the last time: those of them that are kept need not be read. */
class AskedPages {
  readonly #ids = new Map<string, readonly string[]>();
  #count = 0;

  idsOf(page: RunPage): readonly string[] {
    return this.#ids.get(nameOf(page)) ?? [];
  }

  set(page: RunPage, ids: readonly string[]): void {
    const name = nameOf(page);
    this.#forget(name);
    this.#ids.set(name, ids);
    this.#count += ids.length;
    for (const oldest of this.#ids.keys()) {
      if (this.#count <= ASKED_IDS_MAX && this.#ids.size <= ASKED_PAGES_MAX) break;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    this.#count -= this.#ids.get(name)?.length ?? 0;
    this.#ids.delete(name);
  }
}

function nameOf({ tenants, before, limit, pipelineName, repository, refs, status }: RunPage): string {
  return JSON.stringify([
    tenants,
    before ?? null,
    limit,
    pipelineName ?? null,
    repository ?? null,
    refs ?? null,
    status ?? null,
  ]);
}

/** One page being read. */
class Page {
  readonly views: RunView[] = [];
  readonly #runs: Collection<typeof runsSpec>;
  readonly #stored: RunViews;
  readonly #kept: ViewCache;
  readonly #options: RunPage;
  #before: string | undefined;
  #rowsMax = READ_FIRST;

  constructor(runs: Collection<typeof runsSpec>, stored: RunViews, kept: ViewCache, options: RunPage) {
    this.#runs = runs;
    this.#stored = stored;
    this.#kept = kept;
    this.#options = options;
    this.#before = options.before;
  }

  async read(): Promise<void> {
    const { limit } = this.#options;
    while (this.views.length < limit) {
      const wanted = Math.min(this.#rowsMax, limit - this.views.length);
      const rows = await this.#stored.list(this.#selection(wanted));
      let characters = 0;
      for (const row of rows) characters += await this.#take(row);
      if (rows.length < wanted) return;
      this.#before = rows.at(-1)?.id;
      this.#reads(rows.length, characters);
    }
  }

  /** `asked` are those that it gave the last time. */
  async readWithKept(asked: readonly string[]): Promise<void> {
    const { limit } = this.#options;
    let known = this.#kept.versionsOf(asked);
    for (let isLast = false; !isLast && this.views.length < limit;) {
      const list = await this.#runs.listFresh(
        { ...this.#selection(Math.min(limit - this.views.length, this.#rowsMax + known.length)), parts: ['view'] },
        { known, freshMax: this.#rowsMax },
      );
      let [characters, read] = [0, 0];
      isLast = list.isLast;
      for (const row of list.documents) {
        if (!isNamed(row)) {
          characters += await this.#take(row);
          read += 1;
        } else if (!(await this.#giveKept(row))) {
          // It had to make room meanwhile, and is read with those behind it.
          known = this.#kept.versionsOf(asked);
          isLast = false;
          break;
        }
        this.#before = isNamed(row) ? row[0] : row.id;
      }
      if (read > 0) this.#reads(read, characters);
    }
  }

  async #giveKept([id, incarnation, sequence]: KnownVersion): Promise<boolean> {
    const kept = this.#kept.get({ id, incarnation, sequence }, { withStages: this.#options.withStages !== false });
    if (kept === undefined) return false;
    await this.#options.meter?.(kept.characters);
    this.views.push(kept.view);
    return true;
  }

  /** So many documents at the next reading. */
  #reads(rows: number, characters: number): void {
    this.#rowsMax = Math.max(1, Math.min(PAGE_LIMIT_MAX, Math.floor((READ_CHARACTERS * rows) / (characters + 1))));
  }

  /** Answers its characters. */
  async #take(row: ViewRow | RunPlace): Promise<number> {
    const found = await this.#stored.of(row, this.#options.meter);
    if (found === null) return 0;
    const { view, characters, isWhole } = found;
    // What a person has mended since would be of the same version.
    if (isWhole) this.#kept.keep(row, view, characters);
    this.#give(view);
    return characters;
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

function isNamed<D>(row: D | KnownVersion): row is KnownVersion {
  return Array.isArray(row);
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
