/**
 * Reading runs, so that no answer goes back in time (P22): what lives is asked of its owner, what has ended is in the
 * store, and of two views the one with the higher version is newer.
 *
 *  RUNREADS-1 A read of one run ends within the time that its owner has to answer (P3), also where the store does not answer at all.
 *
 * The order of asking matters. A run leaves its owner's memory only when its end is in the store, so "owner, then
 * store" finds every run; the reverse could miss one that moves in between. A view that has ended does not change.
 */
import { within } from '@penstock/async';
import type { Owners } from './owners.ts';
import type { GetRequest } from '@penstock/bus';
import {
  gatesOf,
  isApprover,
  isEnded,
  isReached,
  isRunId,
  matchesFilter,
  partitionOfKey,
  repositoryOfReach,
  SERVICE_TENANT,
  tenantsOfReaches,
  type RunFilter,
  type RunId,
  type RunView,
} from '@penstock/run';
import {
  HealthTally,
  StoreError,
  StoreUnavailable,
  type PipelineHealth,
  type RunsReader,
  type TenantUsage,
} from '@penstock/store';
import { Unavailable } from '@penstock/errors';

export interface RunsPage {
  readonly limit: number;
  /** Only runs of a lower id: the last one of the page before. */
  readonly before?: RunId | undefined;
  readonly filter?: RunFilter | undefined;
  /** Default true; without, the views have no stages. */
  readonly withStages?: boolean | undefined;
  /** Told the characters of each view that is read; what it throws ends the reading. */
  readonly meter?: ((characters: number) => void | Promise<void>) | undefined;
}

/** A store that is there answers in a tenth of it. */
const STORE_FIRST_MS = 1_000;
/** A stage in JSON, about. */
const STAGE_CHARACTERS = 200;

interface Stored {
  readonly view: RunView | null;
  /** The store is away. */
  readonly problem?: unknown;
}

export class RunReads {
  readonly #owners: Owners;
  readonly #store: RunsReader;
  /** What is about to be asked, by tenants. */
  readonly #asking = new Map<string, Promise<string | null>>();

  constructor(owners: Owners, store: RunsReader) {
    this.#owners = owners;
    this.#store = store;
  }

  /**
   * Null: there is no such run for these tenants. Throws `Unavailable` where that cannot be said truthfully: the owner
   * is away and the store knows no end of the run, or the store is away and the owner does not know the run.
   */
  async view(
    runId: RunId,
    tenants: readonly string[],
    /** What the reader is known by as an approver of somebody else's run; asked only where it is none of these tenants'. */
    namesOf?: () => Promise<readonly string[]>,
  ): Promise<RunView | null> {
    if (!isRunId(runId)) return null;
    const until = performance.now() + this.#owners.msMax;
    const first = this.#stored(runId, tenants);
    // A store that is slow keeps no run that lives from being answered.
    const stored = await within(STORE_FIRST_MS, first, () => undefined);
    if (stored !== undefined && hasEnd(stored)) return stored.view;
    const live = await this.#liveOrEnded(runId, first, until);
    // Another tenant's run takes the way of one that does not exist to its end: no call fewer tells them apart.
    if (live !== undefined && isReached(tenants, live)) return live;
    const after = await this.#storedAfter(first, until, () => this.#stored(runId, tenants));
    if (after.problem !== undefined) throw unavailableStore(after.problem);
    if (after.view !== null || namesOf === undefined) return after.view;
    return await this.#viewOfApprover(runId, live, await namesOf());
  }

