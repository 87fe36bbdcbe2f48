/**
 * Opening a partition (P3) and reading back what its earlier owners left (P6): the checkpoint, the documents that are open
 * or stand for a later commit, and the log behind it.
 */
import type { Time } from '@penstock/async';
import { RUN_ID_AHEAD_MS, type PartitionLog } from '@penstock/bus';
import {
  closesRun,
  readAdded,
  RunInvariantError,
  type RunCreated,
  type RunEvent,
  type RunSettings,
  type Epoch,
  type RunId,
  type Sequence,
} from '@penstock/run';
import { isDamage, type Checkpoint, type RunDocument, type RunsLedger, type UnreadableRun } from '@penstock/store';
import { COMMIT_FORMAT, decodeCommit, encodeCommit, type Commit } from '../run/commit.ts';
import { readAddedAgain, readAddedText, type ReadAddedText } from './added-texts.ts';
import { definedRun, type DefinitionSource } from '../run/definitions.ts';
import type { KeyUsage } from '../admission/key-counts.ts';
import { LiveRun } from '../run/live-run.ts';
import type { DirtyDeletion } from '../partition/deletions.ts';
import type { RestoredSchedule } from '../partition/schedules.ts';
import { ReplayedDeletions } from './deletion-take-over.ts';
import { isBehind, ReplayedSchedules } from './schedule-take-over.ts';
import { parkedDocumentOf, type ParkedDocument } from '../run/parked-run.ts';
import type { RestoreRoom } from './restore-room.ts';
import { Turns } from './turns.ts';
import { loadUsages, type ReplayedEvents } from './usage-take-over.ts';
import type { Log } from '@penstock/telemetry/log';

/** A new incarnation's epochs begin here times its number: above every epoch of a log that was lost. */
const EPOCHS_PER_INCARNATION = 1_000_000_000;
/** How often the load begins anew when a late projector moves the checkpoint under it. */
const LOAD_TRIES = 5;
const DAMAGED =
  'the document of a run is damaged and stays as it is: the run goes on only if the journal has all of it, the other runs in any case';

const DAMAGED_SCHEDULE =
  'the document of a schedule is damaged: it starts nothing until its file is pushed again, the other schedules and the runs go on';

export interface OpenedPartition {
  readonly epoch: Epoch;
  readonly incarnation: number;
  /** Of the `opened` commit. */
  readonly sequence: Sequence;
  readonly commitNumber: number;
  /** The latest time in an id of the partition's runs (P7). */
  readonly idsTo: number;
  /** Neither the log nor the store had anything of the partition: nobody has owned it before. */
  readonly neverOwned: boolean;
}

export interface LoadedPartition {
  readonly runs: LiveRun[];
  /** Open runs that were left where they are, the oldest first. */
  readonly parked: ParkedDocument[];
  readonly usages: KeyUsage[];
  readonly schedules: readonly RestoredSchedule[];
  /** What the log says of deletions behind the checkpoint. */
  readonly deleted: readonly DirtyDeletion[];
  /** Runs whose documents are damaged, and that the log does not have. */
  readonly leftOut: readonly RunId[];
}

export interface Restoring {
  readonly definitions: DefinitionSource;
  readonly settings: RunSettings;
  readonly log: Pick<Log, 'error'>;
  /** Reads a run's text where it holds up nobody; `definitions` reads it where this is absent. */
  readonly read?: ((created: RunCreated) => Promise<DefinitionSource>) | undefined;
  /** The same of what its stages have added. */
  readonly readAdded?: ReadAddedText | undefined;
  /** Absent: everything is read into memory. */
  readonly room?: Pick<RestoreRoom, 'take' | 'isTight'> | undefined;
  /** Gives others a turn; absent: nobody else is there. */
  readonly turn?: (() => Promise<void>) | undefined;
}

export interface Opening {
  readonly partition: number;
  readonly member: string;
  readonly log: PartitionLog;
  readonly ledger: RunsLedger;
  /** Whether the member's lease has run out, as the broker says (never by an own timer). */
  isGone(member: string): Promise<boolean>;
  /** Milliseconds since 1970. */
  now(): number;
  newCommitId(): string;
  after: Time['after'];
  readonly signal: AbortSignal;
}

