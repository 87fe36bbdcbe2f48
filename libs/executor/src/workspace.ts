/**
 * The folders of runs: `<root>/<run id>/` is the home of its stages; in it `shared`, a fresh one for each attempt that
 * asks for it, and the files that stages write their outputs to. They are made when the first stage needs them.
 *
 * A stage may do to its folders what it likes: the next one finds them again, as new where they were taken away.
 *
 * W1. Nothing outside `<root>/<run id>` is touched, whatever a stage has put inside: removal follows no link.
 * W2. A folder is removed only when no process of its run is left, which the caller sees to.
 * W3. A workspace that is to be filled appears complete or not at all: that it is there says that it was filled. `shared`
 *     is filled once, by the first stage that needs it; those that come meanwhile wait, and one of them tries again where
 *     the first has failed.
 */
import { execFile } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** For a tree that needs `rm`; a large one on a slow disk takes minutes. */
const REMOVE_MS_MAX = 10 * 60_000;
const RUN_ID = /^[0-9a-zA-Z][0-9a-zA-Z-]{0,63}$/;

export interface StageFolders {
  /** Where the stage runs: the run's shared folder, or one of its own. */
  readonly workspace: string;
  /** Whether that is the attempt's own. */
  readonly fresh: boolean;
  readonly home: string;
  /** What `$SERVICE_OUTPUT` names; exists once the stage wrote to it, or `outputs` were declared. */
  readonly outputFile: string;
}

export interface PrepareOptions {
  readonly runId: string;
  /** Unique in the run. */
  readonly attempt: string;
  readonly fresh: boolean;
  readonly declaresOutputs: boolean;
  /** Makes a new workspace at a path where nothing is, all of it at once (W3). Absent: workspaces begin empty. */
  readonly fill?: ((path: string) => Promise<void>) | undefined;
  /** Ends waiting for another's filling. */
  readonly signal?: AbortSignal | undefined;
}

export class Workspaces {
  readonly #root: string;
  /** W3. Settles, and never rejects, when the filling under way is over. */
  readonly #fillings = new Map<string, Promise<void>>();
  readonly #removals = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
    mkdirSync(root, { recursive: true, mode: 0o700 });
  }

  /** The folders for one attempt. A removal of the run that is under way is waited for. @throws as `fill`; the signal's reason */
  async prepare(options: PrepareOptions): Promise<StageFolders> {
    const { runId, attempt, fresh, declaresOutputs, fill, signal } = options;
    const run = this.#folderOf(runId);
    await this.#removals.get(runId);
    const shared = join(run, 'shared');
    makeFolder(run);
    if (fill === undefined) makeFolder(shared);
    else if (!fresh) await this.#fillOnce(shared, fill, signal);
    const workspace = fresh ? join(run, `fresh-${attempt}`) : shared;
    if (fresh && fill !== undefined) await fill(workspace);
    else if (fresh) mkdirSync(workspace, { recursive: true, mode: 0o700 });
    const outputFile = join(run, `output-${attempt}`);
    if (declaresOutputs) writeFileSync(outputFile, '', { flag: 'wx', mode: 0o600 });
    return { workspace, fresh, home: run, outputFile };
  }

  /** After the attempt's outputs were read. */
  async finish({ workspace, fresh, outputFile }: StageFolders): Promise<void> {
    if (existsSync(outputFile)) rmSync(outputFile, { recursive: true, force: true });
    if (fresh) await removeTree(workspace);
  }

  /** Ids of the runs that have a folder. */
  list(): string[] {
    return readdirSync(this.#root).filter((name) => RUN_ID.test(name));
  }

  /** Idempotent. Rejects where something cannot be removed. */
  remove(runId: string): Promise<void> {
    const underway = this.#removals.get(runId);
    if (underway !== undefined) return underway;
    const removal = removeRun(this.#folderOf(runId)).finally(() => this.#removals.delete(runId));
    this.#removals.set(runId, removal);
    return removal;
  }

  async #fillOnce(path: string, fill: (path: string) => Promise<void>, signal: AbortSignal | undefined): Promise<void> {
    for (let underway = this.#fillings.get(path); underway !== undefined; underway = this.#fillings.get(path)) await unlessAborted(underway, signal);
    if (!clearUnlessFolder(path)) return;
    const filling = fill(path);
    const over = filling.catch(() => {}).then(() => {
      this.#fillings.delete(path);
    });
    this.#fillings.set(path, over);
    await filling;
  }

  #folderOf(runId: string): string {
    if (!RUN_ID.test(runId)) throw new RangeError(`not a run id: ${JSON.stringify(runId)}`);
    return join(this.#root, runId);
  }
}

function makeFolder(path: string): void {
  if (clearUnlessFolder(path)) mkdirSync(path, { mode: 0o700 });
}

/** Whether nothing is there (any more). A link, a file in its place: W1 would not hold through it. */
function clearUnlessFolder(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return false;
  if (found !== undefined) rmSync(path);
  return true;
}

async function unlessAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([work, promise]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
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

/** Also with folders that nobody may read and paths longer than the kernel takes: those are left to `chmod` and `rm`. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    const run = promisify(execFile);
    const options = { timeout: REMOVE_MS_MAX, maxBuffer: 64 * 1024 };
    // What it cannot change is not ours; rm then says so.
    await run('chmod', ['-R', 'u+rwX', '--', path], options).catch(() => {});
    await run('rm', ['-rf', '--', path], options);
  }
}
