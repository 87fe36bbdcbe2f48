/**
 * The folders of runs: `<root>/<run id>` is the home of its stages; in it `shared`, a fresh one for each attempt that
 * asks for it, and the files that stages write their outputs to; beside it what they have as /tmp. They are made when the first stage needs them.
 * A run that has got the folders of an earlier one has them by the name that they have: `<root>/<seat>`.
 *
 * A stage may do to its folders what it likes: the next one finds them again, as new where they were taken away, and open where
 * they were shut.
 *
 * WORKSPACES-1. Nothing outside the run's folder and what it has as /tmp is touched, whatever a stage has put inside: removal follows no link.
 * WORKSPACES-2. A folder is removed only when no process of its run is left, which the caller sees to.
 * WORKSPACES-3. A workspace that is to be filled appears complete or not at all: one that is there was filled. `shared` is
 *     filled once, by the first stage that needs it; those that come meanwhile wait, and one of them tries again where the
 *     first has failed.
 * WORKSPACES-4. A folder serves another run only where both are of one key, and nothing that the first has left is in it.
 * WORKSPACES-5. A seat is one run's at a time. Whose it is stands on the disk before the run's first stage begins (SEATS-1): whenever the
 *     process is killed, the next one finds each run's folder, and removes the seats that are nobody's.
 * WORKSPACES-6. A folder is found empty by reading it. Only one that was found so before the run began, and has not changed since by the
 *     clock of its file system, which had gone on by then, is not read once more. No stage can set a change back. That the clock had gone on is known
 *     where it is this machine's; on a network disk every folder is read.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
} from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { unlessAborted } from '@penstock/async';
import type { StageUser } from '../contract/port.ts';
import { folderIdentity, runIdentity } from '../system/folder-identity.ts';
import { hasClockOfThisMachine } from './file-clock.ts';
import { type LastChanges, Spares, type Spare } from './spares.ts';
import { Seats } from './seats.ts';
import { giveTree, removeTree } from './trees.ts';

/** Begins no run's id; nor does it begin with a dot, for programs pass over what is in such a folder. */
const SEAT = /^seat_[0-9a-f]+_\d+$/;
const SEATS_FILE = '.seats';
/** As seats without a run were called before they kept their names. */
const FORMER_SPARE = '.spare-';
/** Before the name of a run's folder: what its stages have as /tmp. It stands beside that, where no stage can put a link in its place. */
const TEMPORARY = '.tmp-';
const RUN_ID = /^[0-9a-zA-Z][0-9a-zA-Z-]{0,63}$/;

/** Longer than the clock of any file system stands still: some count in seconds. */
const FILE_CLOCK_MS = 3_000;

const FOLDER_MODE = 0o700;
/** Of what holds the folders of all runs: entered by name, and not listed, by who has one in it. */
const ROOT_MODE = 0o711;

export interface StageFolders {
  /** Where the stage runs: the run's shared folder, or one of its own. */
  readonly workspace: string;
  /** Whether that is the attempt's own. */
  readonly fresh: boolean;
  readonly home: string;
  /** What executors that keep runs apart show as /tmp. */
  readonly temporary: string;
  /** Of the two: they are the same by another name, or others by the same. */
  readonly identity?: string | undefined;
  /** What `$SERVICE_OUTPUT` names; exists once the stage wrote to it, or `outputs` were declared. */
  readonly outputFile: string;
}

/** What the shared folder of a run holds beside what it was made with. */
export interface SharedContents {
  /** False: it is from before this process, which does not know all of it. For who fills it anew to set. */
  isKnown: boolean;
  /** What was laid out there or is part of it, by names that the caller gives; settles when it is there. */
  readonly laidOut: Map<string, Promise<void>>;
}

