/**
 * Run documents, checkpoints and monthly counters, as the protocols want them. Two faces, so that nobody holds the one
 * that is not theirs:
 *
 * - RunsReader, for answers to clients. Every method takes the tenants that the caller may see, and a run of any other
 *   tenant does not exist in its answers, but for whoever is an approver at one of its gates. No resolver filters by itself, so
 *   none can forget to.
 * - RunsLedger, for the owner of a partition and its projector, which see all of it.
 *
 * RUNS-1 A document, a checkpoint, a counter is written only over a lower (incarnation, sequence) (P8).
 * RUNS-2 A checkpoint is written by its caller after the documents it covers were acknowledged (P6).
 * RUNS-3 Every list is bounded: a page by its limit, an iteration by its batches.
 *
 * All methods reject with the errors of the store's port.
 */
import {
  gatesOf,
  isApprover,
  judge,
  monthOf,
  monthStart,
  RUN_STATUSES,
  type RunView,
  type Sequence,
} from '@penstock/run';
import { BATCH_DOCUMENTS_MAX, IDS_MAX } from './checks.ts';
import { CacheEntries, type NewCacheEntry } from './cache-entries.ts';
import { DeletedRuns, isTombstone, type DeletionsLedger, type Tombstone } from './deleted-runs.ts';
import {
  HookOutbox,
  type HookBacklog,
  type HookOutboxLedger,
  type HookSubscription,
  type NewHookDelivery,
} from './hook-documents.ts';
import { silentLog, type Log } from '@penstock/telemetry/log';
import {
  ScheduleDocuments,
  type ScheduleDocument,
  type SchedulesLedger,
  type UnreadableSchedule,
} from './schedule-documents.ts';
import { pipelineHealth, type PipelineHealth } from './health.ts';
import { isDamage } from './errors.ts';
import { PLACES, type Collection, type DocumentOf, type DocumentStore, type Reading } from './port.ts';
import { RunPages, type RunPage } from './run-pages.ts';
import { RunViews, type RunPlace } from './run-views.ts';
import {
  checkpointsSpec,
  counterId,
  countersSpec,
  decodeRun,
  encodeRun,
  isAlike,
  runsSpec,
  sameAsOf,
  type EncodedRun,
  type RunDocument,
  type UnreadableRun,
} from './run-documents.ts';
import { ViewCache } from './view-cache.ts';

export interface Checkpoint {
  readonly partition: number;
  readonly incarnation: number;
  /** Everything up to and including this commit's sequence in the log is in documents. */
  readonly sequence: Sequence;
  /** The number of that commit; they are numbered without gaps. */
  readonly commit: number;
}

/** What a key has used in a month (P23), as of a commit of its partition. */
export interface RunCounter {
  readonly partition: number;
  readonly tenant: string;
  readonly key: string;
  /** UTC, `2026-11`. */
  readonly month: string;
  /** Runs created that count against the month's limit. */
  readonly runs: number;
  /** Of attempts that ended in the month, milliseconds from their grants. */
  readonly stageMs: number;
  /** Of the key, not of the month: its runs that have a concurrency slot now. Of several months' counters the newest says it. */
  readonly active: number;
  /** Of the key as well: how many may have one, by its newest run; null: any number. */
  readonly maxConcurrent: number | null;
  readonly incarnation: number;
  readonly sequence: Sequence;
}

/** What a tenant has used. */
export interface TenantUsage {
  /** Created in the month. */
  readonly pipelineRuns: number;
  /** Now, whatever the month: those that are not held back. */
  readonly concurrentRuns: number;
  /** Of attempts that ended in the month; whole seconds. */
  readonly stageSeconds: number;
}

export interface RunsReader {
  /** Null: there is none, or it is not of these tenants. */
  get(id: string, options: { readonly tenants: readonly string[] }): Promise<RunDocument | null>;

  /** The same without state and events: cheap. */
  view(id: string, options: { readonly tenants: readonly string[] }): Promise<RunView | null>;

  /** Of any tenant's run with a gate at which somebody of these names may decide; null: there is none such. */
  approverView(id: string, names: readonly string[]): Promise<RunView | null>;

  /** The newest first, by id. Read in steps: how large a view is depends on its run. */
  page(options: RunPage): Promise<RunView[]>;

