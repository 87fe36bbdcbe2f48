/**
 * Commit statuses on their way to the git hosts. It owns what is in the outbox; any number of ingests work it off.
 *
 *  STATUS-1 A status is written by who has claimed it: a claim is a write over a lower version, so one ingest has it at a time,
 *     and what it sends has been answered, or given up, before its claim is over: by the boot clock, for it may have stood still meanwhile, and
 *     then another has told of the end of what it found running. An ingest whose clock is ahead takes a claim that is not over: who finds
 *     that its own was taken while it told lets be told again what it may have told over, as long as that is something else.
 *  STATUS-2 What is sent is what the run is when it is claimed. Runs do not go back, so what the host shows does not either.
 *  STATUS-3 An entry is done when the host has the final state, or says that it will never take it.
 *  STATUS-4 A lane is a part of a repository of a tenant; tenants and hosts share the places (`Lanes`). So a repository with thousands of commits, a
 *     tenant with thousands of repositories, or a host that does not answer, delays what others' hosts show by as many requests as it has lanes.
 *  STATUS-5 The runs of one commit have one lane: an ingest tells of one of them at a time, in the order in which they are due. So what the host did
 *     not take comes after what was told of others meanwhile. Those of other commits go beside them, LANES_OF_REPOSITORY at a time.
 *  STATUS-6 What a host shows under one name has one entry, of the newest run: an older one is told no more, however late the host takes it. The
 *     entry of a newer run stands in the place of the older at once, and is told when the claim of who tells of the older is over or given
 *     back. What is done stays for a week, so that an older run that comes later, after a restart as well, finds it.
 *  STATUS-7 A claim is over once it has stood unchanged for its length on this ingest's boot clock, however far ahead the wall clock was of who
 *     has claimed it. A claim that lies no further ahead than one of this ingest's is over when its time has come. So it is with the next look
 *     at an entry: it comes once the entry has stood for as long as nobody puts one off, an hour where the host has put it off.
 */
import { hash } from 'node:crypto';
import { backoffMs, bootMs, Lanes, pauseOrAbort } from '@penstock/async';
import { subjects, type Bus, type BusSubscription, type CommittedEvents } from '@penstock/bus';
import type { RunReads } from '@penstock/run-client';
import { endsRun, isEnded, SERVICE_TENANT, type RunCreated, type RunId, type RunView } from '@penstock/run';
import type { Collection, DocumentOf, DocumentStore } from '@penstock/store';
import { statusesSpec } from '../model/collections.ts';
import type { ProviderName } from '../providers/provider.ts';
import {
  REQUEST_MS_MAX,
  RETRY_AFTER_MS_MAX,
  writeStatus,
  type StatusHost,
  type StatusState,
  type StatusTarget,
} from './host-api.ts';
import type { Log } from '@penstock/telemetry/log';

export interface StatusOutboxOptions {
  readonly bus: Bus;
  readonly store: DocumentStore;
  readonly reads: RunReads;
  readonly hosts: { readonly [P in ProviderName]?: StatusHost | undefined };
  /** Of a run that no delivery began; undefined: the host is told nothing of it. */
  targetOf(runId: RunId, created: RunCreated): StatusTarget | undefined;
  /** Where a run is shown. */
  urlOfRun(runId: string): string;
  readonly log: Log;
  now(): number;
  /** Of the boot clock. */
  readonly bootNow?: (() => number) | undefined;
}

type Entry = DocumentOf<typeof statusesSpec>;

interface Standing {
  readonly revision: number;
  /** Of the boot clock. */
  readonly since: number;
}

/** This is longer than one request to a host may take, with the store's answers around it. */
const CLAIM_MS = 30_000;
/** What is due and was not told of here: entries, and where there are as many, lanes, in turn. */
const LOOKED_AT = 200;
const LOOK_MS = 1_000;
/** A run whose end nobody heard of is looked at this often: of a run's age a share, for thousands may wait for days. */
const RUNNING_LOOK = { minMs: 15_000, maxMs: 5 * 60_000, share: 1 / 4 };
const RETRY = { firstMs: 1_000, maxMs: 5 * 60_000 };
/** A host that was away for so long has lost interest in the commit. As long as a delivery is known: none comes again later (P24). */
const GIVEN_UP_MS = 7 * 24 * 60 * 60 * 1000;
const SWEEP_MS = 60_000;
const SWEPT_AT_ONCE = 500;
/** Each time somebody else has written the entry. */
const ADDS_MAX = 20;
const CONCURRENCY = 8;
/** As many as one tenant has of a host's places. */
const LANES_OF_REPOSITORY = 3;

