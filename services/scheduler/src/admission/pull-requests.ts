/**
 * The runs of pull requests (P27): which head is the newest of each, and which runs wait until somebody approves them. Owns
 * both, of the runs in memory; a run itself knows only its own head.
 *
 *  PULLS-1 A head supersedes only runs of the same key, provider, repository and number, with another commit and a lower
 *          sequence of their deliveries.
 *  PULLS-2 A head's sequence and commit are known before a run of its pull request is decided: from memory, else from the store.
 *  PULLS-3 At most `heldMax` runs of a repository wait for an approval, and so many times more of a tenant; of more the oldest is given up.
 *  PULLS-4 Who waits for an approval here is who does by its state; each for `approvalMs` at most, by the boot clock (P5). Nothing is kept
 *          of who waits no more: anybody may open pull requests, and close them.
 */
import type { RunState, TriggerOrigin } from '@penstock/run';
import { Heap } from '../run/heap.ts';
import { invariant } from '../run/invariant.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { PullRequestHead, PullRequestRef } from '../run/pull-request-head.ts';

export interface PullRequestSettings {
  /** How long a run waits for its approval. */
  readonly approvalMs: number;
  /** Of one repository. */
  readonly heldMax: number;
}

/** Heads that are remembered beside those of runs in memory; a head that is not is asked of the store. */
const HEADS_KEPT = 10_000;
/** A tenant's runs that wait, as a multiple of one repository's. */
const REPOSITORIES_HELD = 10;

/** A run that waits, and where it stands in the order of those that do. */
interface Due {
  readonly at: number;
  readonly run: LiveRun;
  place: number;
}

export class PullRequests {
  readonly #settings: PullRequestSettings;
  /** The highest of which is known; the one used last at the end. */
  readonly #heads = new Map<string, PullRequestHead & { /** The store was asked. */ readonly isSure: boolean }>();
  /** Runs in memory, by pull request. */
  readonly #runs = new Map<string, Set<LiveRun>>();
  /** Runs that wait, the oldest first, by repository and by tenant. */
  readonly #held = new Map<string, Set<LiveRun>>();
  #due = newDue();
  readonly #dueOf = new Map<LiveRun, Due>();

  constructor(settings: PullRequestSettings) {
    this.#settings = settings;
  }

  /** Undefined: the store is to be asked (PULLS-2). */
  head(of: PullRequestRef): PullRequestHead | undefined {
    const known = this.#heads.get(idOf(of));
    return known?.isSure === true ? known : undefined;
  }

  /** What the store says of it; null: nothing. What was in memory meanwhile may not have been there yet. */
  learned(of: PullRequestRef, stored: PullRequestHead | null): void {
    this.#remember(idOf(of), stored ?? NO_HEAD, true);
  }

  /** Takes in a run that is created, or restored, at this time of the boot clock; `age`: how long it has waited by then. */
  enter(run: LiveRun, boot: number, age = 0): void {
    const of = refOf(run.state);
    if (of === undefined) return;
    const id = idOf(of);
    const runs = this.#runs.get(id) ?? new Set();
    this.#runs.set(id, runs.add(run));
    const head = headOf(run.state.origin);
    if (head !== undefined) this.#remember(id, head, false);
    if (run.state.awaitsApproval !== true) return;
    for (const name of heldNames(of)) this.#held.set(name, (this.#held.get(name) ?? new Set()).add(run));
    const { approvalMs } = this.#settings;
    const due = { at: boot + approvalMs - Math.min(Math.max(0, age), approvalMs), run, place: 0 };
    this.#due.push(due);
    this.#dueOf.set(run, due);
  }