  /** The newest of the runs before this one, of its tenant, key, trust, commit, file and inputs, that failed by itself; null: none. As projected. */
  earlierFailure(run: AlikeRun): Promise<RunView | null>;

  /** Those that repeat this run, of its tenant, the oldest first and CHILDREN_MAX at most. As projected. */
  children(run: Pick<RunView, 'id' | 'tenant'>): Promise<string[]>;

  /** Of the newest `limit` runs of that name, 1 to 500; an unknown name has none. */
  pipelineHealth(
    pipelineName: string,
    options: { readonly tenants: readonly string[]; readonly limit: number },
  ): Promise<PipelineHealth>;

  /** As projected, so about a second behind. `month` is UTC, `2026-11`; a month without runs has zeros. */
  usage(options: { readonly tenant: string; readonly month: string }): Promise<TenantUsage>;
}

/** What names a pull request to its key; `ref` is that of its head. */
export interface PullRequestName {
  readonly tenant: string;
  readonly key: string;
  readonly provider: string;
  readonly repository: string;
  readonly ref: string;
  readonly number: number;
}

export interface RunsLedger extends SchedulesLedger, DeletionsLedger, HookOutboxLedger {
  /** Writes those that are newer than what is stored; answers the ids of the others. Any number; sent in batches. */
  saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }>;

  /** Null: nothing was projected yet. */
  checkpoint(partition: number): Promise<Checkpoint | null>;
  /** `stale`: the same or a higher one is stored. */
  saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'>;

  /** Documents with `open: true`, oldest id first, read in batches. One that is damaged holds up none of the others. */
  openOf(partition: number): AsyncIterable<RunDocument | UnreadableRun>;
  /** Documents that stand for a later commit than this one; open or not. */
  laterThan(
    partition: number,
    position: { readonly incarnation: number; readonly sequence: Sequence },
  ): AsyncIterable<RunDocument | UnreadableRun>;

  /** Whatever its tenant: for the owner of its partition only. Null: there is none, or it is deleted. */
  getAsOwner(id: string): Promise<RunDocument | null>;
  /** Which of these runs have a document (P7), or had one and are deleted. */
  exists(ids: readonly string[]): Promise<Set<string>>;
  /** Of the newest runs of a pull request, the head of highest sequence (P27); null: none of them is known to have been the head. */
  headOf(of: PullRequestName): Promise<{ readonly sequence: number; readonly commit: string } | null>;

  /** What successes have left for later runs; where an entry of the key is there, it stands. */
  addCaches(entries: readonly NewCacheEntry[]): Promise<void>;

  saveCounters(counters: readonly RunCounter[]): Promise<void>;
  counter(key: string, month: string): Promise<RunCounter | null>;
  countersOf(partition: number, month: string): AsyncIterable<RunCounter>;
}

/** Deliveries that were sent again have later ids than the head that they may not be any more. */
const HEADS_READ = 10;
/** Full documents read at a time in a take-over: some hundreds of KiB, and where all carry their most, 200 MiB. */
const ITERATION_BATCH = 50;
/** Stands for "any number" in a counter's row. */
const NO_LIMIT = -1;
/** What an earlier run has to have in common. */
type AlikeRun = Pick<RunView, 'id' | 'tenant' | 'key' | 'trusted' | 'commit' | 'fingerprint'>;
/** Failed runs of one commit and definition that are looked at, those of strangers too: beyond these it is no luck any more. */
const ALIKE_MAX = 10;
/** Reruns of one run that are told. */
const CHILDREN_MAX = 100;
/** Counters have no parts: a page of them is small. */
const COUNTERS_PAGE = 1_000;
/** Characters of documents sent in one write: a batch stays well below the port's bound, however large its runs are. */
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024;

export class RunsRepository implements RunsReader, RunsLedger {
  readonly #runs: Collection<typeof runsSpec>;
  readonly #views: RunViews;
  readonly #pages: RunPages;
  readonly #checkpoints: Collection<typeof checkpointsSpec>;
  readonly #counters: Collection<typeof countersSpec>;
  readonly #caches: CacheEntries;
  readonly #schedules: ScheduleDocuments;
  readonly #deleted: DeletedRuns;
  readonly #hooks: HookOutbox;