/** A broker that is there answers in a tenth of it. */
const OUTCOME_MS = 2_000;

/** Appends `opened`. Null: the partition is another's, or another was faster. */
export async function openPartition(opening: Opening): Promise<OpenedPartition | null> {
  const { partition, member, log, ledger, isGone, now, newCommitId, signal } = opening;
  const last = await log.last(signal);
  const lastCommit = last === null ? null : decodeCommit(last.bytes);
  if (
    lastCommit !== null &&
    lastCommit.kind !== 'released' &&
    lastCommit.owner !== member &&
    !(await isGone(lastCommit.owner))
  )
    return null;
  // Read once: an owner who does not know yet that its log was cut may move it on meanwhile.
  const checkpoint = await ledger.checkpoint(partition);
  const incarnation = await incarnationNow(
    checkpoint,
    ledger,
    log,
    last?.sequence ?? 0,
    lastCommit?.epoch ?? 0,
    signal,
  );
  const epoch = Math.max((lastCommit?.epoch ?? 0) + 1, incarnation > 1 ? incarnation * EPOCHS_PER_INCARNATION : 1);
  const number = Math.max(lastCommit?.number ?? 0, checkpoint?.incarnation === incarnation ? checkpoint.commit : 0) + 1;
  const id = newCommitId();
  const at = now();
  // An earlier build did not say; no gateway took an id further ahead.
  const idsTo = lastCommit === null ? 0 : (lastCommit.idsTo ?? at + RUN_ID_AHEAD_MS);
  const bytes = encodeCommit(
    { id, kind: 'opened', partition, epoch, number, owner: member, minReader: COMMIT_FORMAT, at, idsTo },
    [],
  );
  const appended = await appendOpened(opening, bytes, { commitId: id, expectedSequence: last?.sequence ?? 0 });
  if (!appended.ok) return null;
  // A document without a log and a checkpoint would have made it another incarnation.
  const neverOwned = last === null && checkpoint === null && incarnation === 1;
  return { epoch, incarnation, sequence: appended.sequence, commitNumber: number, idsTo, neverOwned };
}

/**
 * An opening that is given up waits a moment for what its append comes to. Left under way it may be stored after whoever hands
 * the partition back has read a log without it, which then names a living member that knows nothing of it (P3).
 */
async function appendOpened(
  { log, after, signal }: Opening,
  bytes: Uint8Array,
  options: Parameters<PartitionLog['append']>[1],
): ReturnType<PartitionLog['append']> {
  signal.throwIfAborted();
  const overdue = new AbortController();
  let callOff = (): void => {};
  const onGivenUp = (): void => void (callOff = after(OUTCOME_MS, () => overdue.abort(signal.reason)));
  signal.addEventListener('abort', onGivenUp, { once: true });
  try {
    return await log.append(bytes, options, overdue.signal);
  } finally {
    signal.removeEventListener('abort', onGivenUp);
    callOff();
  }
}

/**
 * Appends `released`, so that others may open the partition at once (P3). True: the log names this member as its owner no
 * more. False: to be tried again, for nobody else can open it while this member lives. `known` is where its owner left it,
 * no append being under way; undefined where that is not known, or it was never opened to the end.
 */
export async function handBack(
  opening: Opening,
  known: Pick<OpenedPartition, 'epoch' | 'sequence' | 'commitNumber' | 'idsTo'> | undefined,
): Promise<boolean> {
  const { log, member, signal } = opening;
  if (known !== undefined && (await appendReleased(opening, known))) return true;
  const last = await log.last(signal);
  const lastCommit = last === null ? null : decodeCommit(last.bytes);
  if (lastCommit === null || lastCommit.owner !== member || lastCommit.kind === 'released') return true;
  // What stands there may be the new end of a log that was cut: only who opens it finds out, and must, before it grows.
  const opened = await openPartition(opening);
  return opened !== null && (await appendReleased(opening, opened));
}

async function appendReleased(
  opening: Opening,
  { epoch, sequence, commitNumber, idsTo }: Pick<OpenedPartition, 'epoch' | 'sequence' | 'commitNumber' | 'idsTo'>,
): Promise<boolean> {
  const { partition, member, log, now, newCommitId, signal } = opening;
  const id = newCommitId();
  const bytes = encodeCommit(
    {
      id,
      kind: 'released',
      partition,
      epoch,
      number: commitNumber + 1,
      owner: member,
      minReader: COMMIT_FORMAT,
      at: now(),
      idsTo,
    },
    [],
  );
  return (await log.append(bytes, { commitId: id, expectedSequence: sequence }, signal)).ok;
}