  /** Something was decided about the run. */
  happened(run: LiveRun): void {
    const of = refOf(run.state);
    if (of === undefined || run.state.awaitsApproval === true) return;
    for (const name of heldNames(of)) removeFrom(this.#held, name, run);
    const due = this.#dueOf.get(run);
    if (due === undefined) return;
    this.#due.delete(due.place);
    this.#dueOf.delete(run);
  }

  /** The run leaves memory. */
  forget(run: LiveRun): void {
    const of = refOf(run.state);
    if (of !== undefined) removeFrom(this.#runs, idOf(of), run);
  }

  /** Those that a new head takes the place of, the last first. */
  supersededBy({ state }: LiveRun): LiveRun[] {
    const of = refOf(state);
    const head = headOf(state.origin);
    if (of === undefined || head === undefined) return [];
    return [...(this.#runs.get(idOf(of)) ?? [])]
      .filter((run) => !run.ended && isBehind(run.state.origin, head))
      .toReversed();
  }

  /** The oldest that waits where there are too many; undefined: there are not. */
  tooMany({ state }: LiveRun): LiveRun | undefined {
    const of = refOf(state);
    if (of === undefined) return undefined;
    const [repository, tenant] = heldNames(of).map((name) => this.#held.get(name) ?? new Set<LiveRun>());
    const { heldMax } = this.#settings;
    if (repository !== undefined && repository.size > heldMax) return first(repository);
    return tenant !== undefined && tenant.size > heldMax * REPOSITORIES_HELD ? first(tenant) : undefined;
  }

  /** Those that have waited for long enough, at most so many: after a pause of the process all of them may have. */
  takeDue(boot: number, max: number): LiveRun[] {
    const due: LiveRun[] = [];
    for (let first = this.#due.peek(); first !== undefined && first.at <= boot; first = this.#due.peek()) {
      if (due.length >= max) break;
      this.#due.pop();
      this.#dueOf.delete(first.run);
      due.push(first.run);
    }
    return due;
  }

  /** Whether somebody has waited for long enough. */
  isDue(boot: number): boolean {
    const next = this.#due.peek();
    return next !== undefined && next.at <= boot;
  }

  clear(): void {
    this.#heads.clear();
    this.#runs.clear();
    this.#held.clear();
    this.#due = newDue();
    this.#dueOf.clear();
  }

  /** `runs` are all those in memory, between two steps. Throws InvariantBroken. */
  assertInvariants(runs: Iterable<LiveRun>): void {
    const waiting = new Set<LiveRun>();
    for (const run of runs) {
      const { awaitsApproval } = run.state;
      if (awaitsApproval === true) waiting.add(run);
      const of = refOf(run.state);
      const isHeld = of !== undefined && heldNames(of).every((name) => this.#held.get(name)?.has(run) === true);
      const facts = (): Record<string, unknown> => ({ run: run.id, awaitsApproval, isHeld });
      invariant(
        'PULLS-4',
        isHeld === (awaitsApproval === true),
        'who waits for an approval is not known, or not right',
        facts,
      );
    }
    const areAll = this.#due.size === waiting.size && [...waiting].every((run) => this.#dueOf.has(run));
    invariant('PULLS-4', areAll, 'who waits for an approval is not who is given up in the end', () => ({
      waiting: waiting.size,
      due: this.#due.size,
    }));
    for (const [name, held] of this.#held) {
      const limit = this.#settings.heldMax * (name.startsWith(OF_REPOSITORY) ? 1 : REPOSITORIES_HELD);
      const facts = (): Record<string, unknown> => ({ name, held: held.size, limit });
      invariant('PULLS-3', held.size <= limit, 'too many runs wait for an approval', facts);
      for (const run of held)
        invariant('PULLS-4', waiting.has(run), 'a run that has left memory waits for an approval', facts);
    }
  }

  #remember(id: string, head: PullRequestHead, isSure: boolean): void {
    const known = this.#heads.get(id);
    const highest = known !== undefined && known.sequence >= head.sequence ? known : head;
    this.#heads.delete(id);
    this.#heads.set(id, {
      sequence: highest.sequence,
      commit: highest.commit,
      isSure: isSure || known?.isSure === true,
    });
    if (this.#heads.size <= HEADS_KEPT) return;
    const [oldest] = this.#heads.keys();
    if (oldest !== undefined) this.#heads.delete(oldest);
  }
}

function newDue(): Heap<Due> {
  return new Heap(
    (a, b) => a.at < b.at,
    (due, place) => void (due.place = place),
  );
}

/** What is said of a pull request of which nothing is known: every head is newer. */
const NO_HEAD: PullRequestHead = { sequence: 0, commit: '' };

/** Undefined: it is of none. */
export function refOf({
  tenant,
  key,
  origin: { pullRequest, provider = '', repository = '', ref = '' },
}: Pick<RunState, 'tenant' | 'key' | 'origin'>): PullRequestRef | undefined {
  return pullRequest === undefined ? undefined : { tenant, key, provider, repository, ref, number: pullRequest.number };
}

function headOf({ pullRequest, commit }: TriggerOrigin): PullRequestHead | undefined {
  return pullRequest?.sequence === undefined || commit === undefined
    ? undefined
    : { sequence: pullRequest.sequence, commit };
}

/** PULLS-1: Whether a run of the same pull request is one of an older head than this. */
export function isBehind(origin: TriggerOrigin, head: PullRequestHead): boolean {
  const own = headOf(origin);
  return own !== undefined && own.sequence < head.sequence && own.commit !== head.commit;
}

function idOf({ key, provider, repository, number }: PullRequestRef): string {
  return JSON.stringify([key, provider, repository, number]);
}

const OF_REPOSITORY = 'repository';

function heldNames({
  tenant,
  key,
  provider,
  repository,
}: PullRequestRef): readonly [repository: string, tenant: string] {
  return [`${OF_REPOSITORY} ${JSON.stringify([key, provider, repository])}`, `tenant ${tenant}`];
}

function removeFrom(sets: Map<string, Set<LiveRun>>, name: string, run: LiveRun): void {
  const set = sets.get(name);
  if (set?.delete(run) === true && set.size === 0) sets.delete(name);
}

function first(runs: ReadonlySet<LiveRun>): LiveRun | undefined {
  const [oldest] = runs;
  return oldest;
}
