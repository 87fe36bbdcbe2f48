/**
 * The folders of runs: `<root>/<run id>/` is the home of its stages; in it `shared`, a fresh one for each attempt that
 * asks for it, and the files that stages write their outputs to. They are made when the first stage needs them.
 *
 * A stage may do to its folders what it likes: the next one finds them again, empty where they were taken away.
 *
 * W1. Nothing outside `<root>/<run id>` is touched, whatever a stage has put inside: removal follows no link.
 * W2. A folder is removed only when no process of its run is left, which the caller sees to.
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

export class Workspaces {
  readonly #root: string;
  readonly #removals = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = root;
    mkdirSync(root, { recursive: true, mode: 0o700 });
  }

  /** The folders for one attempt. A removal of the run that is under way is waited for. `attempt` is unique in the run. */
  async prepare(options: { readonly runId: string; readonly attempt: string; readonly fresh: boolean; readonly declaresOutputs: boolean }): Promise<StageFolders> {
    const { runId, attempt, fresh, declaresOutputs } = options;
    const run = this.#folderOf(runId);
    await this.#removals.get(runId);
    const shared = join(run, 'shared');
    for (const folder of [run, shared]) makeFolder(folder);
    const workspace = fresh ? join(run, `fresh-${attempt}`) : shared;
    if (fresh) mkdirSync(workspace, { recursive: true, mode: 0o700 });
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

  #folderOf(runId: string): string {
    if (!RUN_ID.test(runId)) throw new RangeError(`not a run id: ${JSON.stringify(runId)}`);
    return join(this.#root, runId);
  }
}

/** A link, a file in its place: W1 would not hold through it. */
function makeFolder(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found !== undefined) rmSync(path);
  mkdirSync(path, { mode: 0o700 });
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