export class StatusOutbox {
  readonly #options: StatusOutboxOptions;
  readonly #entries: Collection<typeof statusesSpec>;
  readonly #stopped = new AbortController();
  readonly #lanes: Lanes;
  #subscription: BusSubscription | undefined;
  #looking: Promise<void> | undefined;
  /** Runs whose end is waited for, with their entries. */
  readonly #running = new Map<string, string>();
  /** The last lane that was looked at of those in turn; undefined: the first is next, which may be '', of an earlier release. */
  #lastLooked: string | undefined;
  #sweptAt = -Infinity;
  readonly #bootNow: () => number;
  /** STATUS-7: entries whose claim or next look lies too far ahead, and since when they have stood so. */
  #ahead: ReadonlyMap<string, Standing> = new Map();

  constructor(options: StatusOutboxOptions) {
    this.#options = options;
    this.#bootNow = options.bootNow ?? bootMs;
    this.#entries = options.store.collection(statusesSpec);
    this.#lanes = new Lanes({
      concurrency: CONCURRENCY,
      work: (lane) => this.#settleNext(lane),
      failed: (_lane, error, attempt) => {
        if (attempt === 1) options.log.warn({ err: error }, 'a commit status could not be worked off; tried again');
      },
    });
  }

  get enabled(): boolean {
    return Object.values(this.#options.hosts).some((host) => host !== undefined);
  }

  start(): void {
    if (!this.enabled) return;
    this.#subscription = this.#options.bus.subscribe<CommittedEvents>(subjects.events('*'), ({ runId, events }) => {
      if (this.#running.has(runId) && events.some(endsRun)) void this.#dueNow(runId);
      for (const event of events) if (event.type === 'run_created') void this.#begun(runId, event);
    });
    this.#looking = this.#look();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#subscription?.stop();
    await this.#looking;
    await this.#lanes.stop();
  }

  /** Idempotent. STATUS-6: nothing comes of a run that is older than the one that stands there. */
  async add(target: StatusTarget): Promise<void> {
    if (this.#options.hosts[target.provider] === undefined) return;
    for (let added = 0; added < ADDS_MAX; added += 1)
      if (await this.#isAdded(target)) return this.#begin(laneOf(target), target);
    throw new Error(`the commit status of run ${target.runId} was written by others ${ADDS_MAX} times meanwhile`);
  }

  async #isAdded(target: StatusTarget): Promise<boolean> {
    const fresh = {
      id: idOf(target),
      lane: laneOf(target),
      done: false,
      dueAt: this.#options.now(),
      claimedUntil: 0,
      sent: '',
      failures: 0,
      revision: 0,
      step: 0,
      target: JSON.stringify(target),
    };
    if ((await this.#entries.insert(fresh)) === 'inserted') return true;
    const standing = await this.#entries.get(fresh.id);
    if (standing === null) return false;
    if (targetOf(standing).runId >= target.runId) return true;
    this.#running.delete(targetOf(standing).runId);
    const { revision, claimedUntil } = standing;
    return (await this.#write(this.#dueSoon({ ...fresh, revision, claimedUntil }))) !== null;
  }

  /** By a schedule: nobody else tells of it. Every ingest hears of it, and the first adds it. */
  async #begun(runId: RunId, created: RunCreated): Promise<void> {
    const target = this.#options.targetOf(runId, created);
    if (target === undefined) return;
    try {
      await this.add(target);
    } catch (error) {
      this.#options.log.warn({ err: error, runId }, 'the host is not told how a run of a schedule goes');
    }
  }

  #begin(lane: string, { provider, tenant }: Pick<StatusTarget, 'provider' | 'tenant'>): void {
    this.#lanes.add(lane, { host: provider, owner: tenant === SERVICE_TENANT ? '' : tenant });
  }

  /** For what is due by now, and for what others have left. */
  async #look(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        await this.#endAhead();
        await this.#beginDue();
        await this.#sweep();
      } catch (error) {
        this.#options.log.warn({ err: error }, 'commit statuses could not be looked through; tried again');
      }
      await pauseOrAbort(LOOK_MS, signal);
    }
  }

  async #beginDue(): Promise<void> {
    const due = await this.#entries.list({
      where: { done: false, dueAt: { lte: this.#options.now() } },
      orderBy: { field: 'dueAt', direction: 'asc' },
      limit: LOOKED_AT,
    });
    for (const entry of due) this.#begin(entry.lane, targetOf(entry));
    // They may all be of one lane, and those of another stand behind them.
    if (due.length === LOOKED_AT) await this.#beginInTurn();
  }

  /** STATUS-7 */
  async #endAhead(): Promise<void> {
    const stand = new Map<string, Standing>();
    for (const entry of [...(await this.#claimsAhead()), ...(await this.#looksAhead())]) {
      const { id, revision } = entry;
      const known = this.#ahead.get(id);
      const since = known?.revision === revision ? known.since : this.#bootNow();
      if (this.#bootNow() - since <= standsMs(entry)) stand.set(id, { revision, since });
      else await this.#write({ ...entry, dueAt: this.#options.now(), claimedUntil: 0 });
    }
    this.#ahead = stand;
  }

  #claimsAhead(): Promise<readonly Entry[]> {
    return this.#entries.list({
      where: { claimedUntil: { gt: this.#options.now() + CLAIM_MS } },
      orderBy: { field: 'claimedUntil', direction: 'asc' },
      limit: LOOKED_AT,
    });
  }

  /** The furthest first: behind them stand those that a host has put off. */
  #looksAhead(): Promise<readonly Entry[]> {
    return this.#entries.list({
      where: { done: false, dueAt: { gt: this.#options.now() + RUNNING_LOOK.maxMs } },
      orderBy: { field: 'dueAt', direction: 'desc' },
      limit: LOOKED_AT,
    });
  }

  /** STATUS-6 */
  async #sweep(): Promise<void> {
    const now = this.#options.now();
    if (now < this.#sweptAt + SWEEP_MS) return;
    const swept = await this.#entries.deleteWhere({
      where: { done: true, dueAt: { lt: now - GIVEN_UP_MS } },
      orderBy: { field: 'dueAt', direction: 'asc' },
      limit: SWEPT_AT_ONCE,
    });
    if (swept < SWEPT_AT_ONCE) this.#sweptAt = now;
  }

  async #beginInTurn(): Promise<void> {
    for (let looked = 0; looked < LOOKED_AT && !this.#stopped.signal.aborted; looked += 1) {
      const last = this.#lastLooked;
      const [entry] = await this.#entries.list({
        where: { done: false, ...(last === undefined ? {} : { lane: { gt: last } }) },
        orderBy: { field: 'lane', direction: 'asc' },
        limit: 1,
      });
      this.#lastLooked = entry?.lane;
      if (entry === undefined) return;
      this.#begin(entry.lane, targetOf(entry));
    }
  }

  /** False: nothing of the lane is due. */
  async #settleNext(lane: string): Promise<boolean> {
    const [entry] = await this.#entries.list({
      where: { done: false, lane, dueAt: { lte: this.#options.now() } },
      orderBy: { field: 'dueAt', direction: 'asc' },
      limit: 1,
    });
    if (entry === undefined) return false;
    await this.#settle(entry);
    return true;
  }

  async #settle(entry: Entry): Promise<void> {
    const { now, log, hosts } = this.#options;
    const target = targetOf(entry);
    const host = hosts[target.provider];
    const claimedUntil = now() + CLAIM_MS;
    const sendsUntil = this.#bootNow() + CLAIM_MS - REQUEST_MS_MAX;
    const claimed = await this.#write({ ...entry, dueAt: claimedUntil, claimedUntil });
    if (claimed === null) return;
    const isOld = this.#ageOf(target) > GIVEN_UP_MS;
    // A host that is not configured any more may be again.
    if (host === undefined) return isOld ? await this.#finish(claimed) : undefined;
    if (entry.id !== idOf(target)) return await this.#takeOver(claimed, target);
    let view: RunView | null;
    try {
      view = await this.#options.reads.view(target.runId, [target.tenant]);
    } catch {
      return await this.#giveBack(claimed, { dueAt: now() + RETRY.firstMs });
    }
    const state = stateOf(view);
    const final = view !== null && isEnded(view.status);
    if (state === entry.sent && !final)
      // Of a run that was deleted nothing comes any more.
      return await (view === null && isOld ? this.#finish(claimed) : this.#lookLater(claimed, target));
    if (this.#bootNow() > sendsUntil) return await this.#giveBack(claimed, { dueAt: now() + RETRY.firstMs });
    const answer = await writeStatus(host, target, state, this.#options.urlOfRun(target.runId));
    if (answer.kind === 'taken') {
      const sent = { ...claimed, sent: state, failures: 0 };
      if (final) await this.#finish(sent, state);
      else await this.#lookLater(sent, target, state);
      return;
    }
    if ((answer.kind === 'refused' && final) || isOld) {
      log.warn(
        { runId: target.runId, repository: target.repository, why: answer.why },
        'the git host does not take a commit status; it is given up',
      );
      return await this.#finish(claimed, state);
    }
    const failures = entry.failures + 1;
    if (failures === 1)
      log.warn(
        { runId: target.runId, repository: target.repository, why: answer.why },
        'a commit status was not taken; tried again',
      );
    const afterMs = Math.ceil(Math.max(answer.kind === 'later' ? answer.afterMs : 0, backoffMs(failures, RETRY)));
    await this.#giveBack(claimed, { failures, dueAt: now() + afterMs }, state);
  }

  /** An earlier release had an entry for each run. */
  async #takeOver({ id, revision }: Entry, target: StatusTarget): Promise<void> {
    await this.add(target);
    await this.#entries.delete(id, { revision });
  }

  async #lookLater(entry: Entry, target: StatusTarget, told?: StatusState): Promise<void> {
    const { runId, tenant } = target;
    this.#running.set(runId, entry.id);
    const { minMs, maxMs, share } = RUNNING_LOOK;
    const afterMs = Math.ceil(Math.min(maxMs, Math.max(minMs, this.#ageOf(target) * share)));
    const { sent, failures } = entry;
    await this.#giveBack(entry, { sent, failures, dueAt: this.#options.now() + afterMs }, told);
    // It may have ended between the look at it and this.
    const view = await this.#options.reads.view(runId, [tenant]).catch(() => null);
    if (view !== null && isEnded(view.status)) await this.#dueNow(runId);
  }

  #ageOf({ runId }: StatusTarget): number {
    return this.#options.now() - Number.parseInt(runId.slice(0, 8) + runId.slice(9, 13), 16);
  }

  async #finish(entry: Entry, told?: StatusState): Promise<void> {
    this.#running.delete(targetOf(entry).runId);
    await this.#giveBack(entry, { sent: entry.sent, done: true, dueAt: this.#options.now() }, told);
  }

  /**
   * The claim is over. Who has written the entry meanwhile waits for that: for a newer run, or because this one has ended. `told`: what the
   * host may have been told under the claim.
   */
  async #giveBack(claimed: Entry, changes: Partial<Entry>, told?: StatusState): Promise<void> {
    if ((await this.#write({ ...claimed, ...changes, claimedUntil: 0 })) !== null) return;
    for (let tries = 0; tries < ADDS_MAX; tries += 1) {
      const other = await this.#entries.get(claimed.id);
      const next = other === null ? null : this.#afterOthers(claimed, other, told);
      if (next === null || (await this.#write(next)) !== null) return;
    }
  }

  /** How an entry goes on that somebody else has written while this ingest had claimed it. Null: as it is. */
  #afterOthers(claimed: Entry, other: Entry, told: StatusState | undefined): Entry | null {
    if (other.claimedUntil === claimed.claimedUntil) return this.#dueSoon({ ...other, claimedUntil: 0 });
    // STATUS-1
    const isSame = told === other.sent && targetOf(other).runId === targetOf(claimed).runId;
    return told === undefined || isSame ? null : this.#dueSoon({ ...other, done: false, sent: '' });
  }

  async #dueNow(runId: string): Promise<void> {
    const id = this.#running.get(runId);
    this.#running.delete(runId);
    if (id === undefined) return;
    try {
      const entry = await this.#entries.get(id);
      if (entry === null || entry.done || targetOf(entry).runId !== runId) return;
      await this.#write(this.#dueSoon(entry));
      this.#begin(entry.lane, targetOf(entry));
    } catch {
      // Found at its next look.
    }
  }

  /** Not before the claim of who tells of it is over. */
  #dueSoon(entry: Entry): Entry {
    return { ...entry, dueAt: Math.max(this.#options.now(), entry.claimedUntil) };
  }

  /** STATUS-1: Null: somebody else has written it meanwhile. */
  async #write(entry: Entry): Promise<Entry | null> {
    const next = { ...entry, revision: entry.revision + 1 };
    const { stale } = await this.#entries.replaceNewer([next]);
    return stale.length === 0 ? next : null;
  }
}

/** STATUS-4, STATUS-5. '' is what an earlier release has left, of all repositories; a later one made a repository one lane. */
function laneOf({ provider, tenant, repository, commit }: StatusTarget): string {
  const part = hash('sha256', commit, 'buffer').readUInt32BE(0) % LANES_OF_REPOSITORY;
  return hash('sha256', JSON.stringify([provider, tenant, repository, part]), 'base64url');
}

/** STATUS-6: what a host shows in one place. GitLab shows a commit's statuses of each ref apart. */
function idOf({ provider, tenant, repository, commit, context, ref }: StatusTarget): string {
  const place = [provider, tenant, repository, commit, context, ...(provider === 'git_host_b' ? [ref] : [])];
  return hash('sha256', JSON.stringify(place), 'base64url');
}

/** How long an entry may stand unchanged, whatever clock it was written by. */
function standsMs({ claimedUntil, failures }: Entry): number {
  if (claimedUntil > 0) return CLAIM_MS;
  return failures === 0 ? RUNNING_LOOK.maxMs : RETRY_AFTER_MS_MAX;
}

function targetOf({ target }: Pick<Entry, 'target'>): StatusTarget {
  return JSON.parse(String(target)) as StatusTarget;
}

/** A skipped run leaves nothing to object to. */
function stateOf(view: RunView | null): StatusState {
  if (view === null || !isEnded(view.status)) return 'pending';
  return view.status === 'SUCCESS' || view.status === 'SKIPPED' ? 'success' : 'failure';
}