export interface PrepareOptions {
  readonly runId: string;
  /** Unique in the run. */
  readonly attempt: string;
  /** Whose the run is: its folders may serve a later run of the same key, if nothing was left in them. Absent: they go. */
  readonly key?: string | undefined;
  readonly fresh: boolean;
  /** Whom the stages of the run run as, the same for all runs of a key; its folders are given to it. Absent: the owner itself. */
  readonly user?: StageUser | undefined;
  readonly declaresOutputs: boolean;
  /** Makes a new workspace at a path where nothing is, all of it at once (WORKSPACES-3). Absent: workspaces begin empty. */
  readonly fill?: ((path: string) => Promise<void>) | undefined;
  /** Ends waiting for another's filling. */
  readonly signal?: AbortSignal | undefined;
}

export class Workspaces {
  readonly #root: string;
  /** WORKSPACES-3. Settles, and never rejects, when the filling under way is over. */
  readonly #fillings = new Map<string, Promise<void>>();
  readonly #removals = new Map<string, Promise<void>>();
  /** By run. */
  readonly #keys = new Map<string, string>();
  readonly #seats: Seats;
  /** By run. */
  readonly #contents = new Map<string, SharedContents>();
  /** Runs whose folder was made, or looked at, since. */
  readonly #prepared = new Set<string>();
  /** Runs whose folder was there when this process began. */
  readonly #found: Set<string>;
  /** By run: of the seat that it has got. */
  readonly #changed = new Map<string, LastChanges>();
  /** Seats without a run. */
  readonly #spares: Spares;
  /** WORKSPACES-6 */
  readonly #hasOwnClock: boolean;
  /** What an earlier process has left is not in the way. */
  readonly #seatName = `seat_${randomUUID().slice(0, 8)}_`;
  #namesMade = 0;

