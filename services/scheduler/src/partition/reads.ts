/** What a partition answers about its runs without deciding anything: committed state, by an owner that is sure to be it (P4). */
import type { GetReply, GetRequest, OpenReply, OpenRequest, WatchReply, WatchRequest } from '@penstock/bus';
import { viewOf, type Epoch, type RunId } from '@penstock/run';
import type { CommitCycle } from './commit-cycle.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import { watchPage } from './watch-page.ts';

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
      const { tenants } = request;
      const theirs = [...runs.values()]
        .filter((run) => tenants.includes(run.state.tenant))
        .sort((a, b) => (a.id < b.id ? 1 : -1));
      for (const run of theirs.slice(0, request.newest)) found.add(run);
    }
    const answer = (): void => {
      if (!this.#host.mayAnswer()) return;
      const views = [...found].filter((run) => run.committedVersion > 0).map((run) => viewOf(run.committedState()));
      const { usage } = request;
      reply({
        ok: true,
        epoch,
        runs: views,
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

  open(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    const { epoch, runs } = this.#host;
    if (this.#host.mayAnswer()) reply({ ok: true, epoch, open: request.runIds.filter((id) => runs.has(id)) });
  }
}