/** The runs of interest, as committed, and what keys have used. Call it once `opened` is acknowledged: from then on no older owner adds to the log. */
export async function loadPartition(
  opened: OpenedPartition,
  { partition, log, ledger, signal, now }: Opening,
  shared: Restoring,
): Promise<LoadedPartition> {
  for (let attempt = 1; ; attempt++) {
    const turns = new Turns(shared.turn, signal);
    const loaded = await loadHistories(opened, { partition, log, ledger, signal, turns }, shared);
    if (loaded !== undefined) {
      const usages = await loadUsages(ledger, partition, loaded.replayed, now(), turns);
      const runs: LiveRun[] = [];
      for (const [id, history] of loaded.histories) {
        signal.throwIfAborted();
        runs.push(await liveRunOf(id, history, shared));
        await turns.after(history.events.length);
      }
      return {
        runs,
        usages,
        parked: [...loaded.parked.values()],
        schedules: loaded.schedules.restored(opened),
        deleted: loaded.deletions.restored(opened),
        leftOut: [...loaded.unreadable].filter((id) => !loaded.histories.has(id)),
      };
    }
    if (attempt === LOAD_TRIES)
      throw new Error(`partition ${partition}: the log does not go on where the checkpoint ends`);
  }
}

interface History {
  readonly events: RunEvent[];
  sequence: Sequence;
  /** How many of them the newest document has that was read. */
  inDocument: number;
}

/** What was found so far: of every run one of the two. */
interface Found {
  readonly histories: Map<string, History>;
  readonly parked: Map<string, ParkedDocument>;
  /** Their documents are damaged: what is not in the log of such a run is lost, and costs this run alone. */
  readonly unreadable: Set<string>;
}

/** Takes a document into memory, unless what is known is newer. `mayWait`: it is left outside where it can be, and there is no room. */
type TakeDocument = (document: RunDocument, mayWait: boolean) => Promise<void>;

/** What the store has, and what becomes of it. */
interface Documents extends Pick<RunsLedger, 'deletedAmong'> {
  readonly take: TakeDocument;
  /** Null: there is none, or it is damaged. */
  readAgain(id: string): Promise<RunDocument | null>;
}

async function loadHistories(
  opened: OpenedPartition,
  {
    partition,
    log,
    ledger,
    signal,
    turns,
  }: Pick<Opening, 'partition' | 'log' | 'ledger' | 'signal'> & { readonly turns: Turns },
  { room, log: told }: Pick<Restoring, 'room' | 'log'>,
): Promise<
  | (Found & {
      readonly replayed: readonly ReplayedEvents[];
      readonly schedules: ReplayedSchedules;
      readonly deletions: ReplayedDeletions;
    })
  | undefined
