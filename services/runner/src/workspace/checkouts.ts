/**
 * Workspaces at a commit. A checkout is made where no stage can reach it and appears at its place by one rename: no program
 * of this runner ever works in a folder that a stage could have prepared for it, and none is half there.
 *
 * The folder is this object's alone; what an earlier process left there goes at the start.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { cloneSecretRemedy, type CloneSecret, type Job } from '@penstock/bus';
import { giveTree, removeTree, type StageUser } from '@penstock/executor';
import { GitError, type MirrorCache } from '@penstock/git';
import type { Log } from '@penstock/telemetry/log';
import { NotPrepared } from './errors.ts';
import { spreadFolders } from './spread-folders.ts';

export interface CheckoutsOptions {
  /** On the file system of the workspaces. */
  readonly folder: string;
  /** Undefined: this runner reads no repositories. */
  readonly mirrors: MirrorCache | undefined;
  readonly log: Log;
}

export class Checkouts {
  readonly #options: CheckoutsOptions;
  #spread: Promise<boolean> | undefined;

  constructor(options: CheckoutsOptions) {
    this.#options = options;
    const { folder, log } = options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder))
      removeTree(join(folder, name)).catch((error: unknown) =>
        log.warn({ err: error }, 'an unfinished checkout could not be removed'),
      );
  }

  /**
   * Makes the workspace of a job at a path where nothing is. Undefined for a job without a repository. `cloneSecret` is asked then: what
   * the repository is read with in place of what this machine has. It throws NotPrepared; the signal's reason.
   */
  filling(
    job: Job,
    signal: AbortSignal,
    user?: StageUser,
    cloneSecret: () => Promise<CloneSecret | undefined> = () => Promise.resolve(undefined),
  ): ((path: string) => Promise<void>) | undefined {
    const { cloneUrl, commit, ref, pullRequest } = job.origin;
    if (cloneUrl === undefined || commit === undefined) return undefined;
    const { mirrors } = this.#options;
    if (mirrors === undefined) return () => Promise.reject(new NotPrepared('this runner reads no repositories'));
    return async (path) => {
      const staging = join(this.#options.folder, randomUUID());
      let isGiven: boolean;
      await (this.#spread ??= spreadFolders(this.#options.folder));
      const secret = await cloneSecret();
      try {
        const fetched = await mirrors.fetch({
          url: cloneUrl,
          commit,
          key: job.key,
          credential: secret?.opens,
          signal,
          // What a branch leads to is found without it.
          ...(pullRequest === undefined ? {} : { ref }),
        });
        isGiven = await fetched.checkout(staging, { signal, owner: user });
      } catch (error) {
        throw error instanceof GitError ? notCheckedOut(error, secret) : error;
      }
      try {
        if (user !== undefined && !isGiven) await giveTree(staging, user);
        await rename(staging, path);
      } catch (error) {
        await removeTree(staging);
        throw error;
      }
    };
  }
}

function notCheckedOut(error: GitError, secret: CloneSecret | undefined): NotPrepared {
  const isOfSecret = secret !== undefined && (error.code === 'denied' || error.code === 'not_found');
  const remedy = isOfSecret ? `; ${cloneSecretRemedy(secret.name)}` : '';
  return new NotPrepared(`the workspace could not be checked out: ${error.message} (${error.code})${remedy}`, {
    cause: error,
  });
}
