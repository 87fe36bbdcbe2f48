/**
 * Runs that are deleted (P34): by people, or because they are old. Owns what is decided about them until a tombstone stands for it
 * behind the checkpoint, and who waits for that.
 *
 *  DELETIONS-1 Only a closed run is deleted: one that has left memory, its end behind the checkpoint (P6); and one that was left out
 *     because its document is damaged, which nobody will ever close.
 *  DELETIONS-2 No run is deleted that another one reads, or takes over from and has not ended (P30); from the decision on nobody reads
 *     it here.
 *  DELETIONS-3 What waits here is bounded, and nobody's share of it is another's: beyond it a request is `unavailable`, to be asked again.
 *     What is old takes nobody's share, and has a bound of its own.
 *  DELETIONS-4 No run is deleted twice by one owner: what the store was asked before the tombstone stood may come after it.
 */
import { FairRoom } from '@penstock/async';
import type { DeleteReply, DeleteRequest } from '@penstock/bus';
import type { Epoch, RunId, Sequence } from '@penstock/run';
import type { StoredStanding } from '@penstock/store';
import type { DeletedEntry } from '../run/commit.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { PartitionPorts } from '../run/ports.ts';
import type { CommitCycle } from './commit-cycle.ts';
import { refusal, unavailable } from './refusals.ts';

/** A deletion that is committed, and the commit. */
export interface DirtyDeletion {
  readonly entry: DeletedEntry;
  readonly sequence: Sequence;
}

export interface DeletionsHost {
  readonly epoch: Epoch;
  readonly ports: Pick<PartitionPorts, 'now' | 'storedStanding' | 'forgetLogs'>;
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly cycle: Pick<CommitCycle, 'addDeletion' | 'isTooSlow' | 'whenCommitted'>;
  /** The tenant of an open run that is outside of memory. */
  parkedTenant(runId: RunId): string | undefined;
  /** A run of the tenant is in no list any more. */
  removed(tenant: string, sequence: Sequence): void;
  /** Whether another run reads it, or takes over from it and has not ended. */
  isTakenFrom(runId: RunId): boolean;
  /** Whether the partition still decides. */
  accepts(): boolean;
  /** Whether it is sure to be the owner (P4). */
  mayAnswer(): boolean;
  advance(): void;
}

interface Deleting {
  readonly entry: DeletedEntry;
  /** Of its tenant's share. An earlier owner's has none, nor has what is old. */
  readonly hasPlace: boolean;
  /** Undefined: not committed yet. */
  sequence: Sequence | undefined;
  readonly askers: ((reply: DeleteReply) => void)[];
}

/** Who waits for a run to be closed. */
interface Closing {
  readonly tenant: string;
  readonly askers: { readonly ask: DeleteRequest; readonly reply: (reply: DeleteReply) => void }[];
}

/** Deletions under way, and as many runs that are to be closed before. */
const AT_ONCE_MAX = 1_000;
/** Of a tenant, whatever others have. */
const OWN_AT_ONCE = 10;
/** Of one deletion. */
const ASKERS_MAX = 20;
/** Runs of which it is remembered that they are deleted: more than can be while one read of the store is under way. */
const GONE_MAX = 10_000;

export class Deletions {
  readonly #host: DeletionsHost;
  readonly #deleting = new Map<RunId, Deleting>();
  readonly #dirty = new Set<Deleting>();
  /** Of those that were decided here. */
  #deletingRoom = newRoom();
  readonly #closing = new Map<RunId, Closing>();
  #closingRoom = newRoom();
  /** Their tombstones stand since a while ago, the oldest first. */
  readonly #gone = new Set<RunId>();
  #leftOut: ReadonlySet<RunId> = new Set();

  constructor(host: DeletionsHost) {
    this.#host = host;
  }

  /** Whether it is decided that the run is deleted, and lists may still have it. */
  has(runId: RunId): boolean {
    return this.#deleting.has(runId);
  }

  /** Whether it was left out at the take-over: its document is damaged. */
  isLeftOut(runId: RunId): boolean {
    return this.#leftOut.has(runId) && !this.#gone.has(runId) && !this.has(runId);
  }