  /**
   * The store has to be opened with `runCollections` among its collections. `viewCharactersMax`: of views that it keeps in memory for
   * the next page, each character a few bytes; default none. `log` is told of runs whose documents are damaged.
   */
  constructor(
    store: DocumentStore,
    {
      viewCharactersMax = 0,
      log = silentLog,
    }: { readonly viewCharactersMax?: number; readonly log?: Pick<Log, 'error'> } = {},
  ) {
    this.#runs = store.collection(runsSpec);
    this.#views = new RunViews(this.#runs, log);
    this.#pages = new RunPages(this.#runs, this.#views, new ViewCache(viewCharactersMax));
    this.#checkpoints = store.collection(checkpointsSpec);
    this.#counters = store.collection(countersSpec);
    this.#caches = new CacheEntries(store);
    this.#schedules = new ScheduleDocuments(store);
    this.#deleted = new DeletedRuns(store);
    this.#hooks = new HookOutbox(store);
  }

  async get(id: string, options: { readonly tenants: readonly string[] }): Promise<RunDocument | null> {
    return await this.#views.document(id, options.tenants);
  }

  async view(id: string, options: { readonly tenants: readonly string[] }): Promise<RunView | null> {
    if (options.tenants.length === 0) return null;
    // By the index of tenants, so that another tenant's run is not even read: time would tell it from one that is not there.
    const where = { tenant: { in: options.tenants }, id: { gte: id, lte: id } };
    return (await this.#views.listed({ where, limit: 1 }))[0] ?? null;
  }

  async approverView(id: string, names: readonly string[]): Promise<RunView | null> {
    const [row] = await this.#views.list({ where: { id: { gte: id, lte: id } }, limit: 1 });
    const view = row === undefined || isTombstone(row) ? null : ((await this.#views.of(row))?.view ?? null);
    return view !== null && isApprover(gatesOf(view), names) ? view : null;
  }

  async page(options: RunPage): Promise<RunView[]> {
    return await this.#pages.read(options);
  }

  async earlierFailure(run: AlikeRun): Promise<RunView | null> {
    const sameAs = sameAsOf(run);
    if (sameAs === '') return null;
    let before: string = run.id;
    for (let looked = 0; looked < ALIKE_MAX; looked++) {
      const [view]: RunView[] = await this.#views.listed({
        where: { tenant: run.tenant, sameAs, status: 'FAILED' },
        orderBy: { field: 'id', direction: 'desc' },
        limit: 1,
        after: { id: before },
      });
      if (view === undefined) return null;
      if (isAlike(view, run) && judge(view)?.verdict === 'failed') return view;
      before = view.id;
    }
    return null;
  }

  async children({ id, tenant }: Pick<RunView, 'id' | 'tenant'>): Promise<string[]> {
    const rows = await this.#runs.list({ where: { tenant, parent: id }, limit: CHILDREN_MAX, parts: [] });
    return rows.map((row) => row.id);
  }

  async pipelineHealth(
    pipelineName: string,
    options: { readonly tenants: readonly string[]; readonly limit: number },
  ): Promise<PipelineHealth> {
    return pipelineHealth(pipelineName, await this.page({ ...options, pipelineName }));
  }

  async usage({ tenant, month }: Parameters<RunsReader['usage']>[0]): Promise<TenantUsage> {
    const counted = new Set<string>();
    let pipelineRuns = 0;
    let concurrentRuns = 0;
    let stageMs = 0;
    // A key that still has runs from before then, and has done nothing since, is counted only where it is the tenant's newest.
    const before = monthOf(monthStart(month) - 1);
    // The newest month first, so that the first counter of a key is the one that knows what it has now.
    for await (const counter of this.#countersOfTenant(tenant)) {
      if (!counted.has(counter.key)) concurrentRuns += counter.active;
      counted.add(counter.key);
      if (counter.month === month) {
        pipelineRuns += counter.runs;
        stageMs += counter.stageMs;
      }
      if (counter.month < before) break;
    }
    return { pipelineRuns, concurrentRuns, stageSeconds: Math.floor(stageMs / 1000) };
  }

  async saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }> {
    const stale: string[] = [];
    for (let from = 0; from < documents.length;) {
      const batch: EncodedRun[] = [];
      for (
        let characters = 0;
        from < documents.length && batch.length < BATCH_DOCUMENTS_MAX && characters < BATCH_CHARACTERS_MAX;
        from++
      ) {
        const document = documents[from] as RunDocument | EncodedRun;
        const encoded = 'story' in document ? document : encodeRun(document);
        batch.push(encoded);
        characters += encoded.view.length + encoded.story.length;
      }
      stale.push(...(await this.#runs.replaceNewer(batch)).stale);
    }
    return { stale };
  }

  async checkpoint(partition: number): Promise<Checkpoint | null> {
    const row = await this.#checkpoints.get(String(partition));
    if (row === null) return null;
    const { incarnation, sequence, commit } = row;
    return { partition, incarnation, sequence, commit };
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'> {
    const { partition, incarnation, sequence, commit } = checkpoint;
    const { stale } = await this.#checkpoints.replaceNewer([
      { id: String(partition), partition, incarnation, sequence, commit },
    ]);
    return stale.length === 0 ? 'saved' : 'stale';
  }