  /** Whoever may decide a gate of the run may read it (P26). */
  async #viewOfApprover(runId: RunId, live: RunView | undefined, names: readonly string[]): Promise<RunView | null> {
    if (names.length === 0) return null;
    const stored = await this.#store.approverView(runId, names).catch((error: unknown) => {
      throw unavailableStore(error);
    });
    if (live === undefined) return stored;
    return isApprover(gatesOf(live), names) ? live : null;
  }

  /** The newest first, by id. */
  async newest(tenants: readonly string[], page: RunsPage): Promise<RunView[]> {
    const repositories = tenants.filter((reach) => repositoryOfReach(reach) !== null);
    if (repositories.length === 0) return await this.#newest(tenants, page);
    const own = tenants.filter((reach) => repositoryOfReach(reach) === null);
    const found = await this.#newest(own, page);
    // One after the other: of many, each asks all that a page asks.
    for (const reach of repositories) found.push(...(await this.#newestOf(reach, page)));
    const each = new Map(found.map((view) => [view.id, view]));
    return [...each.values()].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, page.limit);
  }

  /** Of one repository of a tenant. */
  async #newestOf(reach: string, page: RunsPage): Promise<RunView[]> {
    const of = repositoryOfReach(reach);
    const { repository: wanted } = page.filter ?? {};
    if (of === null || (wanted !== undefined && wanted !== of.repository)) return [];
    const filter = { ...page.filter, repository: of.repository };
    return await this.#newest([of.tenant], { ...page, filter }, (view) => isReached([reach], view));
  }

  /** Of the newest `limit` runs of that name; `meter` as of a page. */
  async health(
    pipelineName: string,
    tenants: readonly string[],
    { limit, meter }: Pick<RunsPage, 'limit' | 'meter'>,
  ): Promise<PipelineHealth> {
    const tally = new HealthTally();
    for (const view of await this.#newest(tenants, { limit, meter, filter: { pipelineName } })) {
      await meter?.(0);
      tally.add(view);
    }
    return tally.health(pipelineName);
  }

  /**
   * A text that is another one whenever a commit about a run of these tenants lies between two askings: what was read after
   * one asking is what would be read now where the next one answers the same (P22). Null: an owner does not say.
   */
  changes(tenants: readonly string[]): Promise<string | null> {
    const name = JSON.stringify(tenants);
    const known = this.#asking.get(name);
    // Shared with those only that came before it is asked.
    if (known !== undefined) return known;
    const asked = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#asking.delete(name);
      return this.#changes(tenants);
    });
    this.#asking.set(name, asked);
    return asked;
  }

  async #changes(reaches: readonly string[]): Promise<string | null> {
    const tenants = tenantsOfReaches(reaches);
    const request: GetRequest = { runIds: [], changesOf: tenants };
    const replies = await Promise.all(
      this.#partitionsOf(tenants).map(async (partition) => this.#owners.get(partition, request)),
    );
    if (replies.some(({ changed }) => changed === undefined)) return null;
    return replies.map(({ epoch, changed }) => `${epoch}.${changed}`).join(' ');
  }

  /** As the store's, which is about a second behind. Throws `Unavailable`. */
  async earlierFailure(run: RunView): Promise<RunView | null> {
    return await this.#store.earlierFailure(run).catch((error: unknown) => {
      throw unavailableStore(error);
    });
  }

  /** The ids of the runs that repeat it, as the store has them. Throws `Unavailable`. */
  async children(run: RunView): Promise<string[]> {
    return await this.#store.children(run).catch((error: unknown) => {
      throw unavailableStore(error);
    });
  }

  /** Of a user's tenant, whose runs share one key: its owner knows what the store does not yet have. `month` is UTC, `2026-11`. */
  async usage({ tenant, month }: { readonly tenant: string; readonly month: string }): Promise<TenantUsage> {
    const { usage } = await this.#owners.get(partitionOfKey(tenant, this.#owners.partitions), {
      runIds: [],
      usage: { key: tenant, month },
    });
    if (usage !== undefined)
      return { pipelineRuns: usage.runs, concurrentRuns: usage.active, stageSeconds: Math.floor(usage.stageMs / 1000) };
    // An owner of an earlier release does not say.
    return await this.#store.usage({ tenant, month }).catch((error: unknown) => {
      throw unavailableStore(error);
    });
  }

  async #newest(
    tenants: readonly string[],
    page: RunsPage,
    isWanted: (view: RunView) => boolean = () => true,
  ): Promise<RunView[]> {
    const { limit, filter = {} } = page;
    const views = new Map<string, RunView>();
    for (const view of await this.#live(tenants, page)) keepNewer(views, view);
    let { before } = page;
    for (;;) {
      const stored = await this.#page({
        ...filter,
        tenants,
        limit,
        before,
        meter: page.meter,
        withStages: page.withStages,
      });
      const live = new Set(views.keys());
      for (const view of stored) keepNewer(views, view);
      const open = [...views.values()].filter((view) => !isEnded(view.status) && !live.has(view.id));
      for (const view of await this.#askedAgain(open, tenants)) keepNewer(views, view);
      const found = [...views.values()]
        .filter((view) => tenants.includes(view.tenant) && isWanted(view) && matchesFilter(view, filter))
        .sort((a, b) => (a.id < b.id ? 1 : -1));
      const last = stored.at(-1)?.id;
      // What the store said may be outdated, so fewer than `limit` may be left; behind its last one it was not asked yet.
      if (stored.length < limit || last === undefined || found.filter(({ id }) => id >= last).length >= limit)
        return found.slice(0, limit);
      before = last;
    }
  }

  /** Of each partition the newest that its owner has in memory. */
  async #live(tenants: readonly string[], { limit, before, filter, meter }: RunsPage): Promise<RunView[]> {
    const replies = await Promise.all(
      this.#partitionsOf(tenants).map(async (partition) =>
        this.#got(partition, { runIds: [], tenants, newest: limit, before, filter }, meter),
      ),
    );
    return replies.flat().filter(({ id }) => before === undefined || id < before);
  }

  /** Asks on for what was too much for one answer. */
  async #got(partition: number, request: GetRequest, meter?: RunsPage['meter']): Promise<RunView[]> {
    const views: RunView[] = [];
    for (let next: GetRequest | undefined = request; next !== undefined;) {
      const { runs, rest = [] }: { readonly runs: readonly RunView[]; readonly rest?: readonly RunId[] | undefined } =
        await this.#owners.get(partition, next);
      for (const view of runs) {
        await meter?.(view.stages.length * STAGE_CHARACTERS);
        views.push(view);
      }
      next = rest.length === 0 ? undefined : { runIds: rest };
    }
    return views;
  }

  async #page(options: Parameters<RunsReader['page']>[0]): Promise<RunView[]> {
    return await this.#store.page(options).catch((error: unknown) => {
      throw unavailableStore(error);
    });
  }

  /** Runs that the store shows as open and that are not among their owner's newest: one request to each partition. */
  async #askedAgain(open: readonly RunView[], tenants: readonly string[]): Promise<RunView[]> {
    if (open.length === 0) return [];
    const byPartition = Map.groupBy(open, (view) => this.#owners.partitionOf(view.id));
    const replies = await Promise.all(
      [...byPartition].map(([partition, views]) => this.#got(partition, { runIds: views.map(({ id }) => id) })),
    );
    const found = replies.flat();
    const known = new Set(found.map(({ id }) => id));
    // Those that left their owner's memory in between have their end in the store by now.
    const gone = open.filter(({ id }) => !known.has(id));
    const ended = await Promise.all(
      gone.map(({ id }) =>
        this.#store.view(id, { tenants }).catch((error: unknown) => {
          throw unavailableStore(error);
        }),
      ),
    );
    return [...found, ...ended.filter((view) => view !== null)];
  }

  /** A user's runs all share one key and so one partition; those of `service` are spread over all. */
  #partitionsOf(tenants: readonly string[]): number[] {
    const { partitions } = this.#owners;
    if (tenants.includes(SERVICE_TENANT)) return Array.from({ length: partitions }, (_, partition) => partition);
    return [...new Set(tenants.map((tenant) => partitionOfKey(tenant, partitions)))];
  }

  /** As its owner has it, or as a slow store has its end, which may come before the owner's answer, or in place of one. */
  async #liveOrEnded(runId: RunId, first: Promise<Stored>, until: number): Promise<RunView | undefined> {
    const end = first.then(
      (stored) => (hasEnd(stored) ? stored.view : undefined),
      () => undefined,
    );
    const owned = this.#owners
      .get(this.#owners.partitionOf(runId), { runIds: [runId] })
      .then(({ runs }) => runs.find(({ id }) => id === runId));
    const ended = end.then((view) => view ?? owned);
    const asked = owned.catch(async (error: unknown) => {
      const view = await end;
      if (view === undefined) throw error;
      return view;
    });
    return await within(leftTo(until), Promise.race([ended, asked]), () => {
      throw new Unavailable('The scheduler that has this run does not answer; try again.');
    });
  }

  /** What the store has, asked once the owner has said that it does not have the run. An end that it had before will do. */
  async #storedAfter(first: Promise<Stored>, until: number, ask: () => Promise<Stored>): Promise<Stored> {
    const late = (): Stored => ({ view: null, problem: new StoreUnavailable('of runs', 'no answer in time') });
    const before = await within(leftTo(until), first, late);
    if (hasEnd(before)) return before;
    return leftTo(until) === 0 ? late() : await within(leftTo(until), ask(), late);
  }

  async #stored(runId: RunId, tenants: readonly string[]): Promise<Stored> {
    try {
      const view = await this.#store.view(runId, { tenants: tenantsOfReaches(tenants) });
      return { view: view === null || isReached(tenants, view) ? view : null };
    } catch (error) {
      if (!(error instanceof StoreError) || !error.retryable) throw error;
      return { view: null, problem: error };
    }
  }
}

function hasEnd(stored: Stored): stored is Stored & { readonly view: RunView } {
  return stored.view !== null && isEnded(stored.view.status);
}

function leftTo(until: number): number {
  return Math.max(0, until - performance.now());
}

function keepNewer(views: Map<string, RunView>, view: RunView): void {
  const known = views.get(view.id);
  if (known === undefined || known.version < view.version) views.set(view.id, view);
}

/** What can be retried becomes `Unavailable`; the rest is an error of ours. */
export function unavailableStore(error: unknown): unknown {
  return error instanceof StoreError && error.retryable
    ? new Unavailable('The server cannot reach its database at the moment; try again.', { cause: error })
    : error;
}