  /** `spares`: shared by several roots, where what they keep is to be bounded together. `hasOwnClock`: see WORKSPACES-6. */
  constructor(root: string, spares: Spares = new Spares(), hasOwnClock?: boolean) {
    this.#root = root;
    this.#spares = spares;
    mkdirSync(root, { recursive: true, mode: ROOT_MODE });
    chmodSync(root, ROOT_MODE);
    this.#hasOwnClock = hasOwnClock ?? hasClockOfThisMachine(root);
    const names = readdirSync(root, { withFileTypes: true });
    const seats = new Set(names.filter((name) => name.isDirectory() && SEAT.test(name.name)).map(({ name }) => name));
    // Where an older version has had a run meanwhile, it has a folder of its own name beside its seat: the later one.
    const others = new Set(names.map(({ name }) => name));
    this.#seats = new Seats(join(root, SEATS_FILE), (seat, runId) => seats.has(seat) && !others.has(runId));
    const taken = new Set(this.#seats.names);
    const folders = new Set(names.map(({ name }) => name).filter((name) => !SEAT.test(name) || taken.has(name)));
    for (const { name } of names) {
      const isTemporary = name.startsWith(TEMPORARY);
      const isLeft = isTemporary ? !folders.has(name.slice(TEMPORARY.length)) : !folders.has(name);
      if (isLeft || name.startsWith(FORMER_SPARE)) void removeRun(join(root, name)).catch(() => {});
    }
    this.#found = new Set(this.list());
  }

  /** The folders for one attempt. A removal of the run that is under way is waited for. @throws as `fill`; the signal's reason */
  async prepare(options: PrepareOptions): Promise<StageFolders> {
    const { runId, attempt, key, fresh, user, declaresOutputs, fill, signal } = options;
    assertRunId(runId);
    await this.#removals.get(runId);
    this.#prepared.add(runId);
    const spare =
      key !== undefined && !this.#keys.has(runId)
        ? this.#takeSpare(key, runId, { isFilled: fill !== undefined })
        : null;
    const isAsMade = spare !== null;
    if (key !== undefined) this.#keys.set(runId, key);
    const run = this.folderOf(runId);
    const shared = join(run, 'shared');
    const temporary = temporaryOf(run);
    const identity = spare?.identity ?? runIdentity(makeOpenFolder(run), makeOpenFolder(temporary));
    if (user !== undefined) for (const folder of [run, temporary]) await this.#giveRun(folder, user);
    if (fill === undefined) {
      if (!isAsMade) makeOpenFolder(shared);
      give(shared, user);
    } else if (!fresh) {
      await this.#fillOnce(shared, fill, signal);
      openToOwner(shared);
    }
    const workspace = fresh ? join(run, `fresh-${attempt}`) : shared;
    if (fresh && fill !== undefined) await fill(workspace);
    else if (fresh) {
      mkdirSync(workspace, { recursive: true, mode: FOLDER_MODE });
      give(workspace, user);
    }
    const outputFile = join(run, `output-${attempt}`);
    if (declaresOutputs) makeFile(outputFile, user);
    return { workspace, fresh, home: run, temporary, identity, outputFile };
  }

  /** After the attempt's outputs were read. */
  async finish({ workspace, fresh, outputFile }: StageFolders): Promise<void> {
    await removeTree(outputFile);
    if (fresh) await removeTree(workspace);
  }

  /** Of the run's shared folder; the caller's to keep, as long as that is there. Of a run that has none it is nobody's. */
  contentsOf(runId: string): SharedContents {
    let contents = this.#contents.get(runId);
    if (contents === undefined) {
      const isFound = this.#found.has(runId);
      contents = { isKnown: !isFound, laidOut: new Map() };
      if (isFound || this.#prepared.has(runId)) this.#contents.set(runId, contents);
    }
    return contents;
  }

  /** Ids of the runs that have a folder. */
  list(): string[] {
    return [...readdirSync(this.#root).filter((name) => RUN_ID.test(name)), ...this.#seats.runs];
  }

  /** Where the run's folder is, or would be. */
  folderOf(runId: string): string {
    assertRunId(runId);
    return join(this.#root, this.#seats.of(runId) ?? runId);
  }

  /** Idempotent. Rejects where something cannot be removed. */
  remove(runId: string): Promise<void> {
    const underway = this.#removals.get(runId);
    if (underway !== undefined) return underway;
    assertRunId(runId);
    const key = this.#keys.get(runId);
    this.#keys.delete(runId);
    this.#contents.delete(runId);
    this.#found.delete(runId);
    this.#prepared.delete(runId);
    const kept = key === undefined ? 'nothing' : this.#keepSpare(key, runId);
    this.#changed.delete(runId);
    if (kept === 'all') return Promise.resolve();
    const removal = (kept === 'nothing' ? this.#removeFilled(runId, key) : removeTree(kept.left)).finally(() =>
      this.#removals.delete(runId),
    );
    this.#removals.set(runId, removal);
    return removal;
  }

  /** What was in `shared` goes first: with nothing else left in them the run's folders are kept all the same. */
  async #removeFilled(runId: string, key: string | undefined): Promise<void> {
    const folder = this.folderOf(runId);
    if (key !== undefined && hasNothingBeside(folder, 'shared')) {
      await removeTree(join(folder, 'shared'));
      const kept = this.#keepSpare(key, runId);
      if (kept !== 'nothing') return kept === 'all' ? undefined : removeTree(kept.left);
    }
    const temporary = temporaryOf(folder);
    await Promise.all([removeEmpty(temporary) ? undefined : removeTree(temporary), removeRun(folder)]);
    this.#seats.giveUp(runId);
  }

  /** Of a run whose key had another user before the runner was started again, the whole tree. */
  async #giveRun(run: string, user: StageUser): Promise<void> {
    const { uid } = lstatSync(run);
    if (uid === user.uid) return;
    if (uid === process.getuid?.()) lchownSync(run, user.uid, user.gid);
    else await giveTree(run, user);
  }

  /**
   * Where there is one, and the run has no folders yet. `isFilled`: its `shared` will be; an empty one would pass for it. Null: not
   * all of the run's folders are there, as they are made.
   */
  #takeSpare(key: string, runId: string, { isFilled }: { readonly isFilled: boolean }): Spare | null {
    if (lstatSync(this.folderOf(runId), { throwIfNoEntry: false }) !== undefined) return null;
    const spare = this.#spares.take(key, (path) => dirname(path) === this.#root);
    if (spare === undefined) return null;
    try {
      for (const folder of foldersOf(spare)) lstatSync(folder);
      this.#seats.take(basename(spare.path), runId);
    } catch {
      // Somebody has made room by hand meanwhile, or the disk is full: what it held goes, and there may be room for another.
      removeSpare(spare);
      return null;
    }
    this.#changed.set(runId, spare.changed);
    if (isFilled && !removeEmpty(join(spare.path, 'shared')))
      throw new Error('something is in a folder that was kept empty');
    return spare.hasTemporary && spare.hasShared && !isFilled ? spare : null;
  }

  /**
   * WORKSPACES-4. Run's and /tmp, so that who shows them to stages can go on as it is; with `shared`, where that is empty. `left`: all but what
   * was left in its /tmp, which is to be removed.
   */
  #keepSpare(key: string, runId: string): 'all' | { readonly left: string } | 'nothing' {
    const run = this.folderOf(runId);
    const temporary = temporaryOf(run);
    const isSeat = this.#seats.of(runId) !== undefined;
    const seat = isSeat ? run : this.#newSeat();
    // Nobody's name, but for who removes the run once more.
    const left = temporaryOf(join(this.#root, runId));
    try {
      const found = lookAt(run, temporary, this.#changed.get(runId), this.#hasOwnClock ? Date.now() : Number.NaN);
      if (found === null) return 'nothing';
      const { hasTemporary } = found;
      const isGone = hasTemporary || removeEmpty(temporary);
      if (hasTemporary && !isSeat) renameSync(temporary, temporaryOf(seat));
      if (!isGone && isSeat) renameSync(temporary, left);
      if (!isSeat) renameSync(run, seat);
      this.#seats.giveUp(runId);
      const oldest = this.#spares.keep({ key, path: seat, ...found });
      if (oldest !== undefined) removeSpare(oldest);
      return isGone ? 'all' : { left };
    } catch {
      removeEmpty(temporaryOf(seat));
      return 'nothing';
    }
  }

  #newSeat(): string {
    return join(this.#root, `${this.#seatName}${(this.#namesMade += 1)}`);
  }

  async #fillOnce(path: string, fill: (path: string) => Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    for (let underway = this.#fillings.get(path); underway !== undefined; underway = this.#fillings.get(path))
      await unlessAborted(underway, signal);
    if (folderAt(path) !== undefined) return;
    const filling = fill(path);
    const over = filling
      .catch(() => {})
      .then(() => {
        this.#fillings.delete(path);
      });
    this.#fillings.set(path, over);
    await filling;
  }
}

function assertRunId(runId: string): void {
  if (!RUN_ID.test(runId)) throw new RangeError(`not a run id: ${JSON.stringify(runId)}`);
}

/** Of a run's folder: what its stages have as /tmp. */
function temporaryOf(folder: string): string {
  return join(dirname(folder), `${TEMPORARY}${basename(folder)}`);
}

/** All that are kept, but for one that is there where another is. */
function foldersOf({ path, hasTemporary, hasShared }: Spare): string[] {
  return [hasShared ? join(path, 'shared') : path, ...(hasTemporary ? [temporaryOf(path)] : [])];
}

function removeSpare({ path }: Spare): void {
  removeEmpty(temporaryOf(path));
  void removeRun(path).catch(() => {});
}

/** Where it is not the user's already: to give it again would be a change of it (WORKSPACES-6). */
function give(path: string, user: StageUser | undefined): void {
  // Of the path itself: what a stage has put in its place is not followed.
  if (user !== undefined && lstatSync(path).uid !== user.uid) lchownSync(path, user.uid, user.gid);
}

function makeFile(path: string, user: StageUser | undefined): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    if (user !== undefined) fchownSync(file, user.uid, user.gid);
  } finally {
    closeSync(file);
  }
}

/** A stage may have removed it, or put something else in its place. Answers its identity. */
function makeOpenFolder(path: string): string {
  const found = folderAt(path);
  if (found === undefined) mkdirSync(path, { mode: FOLDER_MODE });
  else openToOwner(path, found);
  return folderIdentity(path, found);
}

/** A stage may have shut it (`chmod 0 .`). The folder itself, whatever is swapped for it meanwhile. */
function openToOwner(path: string, { mode }: Stats = lstatSync(path)): void {
  if ((mode & OWNER_BITS) === OWNER_BITS) return;
  // Only root may open a folder that is shut; anybody else has the stage's own rights, and follows nothing that it could not.
  if (process.getuid?.() !== 0) return chmodSync(path, FOLDER_MODE);
  const folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    fchmodSync(folder, FOLDER_MODE);
  } finally {
    closeSync(folder);
  }
}