  /** How many more that are old can be under way. */
  get roomToExpire(): number {
    return Math.max(0, AT_ONCE_MAX - this.#deleting.size);
  }

  /** What an earlier owner has committed, and no tombstone may stand for; and the runs that could not be read. */
  restore(restored: readonly DirtyDeletion[], leftOut: readonly RunId[]): void {
    this.#leftOut = new Set(leftOut);
    for (const { entry, sequence } of restored) {
      const deleting = { entry, hasPlace: false, sequence, askers: [] };
      this.#deleting.set(entry.id, deleting);
      this.#dirty.add(deleting);
    }
  }

  clear(): void {
    this.#deleting.clear();
    this.#dirty.clear();
    this.#deletingRoom = newRoom();
    this.#closing.clear();
    this.#closingRoom = newRoom();
    this.#gone.clear();
  }

  delete(request: DeleteRequest, reply: (reply: DeleteReply) => void): void {
    const { epoch, ports, runs, cycle, accepts, mayAnswer, parkedTenant } = this.#host;
    const { runId, tenants } = request;
    if (!accepts()) return;
    const refuse = (code: 'NOT_FOUND' | 'CONFLICT', message: string): void => reply(refusal(epoch, code, message));
    const run = runs.get(runId);
    const tenant = run?.state.tenant ?? parkedTenant(runId) ?? this.#deleting.get(runId)?.entry.tenant;
    if (tenant !== undefined && !tenants.includes(tenant)) {
      // What is not here is a read like any other: an owner that was frozen may have missed the run (P4).
      if (mayAnswer()) refuse('NOT_FOUND', 'there is no such run');
      return;
    }
    const known = this.#deleting.get(runId);
    if (known !== undefined) this.#join(known, reply);
    else if (run?.ended === true) this.#whenClosed(run, request, reply);
    else if (run !== undefined)
      cycle.whenCommitted(run, () => refuse('CONFLICT', `the run has not ended: ${run.state.status}`));
    else if (tenant !== undefined) refuse('CONFLICT', 'the run has not ended');
    else
      ports.storedStanding(runId, (standing) => {
        if (!accepts()) return;
        if (runs.has(runId) || parkedTenant(runId) !== undefined || this.has(runId)) this.delete(request, reply);
        else if (standing === 'unavailable') reply(unavailable(epoch, 'the store does not answer'));
        else if (standing === null || this.#gone.has(runId) || !tenants.includes(standing.tenant)) {
          if (mayAnswer()) refuse('NOT_FOUND', 'there is no such run');
        } else {
          const refused = this.#decide(runId, standing, request.by);
          const decided = this.#deleting.get(runId);
          if (refused !== undefined) reply(refused);
          else if (decided !== undefined) this.#join(decided, reply);
        }
      });
  }

  /** Of runs that the store has as closed, those that are too old; what cannot be deleted now is left for another time. */
  expire(runs: readonly (StoredStanding & { readonly id: RunId })[]): number {
    if (!this.#host.accepts()) return 0;
    let decided = 0;
    for (const { id, ...standing } of runs.slice(0, this.roomToExpire)) {
      const isHere = this.#host.runs.has(id) || this.#host.parkedTenant(id) !== undefined || this.has(id);
      if (!isHere && !this.#gone.has(id) && this.#decide(id, standing) === undefined) decided += 1;
    }
    return decided;
  }

  /** Undefined: it is decided. `by` undefined: it is old. */
  #decide(id: RunId, { tenant, parent, open }: StoredStanding, by?: string) {
    const { epoch, ports, cycle, isTakenFrom, advance } = this.#host;
    if (open && !this.#leftOut.has(id)) return unavailable(epoch, 'the run is being taken over');
    if (isTakenFrom(id)) return refusal(epoch, 'CONFLICT', 'a run that repeats it still takes over from it');
    const hasPlace = by !== undefined;
    if (cycle.isTooSlow || (hasPlace && !this.#deletingRoom.take(tenant, 1)))
      return unavailable(epoch, 'too many runs are being deleted');
    const event = { type: 'run_deleted', at: ports.now(), by: by ?? 'retention' } as const;
    const entry: DeletedEntry = { id, tenant, ...(parent === '' ? {} : { parent }), event };
    this.#deleting.set(id, { entry, hasPlace, sequence: undefined, askers: [] });
    cycle.addDeletion(entry);
    advance();
    return undefined;
  }

  #join(deleting: Deleting, reply: (reply: DeleteReply) => void): void {
    if (deleting.askers.length < ASKERS_MAX) deleting.askers.push(reply);
    else reply(unavailable(this.#host.epoch, 'the run is being deleted'));
  }

  /** It has ended, and is in memory until that is behind the checkpoint. */
  #whenClosed({ id, state: { tenant } }: LiveRun, ask: DeleteRequest, reply: (reply: DeleteReply) => void): void {
    const closing = this.#closing.get(id);
    if (closing === undefined ? !this.#closingRoom.take(tenant, 1) : closing.askers.length >= ASKERS_MAX)
      reply(unavailable(this.#host.epoch, 'the end of the run is not stored yet'));
    else if (closing === undefined) this.#closing.set(id, { tenant, askers: [{ ask, reply }] });
    else closing.askers.push({ ask, reply });
  }

  /** These runs have left memory for good. */
  closed(runs: readonly LiveRun[]): void {
    if (this.#closing.size === 0) return;
    for (const { id } of runs) {
      const closing = this.#closing.get(id);
      if (closing === undefined) continue;
      this.#closing.delete(id);
      this.#closingRoom.giveBack(closing.tenant, 1);
      for (const { ask, reply } of closing.askers) this.delete(ask, reply);
    }
  }

  // --- Commits and tombstones --------------------------------------------------------------------------------------

  committed(entries: Iterable<DeletedEntry>, sequence: Sequence): void {
    for (const { id } of entries) {
      const deleting = this.#deleting.get(id);
      if (deleting === undefined) continue;
      deleting.sequence = sequence;
      this.#dirty.add(deleting);
    }
  }

  /** Those with commits that no tombstone stands for yet. */
  takeDirty(): readonly DirtyDeletion[] {
    const taken = [...this.#dirty].flatMap(({ entry, sequence }) =>
      sequence === undefined ? [] : [{ entry, sequence }],
    );
    this.#dirty.clear();
    return taken;
  }

  /** The store did not take them. */
  stillDirty(deletions: Iterable<DirtyDeletion>): void {
    for (const { entry } of deletions) {
      const deleting = this.#deleting.get(entry.id);
      if (deleting !== undefined) this.#dirty.add(deleting);
    }
  }

  /** Their tombstones are written, and the checkpoint stands behind them. */
  projected(sequence: Sequence): void {
    const { epoch, ports, mayAnswer, removed } = this.#host;
    const gone: { readonly id: RunId; readonly tenant: string }[] = [];
    const tenants = new Set<string>();
    const askers: Deleting['askers'] = [];
    for (const [id, deleting] of this.#deleting) {
      if (deleting.sequence === undefined || deleting.sequence > sequence || this.#dirty.has(deleting)) continue;
      this.#deleting.delete(id);
      if (deleting.hasPlace) this.#deletingRoom.giveBack(deleting.entry.tenant, 1);
      gone.push({ id, tenant: deleting.entry.tenant });
      this.#gone.add(id);
      tenants.add(deleting.entry.tenant);
      askers.push(...deleting.askers);
    }
    if (gone.length === 0) return;
    for (const id of this.#gone) {
      if (this.#gone.size <= GONE_MAX) break;
      this.#gone.delete(id);
    }
    for (const tenant of tenants) removed(tenant, sequence);
    ports.forgetLogs(gone);
    if (mayAnswer()) for (const reply of askers) reply({ ok: true, epoch });
  }
}

function newRoom(): FairRoom {
  return new FairRoom({ shared: AT_ONCE_MAX, own: OWN_AT_ONCE });
}
