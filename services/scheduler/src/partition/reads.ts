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
import { matchesFilter, viewOf, type Epoch, type RunId, type RunView } from '@penstock/run';
import type { CommitCycle } from './commit-cycle.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import { awaitsResult, expireMsOf } from './results.ts';
import { watchPage } from './watch-page.ts';

/** Of stages in one answer: it is made and sent between two commits, and so is to be small. */
const ANSWER_STAGES_MAX = 2_000;
/** Characters of outputs in one answer, which may be much more than its stages. */
const ANSWER_OUTPUTS_MAX = 512 * 1024;

/** So many times the runs asked for are collected before the newest of them are chosen. */
const NEWEST_ROOM = 16;

export interface ReadsHost {
  readonly epoch: Epoch;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly counts: Pick<KeyCounts, 'use'>;
  readonly cycle: Pick<CommitCycle, 'whenCommitted' | 'whenAllCommitted'>;
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
    const { epoch, runs, cycle, counts } = this.#host;
    if (!this.#host.mayAnswer()) return;
    const found = new Set(request.runIds.flatMap((id) => runs.get(id) ?? []));
    if (request.tenants !== undefined && request.newest !== undefined) {
      for (const run of newestOf(runs.values(), request.newest, { ...request, tenants: request.tenants }))
        found.add(run);
    }
    const answer = (): void => {
      if (!this.#host.mayAnswer()) return;
      const { usage } = request;
      reply({
        ok: true,
        epoch,
        ...viewsOf([...found].filter((run) => run.committedVersion > 0)),
        ...(usage === undefined ? {} : { usage: counts.use(usage.key, usage.month) }),
      });
    };
    // What is ahead of its commit is answered with it: an older state than the asker may have seen is never shown.
    if ([...found].every((run) => run.isCommitted)) answer();
    else cycle.whenAllCommitted(answer);
  }

  watch(request: WatchRequest, reply: (reply: WatchReply) => void): void {
    const { epoch, runs } = this.#host;
    if (!this.#host.mayAnswer()) return;
    const run = runs.get(request.runId);
    if (run === undefined) reply({ ok: true, epoch, run: null });
    else this.whenCommitted(run, () => reply({ ok: true, epoch, run: watchPage(run, request.after) }));
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
        const lives = awaitsResult(run, ref, runner);
        const kept = { tenant, key, artifactBytes, expireMs: expireMsOf(run, ref.stage, expireMs) };
        reply({ ok: true, epoch, attempt: lives ? kept : null });
      });
  }

  open(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    const { epoch, runs } = this.#host;
    if (this.#host.mayAnswer()) reply({ ok: true, epoch, open: request.runIds.filter((id) => runs.has(id)) });
  }
}

function newestOf(
  runs: Iterable<LiveRun>,
  count: number,
  { tenants, before, filter = {} }: Pick<GetRequest, 'before' | 'filter'> & { readonly tenants: readonly string[] },
): LiveRun[] {
  const newest: LiveRun[] = [];
  // Sorted now and then: of a hundred thousand runs nearly all are older than those that are known, which is asked first.
  const cut = (to: number): void => {
    newest.sort((a, b) => (a.id < b.id ? 1 : -1)).splice(to);
  };
  let oldest = '';
  // The youngest are the last that came, so most of the others are older than what is found first.
  for (const run of [...runs].toReversed()) {
    const { id, state } = run;
    if (id <= oldest || (before !== undefined && id >= before) || !tenants.includes(state.tenant)) continue;
    const { pipelineName, status, origin } = state;
    if (!matchesFilter({ pipelineName, status, repository: origin.repository, ref: origin.ref }, filter)) continue;
    newest.push(run);
    if (newest.length < NEWEST_ROOM * count) continue;
    cut(count);
    oldest = newest.at(-1)?.id ?? '';
  }
  cut(count);
  return newest;
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
