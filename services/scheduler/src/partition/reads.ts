/** What a partition answers about its runs without deciding anything: committed state, by an owner that is sure to be it (P4). */
import type {
  AttemptReply,
  AttemptRequest,
  GetReply,
  GetRequest,
  OpenReply,
  OpenRequest,
  WatchReply,
  WatchRequest,
} from '@penstock/bus';
import { cacheScopesOf, viewOf, type Epoch, type RunId, type RunView } from '@penstock/run';
import type { CommitCycle } from './commit-cycle.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import { awaitsResult, expireMsOf } from './results.ts';
import { liveAttemptOf } from '../dispatch/job-deliveries.ts';
import type { Parking } from './parking.ts';
import type { NewestRuns } from '../run/newest-runs.ts';
import { watchPage } from './watch-page.ts';

/** Of stages in one answer: it is made and sent between two commits, and so is to be small. */
const ANSWER_STAGES_MAX = 2_000;
/** Characters of outputs in one answer, which may be much more than its stages. */
const ANSWER_OUTPUTS_MAX = 512 * 1024;

/** Runs in one answer that are read for it; the others are asked for by their ids. */
const OUTSIDE_MAX = 16;

export interface ReadsHost {
  readonly epoch: Epoch;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly parking: Pick<Parking, 'find' | 'read'>;
  readonly newest: Pick<NewestRuns, 'newest'>;
  readonly counts: Pick<KeyCounts, 'use'>;
  readonly cycle: Pick<CommitCycle, 'whenCommitted' | 'whenAllCommitted' | 'changes'>;
  mayAnswer(): boolean;
}

export class Reads {
  readonly #host: ReadsHost;

  constructor(host: ReadsHost) {
    this.#host = host;
  }