> {
  const checkpoint = await ledger.checkpoint(partition);
  const position = { incarnation: checkpoint?.incarnation ?? 0, sequence: checkpoint?.sequence ?? 0 };
  const found: Found = { histories: new Map(), parked: new Map(), unreadable: new Set() };
  const { histories, parked, unreadable } = found;
  const replayed: ReplayedEvents[] = [];
  const take: TakeDocument = async (document, mayWait) => {
    const { id, key } = document.state;
    await turns.after(document.events.length);
    const known = histories.get(id);
    if (known !== undefined && known.events.length >= document.events.length) {
      known.inDocument = Math.max(known.inDocument, document.events.length);
      return;
    }
    if (mayWait && (parked.get(id)?.version ?? 0) >= document.events.length) return;
    // A sequence of a log that was lost may be higher than any that this one will have for long: written as that, the run's
    // next documents would count as old.
    const sequence = document.incarnation === opened.incarnation ? document.sequence : opened.sequence;
    const waiting =
      mayWait && known === undefined && room?.isTight(key) === true ? parkedDocumentOf(document) : undefined;
    if (waiting === undefined) {
      parked.delete(id);
      histories.set(id, { events: [...document.events], sequence, inDocument: document.events.length });
      room?.take(key, document);
      return;
    }
    // Nothing else would write it over what an owner of the lost log has not written yet.
    if (document.incarnation !== opened.incarnation)
      await ledger.saveBatch([{ ...document, incarnation: opened.incarnation, sequence }]);
    parked.set(id, waiting);
  };
  const damaged = (runId: string, error: unknown): void => {
    if (!unreadable.has(runId)) told.error({ runId, partition, err: error }, DAMAGED);
    unreadable.add(runId);
  };
  const takeFound = async (document: RunDocument | UnreadableRun): Promise<void> => {
    if ('unreadable' in document) damaged(document.id, document.unreadable);
    else await take(document, true);
  };
  const readAgain = async (id: string): Promise<RunDocument | null> => {
    try {
      return unreadable.has(id) ? null : await ledger.getAsOwner(id);
    } catch (error) {
      if (!isDamage(error)) throw error;
      damaged(id, error);
      return null;
    }
  };
  const documents: Documents = { readAgain, take, deletedAmong: (ids) => ledger.deletedAmong(ids) };
  for await (const document of ledger.openOf(partition)) await takeFound(document);
  for await (const document of ledger.laterThan(partition, position)) await takeFound(document);
  const schedules = new ReplayedSchedules();
  for await (const document of ledger.schedulesOf(partition)) {
    if ('unreadable' in document) {
      told.error({ schedule: document.id, partition, err: document.unreadable }, DAMAGED_SCHEDULE);
      schedules.leaveOut(document.id);
    } else schedules.add(document);
    await turns.after(1);
  }
  const deletions = new ReplayedDeletions();
  const sameIncarnation = checkpoint?.incarnation === opened.incarnation;
  let next = sameIncarnation ? checkpoint.commit + 1 : undefined;
  for await (const entry of log.read(sameIncarnation ? checkpoint.sequence + 1 : 1, signal)) {
    const commit = decodeCommit(entry.bytes);
    if (next !== undefined && commit.number !== next) return undefined;
    next = commit.number + 1;
    if (!(await replay(found, commit, entry.sequence, documents))) return undefined;
    for (const { events } of commit.runs) await turns.after(events.length);
    const at = { incarnation: incarnationOf(commit.epoch), sequence: entry.sequence };
    schedules.replay(commit.schedules ?? [], at);
    deletions.replay(commit.deleted ?? [], at);
    forget(
      found,
      (commit.deleted ?? []).map(({ id }) => id),
    );
    for (const { id, from, events } of commit.runs) {
      // Of a run that waits outside, a commit with its beginning says all that is to be counted.
      const all = histories.get(id)?.events ?? events;
      replayed.push({ ...at, all, from, count: events.length });
    }
  }
  // A log that has lost its end may have lost the deletion, and have the run: what the store has as deleted stays so.
  if (!sameIncarnation) {
    forget(found, await ledger.deletedAmong([...histories.keys()]));
    await takeEnded(histories, documents, turns);
    // Of a log that has lost its end it may be the beginning of a run alone, which would be executed again. One that was never
    // projected has all of it.
    if (opened.incarnation > (checkpoint?.incarnation ?? 1)) forget(found, unreadable);
  }
  return { ...found, replayed, schedules, deletions };
}

/** A log that has lost its end may have the beginning of a run that has ended since: its document is closed, and behind the checkpoint. */
async function takeEnded(histories: Found['histories'], { readAgain, take }: Documents, turns: Turns): Promise<void> {
  for (const [id, { events, inDocument }] of [...histories]) {
    const last = events.at(-1);
    if (inDocument > 0 || (last !== undefined && closesRun(last))) continue;
    await turns.after(1);
    const document = await readAgain(id);
    if (document !== null) await take(document, false);
  }
}

function forget({ histories, parked }: Found, ids: Iterable<string>): void {
  for (const id of ids) {
    histories.delete(id);
    parked.delete(id);
  }
}