const OWNER_BITS = 0o700;

/** Undefined: nothing is there (any more). A link, a file in its place: WORKSPACES-1 would not hold through it. */
function folderAt(path: string): Stats | undefined {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return found;
  if (found !== undefined) rmSync(path);
  return undefined;
}

/**
 * What can be kept of a run's folders; null: something was left in them. `before`: how they were found by whoever gave them to the run.
 * `nowMs`: by the clock of files; NaN: it is not known.
 */
function lookAt(
  run: string,
  temporary: string,
  before: LastChanges | undefined,
  nowMs: number,
): Omit<Spare, 'key' | 'path'> | null {
  const shared = join(run, 'shared');
  const found = lstatSync(run);
  const { uid } = found;
  const inside = found.ctimeMs === before?.run ? ['shared'] : readdirSync(run);
  const hasShared = inside.length === 1 && inside[0] === 'shared';
  if (!isAsMade(found, uid) || (inside.length > 0 && !hasShared)) return null;
  const foundShared = hasShared ? lstatSync(shared) : undefined;
  if (foundShared !== undefined && !(isAsMade(foundShared, uid) && isEmpty(shared, foundShared, before?.shared)))
    return null;
  const foundTemporary = lstatSync(temporary);
  const hasTemporary = isAsMade(foundTemporary, uid) && isEmpty(temporary, foundTemporary, before?.temporary);
  return {
    identity: runIdentity(folderIdentity(run, found), folderIdentity(temporary, foundTemporary)),
    hasShared,
    hasTemporary,
    changed: {
      run: lastChange(hasShared ? found : undefined, nowMs),
      shared: lastChange(foundShared, nowMs),
      temporary: lastChange(hasTemporary ? foundTemporary : undefined, nowMs),
    },
  };
}

/** WORKSPACES-6. `emptyAt`: when it had changed last as it was found empty. */
function isEmpty(folder: string, { ctimeMs }: Stats, emptyAt: number | undefined): boolean {
  return ctimeMs === emptyAt || readdirSync(folder).length === 0;
}

/** NaN where a change that comes now could have the same time. */
function lastChange(found: Stats | undefined, nowMs: number): number {
  return found !== undefined && nowMs - found.ctimeMs > FILE_CLOCK_MS ? found.ctimeMs : Number.NaN;
}

/** False also where it cannot be told. */
function hasNothingBeside(folder: string, name: string): boolean {
  try {
    return readdirSync(folder).every((each) => each === name);
  } catch {
    return false;
  }
}

function isAsMade(stat: Stats, uid: number): boolean {
  return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o7777) === FOLDER_MODE;
}

/** False: it is not empty, or no folder. Nothing there: it is removed. */
function removeEmpty(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

async function removeRun(folder: string): Promise<void> {
  try {
    // A run that left no file, at a tenth of a tree's cost.
    await rmdir(join(folder, 'shared'));
    await rmdir(folder);
  } catch {
    await removeTree(folder);
  }
}