  async *openOf(partition: number): AsyncIterable<RunDocument | UnreadableRun> {
    yield* this.#iterate((after, reading) =>
      this.#runs.list({
        ...reading,
        where: { partition, open: true },
        limit: ITERATION_BATCH,
        ...(after === null ? {} : { after: { id: after.id } }),
      }),
    );
  }

  async *laterThan(
    partition: number,
    position: { readonly incarnation: number; readonly sequence: Sequence },
  ): AsyncIterable<RunDocument | UnreadableRun> {
    const { incarnation, sequence } = position;
    // A pair is no range of an index: first what is later within the incarnation, then the incarnations after it.
    yield* this.#iterate((after, reading) =>
      this.#runs.list({
        ...reading,
        where: { partition, incarnation, sequence: { gt: sequence } },
        orderBy: { field: 'sequence', direction: 'asc' },
        limit: ITERATION_BATCH,
        ...(after === null ? {} : { after: { id: after.id, value: after.sequence } }),
      }),
    );
    yield* this.#iterate((after, reading) =>
      this.#runs.list({
        ...reading,
        where: { partition, incarnation: { gt: incarnation } },
        orderBy: { field: 'incarnation', direction: 'asc' },
        limit: ITERATION_BATCH,
        ...(after === null ? {} : { after: { id: after.id, value: after.incarnation } }),
      }),
    );
  }

  async getAsOwner(id: string): Promise<RunDocument | null> {
    return await this.#views.document(id);
  }

  async exists(ids: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = 0; from < ids.length; from += IDS_MAX) {
      for (const { id } of await this.#runs.getMany(ids.slice(from, from + IDS_MAX), PLACES)) found.add(id);
    }
    return found;
  }

  async addCaches(entries: readonly NewCacheEntry[]): Promise<void> {
    await this.#caches.add(entries);
  }

  async hooksOf(tenants: readonly string[]): Promise<readonly HookSubscription[]> {
    return await this.#hooks.hooksOf(tenants);
  }

  async addHookDeliveries(deliveries: readonly NewHookDelivery[]): Promise<void> {
    await this.#hooks.addHookDeliveries(deliveries);
  }

  async hookBacklog(hook: string, max: HookBacklog): Promise<HookBacklog> {
    return await this.#hooks.hookBacklog(hook, max);
  }

  async headOf({ tenant, key, provider, repository, ref, number }: PullRequestName): ReturnType<RunsLedger['headOf']> {
    const views = await this.#views.listed({
      where: {
        tenant,
        repository: repository.toWellFormed(),
        ref: ref.toWellFormed(),
        status: { in: RUN_STATUSES },
      },
      orderBy: { field: 'id', direction: 'desc' },
      limit: HEADS_READ,
    });
    let head: { readonly sequence: number; readonly commit: string } | null = null;
    for (const view of views) {
      const sequence = view.pullRequest?.number === number ? view.pullRequest.sequence : undefined;
      if (view.key !== key || view.provider !== provider || sequence === undefined || view.commit === undefined)
        continue;
      if (head === null || sequence > head.sequence) head = { sequence, commit: view.commit };
    }
    return head;
  }

  async saveSchedules(documents: readonly ScheduleDocument[]): Promise<void> {
    await this.#schedules.saveSchedules(documents);
  }

  schedulesOf(partition: number): AsyncIterable<ScheduleDocument | UnreadableSchedule> {
    return this.#schedules.schedulesOf(partition);
  }

  newestSchedule(partition: number): ReturnType<SchedulesLedger['newestSchedule']> {
    return this.#schedules.newestSchedule(partition);
  }

  standingOf(id: string): ReturnType<DeletionsLedger['standingOf']> {
    return this.#deleted.standingOf(id);
  }

  async saveTombstones(tombstones: readonly Tombstone[]): Promise<void> {
    await this.#deleted.saveTombstones(tombstones);
  }

  deletedAmong(ids: readonly string[]): Promise<Set<string>> {
    return this.#deleted.deletedAmong(ids);
  }

  async saveCounters(counters: readonly RunCounter[]): Promise<void> {
    for (let from = 0; from < counters.length; from += BATCH_DOCUMENTS_MAX) {
      await this.#counters.replaceNewer(counters.slice(from, from + BATCH_DOCUMENTS_MAX).map(rowOfCounter));
    }
  }

  async counter(key: string, month: string): Promise<RunCounter | null> {
    const row = await this.#counters.get(counterId(key, month));
    return row === null ? null : counterOf(row);
  }

  async *countersOf(partition: number, month: string): AsyncIterable<RunCounter> {
    let after: { readonly id: string } | undefined;
    for (;;) {
      const rows = await this.#counters.list({ where: { partition, month }, limit: COUNTERS_PAGE, after });
      yield* rows.map(counterOf);
      if (rows.length < COUNTERS_PAGE) return;
      after = rows.at(-1);
    }
  }

  async *#countersOfTenant(tenant: string): AsyncIterable<RunCounter> {
    let after: { readonly id: string; readonly value: string } | undefined;
    for (;;) {
      const rows = await this.#counters.list({
        where: { tenant },
        orderBy: { field: 'month', direction: 'desc' },
        limit: COUNTERS_PAGE,
        ...(after === undefined ? {} : { after }),
      });
      yield* rows.map(counterOf);
      const last = rows.at(-1);
      if (last === undefined || rows.length < COUNTERS_PAGE) return;
      after = { id: last.id, value: last.month };
    }
  }

  async *#iterate(
    read: <P extends 'view' | 'story'>(
      after: RunPlace | null,
      reading: Reading<P>,
    ) => Promise<DocumentOf<typeof runsSpec, P>[]>,
  ): AsyncIterable<RunDocument | UnreadableRun> {
    let after: RunPlace | null = null;
    for (;;) {
      const rows: (RunRow | RunPlace)[] = await read(after, { parts: ['view', 'story'] }).catch((error: unknown) => {
        if (!isDamage(error)) throw error;
        return read(after, PLACES);
      });
      for (const row of rows) {
        const run = await this.#decode(row);
        if (run !== null) yield run;
      }
      if (rows.length < ITERATION_BATCH) return;
      after = rows.at(-1) ?? null;
    }
  }

  /** Of a page with one that is damaged each is read by itself. Null: it is deleted by now. */
  async #decode(place: RunRow | RunPlace): Promise<RunDocument | UnreadableRun | null> {
    try {
      if (!('story' in place)) return await this.#views.document(place.id);
      return isTombstone(place) ? null : decodeRun(place);
    } catch (error) {
      if (!isDamage(error)) throw error;
      const { id, open, incarnation, sequence } = place;
      return { id, open, incarnation, sequence, unreadable: error };
    }
  }
}

type RunRow = DocumentOf<typeof runsSpec>;

function counterOf(row: DocumentOf<typeof countersSpec>): RunCounter {
  const { partition, tenant, key, month, runs, stageMs, active, maxConcurrent, incarnation, sequence } = row;
  return {
    partition,
    tenant,
    key,
    month,
    runs,
    stageMs,
    active,
    maxConcurrent: maxConcurrent === NO_LIMIT ? null : maxConcurrent,
    incarnation,
    sequence,
  };
}

function rowOfCounter({ tenant, key, maxConcurrent, ...counter }: RunCounter): DocumentOf<typeof countersSpec> {
  // The store takes no half of a surrogate pair; the id is made from the key as it is.
  return {
    ...counter,
    id: counterId(key, counter.month),
    tenant: tenant.toWellFormed(),
    key: key.toWellFormed(),
    maxConcurrent: maxConcurrent ?? NO_LIMIT,
  };
}