/** False: a run's events do not continue what is known of it. */
async function replay(
  { histories, parked, unreadable }: Found,
  commit: Commit,
  sequence: Sequence,
  { deletedAmong, readAgain, take }: Documents,
): Promise<boolean> {
  for (const { id, from, events } of commit.runs) {
    if (from === 1 && events.length <= (parked.get(id)?.version ?? 0)) continue;
    let history = histories.get(id);
    if (from > (history?.events.length ?? 0) + 1) {
      // What is between stands in its document alone: it was closed since, or its commits were lost with the end of a log, or
      // it was left outside.
      const document = await readAgain(id);
      if (document === null) {
        if (unreadable.has(id) || (await deletedAmong([id])).has(id)) continue;
        return false;
      }
      await take(document, false);
      history = histories.get(id);
    }
    if (history === undefined) {
      parked.delete(id);
      history = { events: [], sequence, inDocument: 0 };
      histories.set(id, history);
    }
    const known = history.events.length;
    if (from > known + 1) return false;
    const fresh = events.slice(known + 1 - from);
    if (fresh.length === 0) continue;
    history.events.push(...fresh);
    // One that was left outside for a moment may have been written for a later commit already.
    history.sequence = Math.max(history.sequence, sequence);
  }
  return true;
}

/** Whether the log has the checkpoint's commit, which no purge takes (P8). A shorter log may have grown past its sequence. */
async function stands(log: PartitionLog, checkpoint: Checkpoint, signal: AbortSignal): Promise<boolean> {
  for await (const entry of log.read(checkpoint.sequence, signal)) {
    return entry.sequence === checkpoint.sequence && decodeCommit(entry.bytes).number === checkpoint.commit;
  }
  return false;
}

/** An open run as its document has it; null: there is none. */
export async function readRun(
  id: RunId,
  { incarnation, sequence }: Pick<OpenedPartition, 'incarnation' | 'sequence'>,
  ledger: Pick<RunsLedger, 'getAsOwner'>,
  shared: Restoring,
): Promise<LiveRun | null> {
  const document = await ledger.getAsOwner(id);
  if (document === null) return null;
  const stands = document.incarnation === incarnation ? document.sequence : sequence;
  const { events } = document;
  return await liveRunOf(id, { events: [...events], sequence: stands, inDocument: events.length }, shared);
}

async function liveRunOf(
  id: RunId,
  history: History,
  { definitions, settings, log, read, readAdded: readText = readAddedText }: Omit<Restoring, 'room'>,
): Promise<LiveRun> {
  try {
    const [created] = history.events;
    if (created?.type !== 'run_created') throw new RunInvariantError(id, 'its events do not begin with run_created');
    const defined = definedRun(created, (await read?.(created)) ?? definitions);
    history.events[0] = defined.created;
    await readAdded(defined.definition, history.events, (text, options) =>
      readAddedAgain(readText, text, options, created.key),
    );
    return LiveRun.restore(id, defined.definition, history, settings);
  } catch (error) {
    log.error({ runId: id, err: error }, 'this run cannot be restored; it will be quarantined');
    const restoreError = `not restored: ${error instanceof Error ? error.message : String(error)}`;
    return LiveRun.unrestorable(id, history, settings, restoreError);
  }
}

/**
 * A log without its checkpoint's commit, or shorter than any document says, has lost commits: what is numbered anew must
 * count as newer (design: "the store is ahead"). The epochs carry the incarnation, so that it is not forgotten while
 * nothing of it is in the store yet.
 */
async function incarnationNow(
  checkpoint: Checkpoint | null,
  ledger: RunsLedger,
  log: PartitionLog,
  lastSequence: number,
  lastEpoch: number,
  signal: AbortSignal,
): Promise<number> {
  const known = Math.max(checkpoint?.incarnation ?? 1, incarnationOf(lastEpoch));
  let newest = known;
  let isAhead = checkpoint?.incarnation === known && !(await stands(log, checkpoint, signal));
  for await (const { incarnation } of ledger.laterThan(log.partition, { incarnation: known, sequence: lastSequence })) {
    isAhead = true;
    newest = Math.max(newest, incarnation);
  }
  const schedule = await ledger.newestSchedule(log.partition);
  if (schedule !== null && isBehind({ incarnation: known, sequence: lastSequence }, schedule)) {
    isAhead = true;
    newest = Math.max(newest, schedule.incarnation);
  }
  return isAhead ? newest + 1 : newest;
}

function incarnationOf(epoch: Epoch): number {
  return Math.max(1, Math.floor(epoch / EPOCHS_PER_INCARNATION));
}
