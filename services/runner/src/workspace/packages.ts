/**
 * The packages of extensions on this runner: a cache by hash that no stage can see, and copies of them for the attempts that
 * want one. A stage may do to its copy what it likes; the next one, of another owner perhaps, gets what the hash says.
 */
import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, readdirSync } from 'node:fs';
import { chmod, cp, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bus, Job } from '@penstock/bus';
import { giveTree, removeTree, type StageUser } from '@penstock/executor';
import { ExtensionCache, type PackagePart, type PackageRequest } from '@penstock/extension';
import { callService } from '@penstock/service';
import type { Log } from '@penstock/telemetry/log';
import { NotPrepared } from './errors.ts';

export interface PackagesOptions {
  readonly bus: Bus;
  /** Holds the cache (`packages`) and what is being copied (`package-copies`); on the file system of the workspaces. */
  readonly folder: string;
  readonly log: Log;
}

/** Unpacked, of all packages; those not used for longest go first. */
const CACHE_BYTES_MAX = 1024 ** 3;

export class Packages {
  readonly #options: PackagesOptions;
  readonly #cache: ExtensionCache;
  readonly #copies: string;

  constructor(options: PackagesOptions) {
    this.#options = options;
    this.#cache = new ExtensionCache(join(options.folder, 'packages'), { bytesMax: CACHE_BYTES_MAX });
    this.#copies = join(options.folder, 'package-copies');
    mkdirSync(this.#copies, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#copies))
      removeTree(join(this.#copies, name)).catch((error: unknown) =>
        options.log.warn({ err: error }, 'an unfinished copy of a package could not be removed'),
      );
  }

  /** A copy of the package at `path`, where nothing is: all of it at once, read-only for who is not root. @throws NotPrepared; the signal's reason */
  async copyTo(
    path: string,
    { id, version, hash }: NonNullable<Job['extension']>,
    signal: AbortSignal,
    user?: StageUser,
  ): Promise<void> {
    const copy = join(this.#copies, randomUUID());
    try {
      const { folder, release } = await this.#cache.hold(hash, () => this.#fetch(hash));
      try {
        signal.throwIfAborted();
        await cp(folder, copy, { recursive: true, mode: constants.COPYFILE_FICLONE });
      } finally {
        release();
      }
      // A folder that moves is written to: it says where its parent is.
      await chmod(copy, user === undefined ? 0o700 : 0o500);
      if (user !== undefined) await giveTree(copy, user);
      await rename(copy, path);
      // Of a folder that a stage of the same run can reach already, only what is at the path itself may be changed.
      if (user === undefined) await chmod(path, 0o500);
    } catch (error) {
      await removeTree(copy);
      signal.throwIfAborted();
      throw new NotPrepared(
        `the extension ${id}@${version} could not be fetched: ${error instanceof Error ? error.message : 'for no known reason'}`,
        { cause: error },
      );
    }
  }

  /** Shared by all who wait for the package, so nobody's signal ends it; each part has a deadline, and the cache a bound. */
  async *#fetch(hash: string): AsyncIterable<Uint8Array> {
    for (let offset = 0, size = 1; offset < size;) {
      const part = await callService<PackageRequest, PackagePart>(this.#options.bus, 'registry', 'package', {
        hash,
        offset,
      });
      const bytes = Buffer.from(part.data, 'base64');
      if (bytes.length === 0) throw new Error('the registry has sent less than it said');
      offset += bytes.length;
      ({ size } = part);
      yield bytes;
    }
  }
}