  /** Calls back with what is decided about the run so far committed, if it may still be answered then. */
  whenCommitted(run: LiveRun, then: () => void): void {
    this.#host.cycle.whenCommitted(run, () => {
      if (this.#host.mayAnswer()) then();
    });
  }

  get(request: GetRequest, reply: (reply: GetReply) => void): void {
    const { parking, newest } = this.#host;
    if (!this.#host.mayAnswer()) return;
    const ids = new Set(request.runIds);
    if (request.tenants !== undefined && request.newest !== undefined)
      for (const { id } of newest.newest(request.newest, { ...request, tenants: request.tenants })) ids.add(id);
    const outside = [...ids].filter((id) => parking.find(id) !== undefined);
    const rest = new Set(outside.slice(OUTSIDE_MAX));
    this.#readOutside(outside.slice(0, OUTSIDE_MAX), (outsiders) => {
      // One that has gone out since is asked for by its id.
      for (const id of ids) if (parking.find(id) !== undefined && !outsiders.has(id)) rest.add(id);
      this.#answer(request, [...ids], { outsiders, rest }, reply);
    });
  }

  /** Calls back with those that could be read, unless one could not: that is to be asked again. At once where there is none. */
  #readOutside(ids: readonly RunId[], then: (runs: ReadonlyMap<RunId, LiveRun>) => void): void {
    const runs = new Map<RunId, LiveRun>();
    let left = ids.length;
    if (left === 0) then(runs);
    for (const id of ids) {
      this.#host.parking.read(id, (run) => {
        left -= 1;
        if (run !== 'unavailable') runs.set(id, run);
        if (left === 0 && runs.size === ids.length) then(runs);
      });
    }
  }

  #answer(
    request: GetRequest,
    ids: readonly RunId[],
    { outsiders, rest }: { readonly outsiders: ReadonlyMap<RunId, LiveRun>; readonly rest: ReadonlySet<RunId> },
    reply: (reply: GetReply) => void,
  ): void {
    const { epoch, runs, parking, cycle, counts } = this.#host;
    // What has come back meanwhile may be newer than what was read.
    const found = ids.flatMap(
      (id) => runs.get(id) ?? (parking.find(id) === undefined ? [] : (outsiders.get(id) ?? [])),
    );
    const answer = (): void => {
      if (!this.#host.mayAnswer()) return;
      const { usage, changesOf } = request;
      const views = viewsOf(found.filter((run) => run.committedVersion > 0));
      const left = [...(views.rest ?? []), ...rest];
      reply({
        ok: true,
        epoch,
        runs: views.runs,
        ...(left.length === 0 ? {} : { rest: left }),
        ...(usage === undefined ? {} : { usage: counts.use(usage.key, usage.month) }),
        ...(changesOf === undefined ? {} : { changed: cycle.changes.lastOf(changesOf) }),
      });
    };
    // What is ahead of its commit is answered with it: an older state than the asker may have seen is never shown.
    if (found.every((run) => run.isCommitted)) answer();
    else cycle.whenAllCommitted(answer);
  }

  watch(request: WatchRequest, reply: (reply: WatchReply) => void): void {
    const { epoch, runs, parking } = this.#host;
    const { runId, after } = request;
    if (!this.#host.mayAnswer()) return;
    const run = runs.get(runId);
    const parked = parking.find(runId);
    if (run !== undefined) this.whenCommitted(run, () => reply({ ok: true, epoch, run: watchPage(run, after) }));
    else if (parked === undefined) reply({ ok: true, epoch, run: null });
    else if (after >= parked.version) {
      const { tenant, version } = parked;
      reply({ ok: true, epoch, run: { tenant, version, events: [], more: false } });
    } else
      this.#readOutside([runId], (outsiders) => {
        const read = outsiders.get(runId);
        if (read === undefined || parking.find(runId) === undefined) this.watch(request, reply);
        else if (this.#host.mayAnswer()) reply({ ok: true, epoch, run: watchPage(read, after) });
      });
  }

  /** Whether the attempt lives with this runner: what it stores is then the run's. */
  attempt({ ref, runner }: AttemptRequest, expireMs: number, reply: (reply: AttemptReply) => void): void {
    const { epoch, runs } = this.#host;
    if (!this.#host.mayAnswer()) return;
    const run = runs.get(ref.runId);
    if (run === undefined) reply({ ok: true, epoch, attempt: null });
    else
      this.whenCommitted(run, () => {
        const [created] = run.events;
        const artifactBytes = created?.type === 'run_created' ? created.artifactBytes : undefined;
        const { tenant, key } = run.state;
        const lives = livesWith(run, ref, runner);
        const caches = cacheScopesOf(run.state);
        const adopted = adoptedFrom(run);
        const readsRuns = adopted.length === 0 ? {} : { readsRuns: adopted };
        const kept = {
          ...readsRuns,
          tenant,
          key,
          artifactBytes,
          expireMs: expireMsOf(run, ref.stage, expireMs),
          caches,
        };
        reply({ ok: true, epoch, attempt: lives ? kept : null });
      });
  }

  open(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    const { epoch, runs, parking } = this.#host;
    const isOpen = (id: RunId): boolean => runs.has(id) || parking.find(id) !== undefined;
    if (this.#host.mayAnswer()) reply({ ok: true, epoch, open: request.runIds.filter(isOpen) });
  }
}

function livesWith(run: LiveRun, ref: AttemptRequest['ref'], runner: string): boolean {
  const live = liveAttemptOf(run, ref.stage);
  if (live === undefined) return false;
  const { session, credit } = live;
  return awaitsResult(run, { session, credit, ...ref }, runner);
}

/** The runs that have kept what stages of this one are taken to have kept (P30). */
function adoptedFrom({ state }: LiveRun): RunId[] {
  const runs = new Set<RunId>();
  for (const { artifacts } of state.stages.touched()) if (artifacts?.run !== undefined) runs.add(artifacts.run);
  return [...runs];
}

/** One run is answered whatever its size; what is too much beside it is named. */
function viewsOf(found: readonly LiveRun[]): { readonly runs: readonly RunView[]; readonly rest?: readonly RunId[] } {
  const runs: RunView[] = [];
  let [stages, outputs] = [0, 0];
  for (const [index, run] of found.entries()) {
    if (stages >= ANSWER_STAGES_MAX || outputs >= ANSWER_OUTPUTS_MAX)
      return { runs, rest: found.slice(index).map(({ id }) => id) };
    const view = viewOf(run.committedState());
    runs.push(view);
    stages += view.stages.length;
    for (const stage of view.stages) for (const { key, value } of stage.outputs) outputs += key.length + value.length;
  }
  return { runs };
}
