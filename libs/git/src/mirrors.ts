/**
 * Repositories by address and commit: what is fetched is kept in bare mirrors, one a repository, below a folder that is this
 * process's alone. Concurrency, sharing and the bound on the folder's size are seen to here.
 *
 * MIRRORCACHE-1. The mirrors together hold at most `bytesMax` once a fetch has ended; those not used for longest go first,
 *     never one in use. While fetches run they may hold `repositoryBytesMax` more for each.
 * MIRRORCACHE-3. What was fetched for one key serves no other: a tenant's private repository is another mirror than the same address
 *     is to another tenant, on the disk and in memory. Nor does what was fetched with a credential of the repository's own serve
 *     who comes without one, or the other way round.
 * MIRRORCACHE-2. A caller holds a commit's name, never a folder: where its mirror has gone meanwhile, it is fetched again.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { checkOut, checkOutSmall, startCheckoutThread } from './checkout.ts';
import {
  findFile,
  MESSAGE_BYTES_MAX,
  readMessage,
  readSmallFile,
  readText,
  type CommitFile,
  type InMirror,
} from './commit-files.ts';
import { lookupAll, type Lookup } from './connection.ts';
import { problemWithFile, type CloneCredential } from './credentials.ts';
import { findRef } from './find-ref.ts';
import { folderBytes } from './folder-bytes.ts';
import { runGit } from './git-command.ts';
import { assertGitUsable } from './git-version.ts';
import { ObjectReaders } from './objects.ts';
import { Mirror, type MirrorDependencies, type Remote } from './mirror.ts';
import { checkCloneUrl, checkCommit, checkRef, isCommit, type CloneAddress, type GitPolicy } from './policy.ts';
import { Slots } from './slots.ts';
import type { SmallCommit } from './small-commit.ts';
import { SmallCommits } from './small-commits.ts';
import type { Owner } from './write-checkout.ts';
import { makeFolderSync, unlessAborted } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';

export interface MirrorCacheOptions {
  /** No other process uses it. */
  readonly folder: string;
  /** Of all mirrors together. */
  readonly bytesMax: number;
  readonly policy: GitPolicy;
  /** In the form of `git credential-store`, or a program that is a git credential helper. Asked for http and https. */
  readonly credentialsFile?: string | undefined;
  readonly log: Log;
  /** Leaves the contents of files with servers that allow it until they are read: for who reads a file or two. */
  readonly partial?: boolean | undefined;
  /** Of one repository, and of the files of one commit. Default 2 GiB, at most `bytesMax`. */
  readonly repositoryBytesMax?: number | undefined;
  /** From the request until the commit is there, waiting included. Default 60,000. */
  readonly fetchMsMax?: number | undefined;
  /** Fetches at once, default 8; half as many from one server, and for one key. */
  readonly concurrency?: number | undefined;
  /** Further settings of ssh, `Name=value`: which key, which known hosts. Default: those of the user that runs this. */
  readonly sshSettings?: readonly string[] | undefined;
  /** Default: the system's. */
  readonly lookup?: Lookup | undefined;
}

interface FetchRequest {
  readonly url: string;
  /** 40 or 64 hexadecimal digits, of a commit or of a tag; it need not be the head of a branch. */
  readonly commit: string;
  /** A ref beside branches and tags that leads to it, for servers that give no commit by its id: `refs/pull/7/head`. */
  readonly ref?: string | undefined;
  /** Whose it is (MIRRORCACHE-3), places to fetch included; absent: nobody's in particular. */
  readonly key?: string | undefined;
  /** In place of what this machine has: the repository is read with it, or not at all. */
  readonly credential?: CloneCredential | undefined;
  /** Commits of the same repository that will be asked for next: they come along where they cost no fetch of their own. */
  readonly along?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A commit that was there. Each method may have to fetch again (MIRRORCACHE-2), and rejects as `fetch` does. */
interface FetchedCommit {
  /** The commit's own id, where the request named a tag. */
  readonly commit: string;
  /** The clone address without credentials. */
  readonly url: string;
  /** The first of `paths` that the commit has, null where it has none. GitError `bad_file`: a link, a folder, a submodule, over `bytesMax`, no UTF-8. */
  readFile(
    paths: readonly string[],
    bytesMax: number,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<CommitFile | null>;
  /** At most 64 KiB. */
  message(): Promise<string>;
  /** What it changes since it left this branch, `ref` leading to it; null: not known, for it was too long ago. */
  changedPaths(ref: string, branch: string): Promise<string[] | null>;
  /**
   * Writes a repository at the commit into `folder`, which is empty or not there. Whole when it resolves, gone when it rejects.
   * Resolves with whether all of it belongs to `owner`; otherwise to this process.
   */
  checkout(
    folder: string,
    options?: { readonly signal?: AbortSignal | undefined; readonly owner?: Owner | undefined },
  ): Promise<boolean>;
}

interface FindRefRequest {
  readonly url: string;
  /** Its full name. */
  readonly ref: string;
  /** Whose it is: places are shared between keys. */
  readonly key?: string | undefined;
  /** As of a fetch. */
  readonly credential?: CloneCredential | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface MirrorCache {
  /** @throws GitError; the signal's reason */
  fetch(request: FetchRequest): Promise<FetchedCommit>;
  /** What the ref names on its server now, null where there is no such ref; nothing is fetched. @throws GitError; the signal's reason */
  findRef(request: FindRefRequest): Promise<string | null>;
  /** Ends what runs; resolves when nothing is left. */
  close(): Promise<void>;
}

const REPOSITORY_BYTES_MAX = 2 * 1024 ** 3;
const FETCH_MS_MAX = 60_000;
/** A person waits for it. */
const FIND_MS_MAX = 15_000;
const FETCHES_AT_ONCE = 8;
const FETCHES_WAITING_MAX = 1_000;
/** Reading from the disk of this machine. */
const READ_MS_MAX = 60_000;
const CHECKOUT_MS_MAX = 10 * 60_000;
const SMALL_COMMITS_BYTES_MAX = 64 * 1024 ** 2;

interface WantedCommit {
  readonly address: Remote;
  readonly commit: string;
  readonly key: string | undefined;
  readonly ref: string | undefined;
}

/** What work with a commit is given. */
interface Within {
  readonly mirror: Mirror;
  /** The commit's own id. */
  readonly own: string;
  readonly git: InMirror;
  readonly signal: AbortSignal;
}

export function openMirrors(options: MirrorCacheOptions): MirrorCache {
  return new FolderMirrorCache(options);
}

class FolderMirrorCache implements MirrorCache {
  readonly #options: MirrorCacheOptions;
  readonly #dependencies: MirrorDependencies;
  readonly #mirrors = new Map<string, Mirror>();
  readonly #readers = new ObjectReaders();
  readonly #small = new SmallCommits(SMALL_COMMITS_BYTES_MAX);
  readonly #checkouts = startCheckoutThread();
  readonly #closing = new AbortController();
  readonly #active = new Set<Promise<unknown>>();
  /** Of the mirrors that were found, done before the first eviction. */
  readonly #measured: Promise<unknown>;
  #usable: Promise<void> | null = null;

  constructor(options: MirrorCacheOptions) {
    this.#options = options;
    const {
      policy,
      credentialsFile,
      log,
      bytesMax,
      partial = false,
      repositoryBytesMax = REPOSITORY_BYTES_MAX,
      fetchMsMax = FETCH_MS_MAX,
    } = options;
    this.#dependencies = {
      policy,
      credentialsFile,
      log,
      partial,
      fetchMsMax,
      rested: (mirror) => this.#forgetUnlessThere(mirror),
      assertUsable: () => this.#assertUsable(),
      lookup: options.lookup ?? lookupAll,
      sshSettings: options.sshSettings ?? [],
      repositoryBytesMax: Math.min(repositoryBytesMax, bytesMax),
      readers: this.#readers,
      slots: new Slots(options.concurrency ?? FETCHES_AT_ONCE, FETCHES_WAITING_MAX),
    };
    const problem = credentialsFile === undefined ? null : problemWithFile(credentialsFile);
    if (problem !== null) log.warn({ file: credentialsFile }, problem);
    makeFolderSync(options.folder);
    this.#measured = this.#find();
  }

  async fetch({ url, commit, key, credential, ref, along, signal }: FetchRequest): Promise<FetchedCommit> {
    const address: Remote = { ...checkCloneUrl(url, this.#options.policy), credential, key };
    if (ref !== undefined) checkRef(ref);
    const wanted = { address, commit: checkCommit(commit), key, ref };
    const { partial } = this.#dependencies;
    const next = along?.filter(isCommit);
    const found = await this.#with(wanted, { whole: !partial, along: next, signal }, ({ own }) => Promise.resolve(own));
    return {
      commit: found,
      url: address.url,
      readFile: (paths, bytesMax, more) =>
        this.#with(wanted, { whole: !partial, signal: more?.signal }, (within) =>
          this.#readFile(address, within, paths, bytesMax),
        ),
      message: () =>
        this.#with(wanted, { whole: !partial, signal: undefined }, async (within) => {
          const small = partial ? null : await this.#smallOf(within);
          return small !== null && small.message.length < MESSAGE_BYTES_MAX / 4
            ? small.message
            : readMessage(within.git, within.own);
        }),
      changedPaths: (leading, branch) => {
        checkRef(leading);
        checkRef(`refs/heads/${branch}`);
        return this.#with(wanted, { whole: !partial, signal: undefined }, ({ mirror, own, signal: inner }) =>
          mirror.changedPaths(address, { commit: own, ref: leading, branch }, inner),
        );
      },
      checkout: (folder, more) =>
        this.#with(wanted, { whole: true, signal: more?.signal }, (within) =>
          this.#checkOut(address, within, folder, more?.owner),
        ),
    };
  }

  async #checkOut({ url }: CloneAddress, within: Within, folder: string, owner: Owner | undefined): Promise<boolean> {
    const { mirror, own, signal } = within;
    const bytesMax = this.#dependencies.repositoryBytesMax;
    const small = await this.#smallOf(within);
    if (small !== null && small.bytes <= bytesMax) {
      await checkOutSmall(this.#checkouts, small, { url, folder, owner, signal });
      return true;
    }
    await checkOut({ mirror: mirror.folder, commit: own, url, folder, bytesMax, timeoutMs: CHECKOUT_MS_MAX, signal });
    return owner === undefined;
  }

  /** Null also where it cannot be read this way: git then says what is the matter with it. */
  async #smallOf({ mirror, own, signal }: Within): Promise<SmallCommit | null> {
    try {
      return await unlessAborted(
        this.#small.of(mirror.folder, own, () => this.#readers.of(mirror.folder)),
        signal,
      );
    } catch (error) {
      signal.throwIfAborted();
      this.#options.log.debug({ err: error }, 'a commit could not be read into memory');
      return null;
    }
  }

  async findRef({ url, ref, key, credential, signal: given }: FindRefRequest): Promise<string | null> {
    const address = checkCloneUrl(url, this.#options.policy);
    const { slots, fetchMsMax, assertUsable } = this.#dependencies;
    const signal = AbortSignal.any([
      this.#closing.signal,
      AbortSignal.timeout(Math.min(fetchMsMax, FIND_MS_MAX)),
      ...(given === undefined ? [] : [given]),
    ]);
    const task = slots.with({ server: `${address.host}:${address.port}`, key }, signal, async () => {
      await assertUsable();
      return await findRef(address, ref, {
        ...this.#dependencies,
        credential,
        folder: this.#options.folder,
        timeoutMs: FIND_MS_MAX,
        signal,
      });
    });
    this.#active.add(task);
    return await task.finally(() => this.#active.delete(task));
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the mirrors are closed'));
    await Promise.allSettled([...this.#active, this.#measured]);
    this.#readers.closeAll();
    await this.#checkouts.close();
  }

  async #with<T>(
    { address, commit, key, ref }: WantedCommit,
    {
      whole,
      along,
      signal: given,
    }: {
      readonly whole: boolean;
      readonly along?: readonly string[] | undefined;
      readonly signal: AbortSignal | undefined;
    },
    work: (within: Within) => Promise<T>,
  ): Promise<T> {
    const signal = given === undefined ? this.#closing.signal : AbortSignal.any([given, this.#closing.signal]);
    signal.throwIfAborted();
    const task = (async () => {
      const mirror = this.#mirrorOf(address, commit, key);
      const git: InMirror = (args, stdoutBytesMax) =>
        runGit({
          args,
          options: [`--git-dir=${mirror.folder}`],
          cwd: mirror.folder,
          timeoutMs: READ_MS_MAX,
          signal,
          stdoutBytesMax,
        });
      const sizeBefore = mirror.bytes;
      try {
        return await mirror.with(address, { commit, whole, ref, along, signal }, (own) =>
          work({ mirror, own, git, signal }),
        );
      } finally {
        this.#forgetUnlessThere(mirror);
        if (mirror.bytes !== sizeBefore) await this.#shrink();
      }
    })();
    this.#active.add(task);
    return task.finally(() => this.#active.delete(task));
  }

  #assertUsable(): Promise<void> {
    this.#usable ??= assertGitUsable(this.#options.folder).catch((error: unknown) => {
      // Somebody may install it meanwhile.
      this.#usable = null;
      throw error;
    });
    return this.#usable;
  }

  async #readFile(
    address: Remote,
    within: Within,
    paths: readonly string[],
    bytesMax: number,
  ): Promise<CommitFile | null> {
    const { mirror, own, git, signal } = within;
    const { partial } = this.#dependencies;
    const small = partial ? null : await this.#smallOf(within);
    if (small !== null) return readSmallFile(small, paths, bytesMax);
    const found = await findFile(git, own, paths);
    if (found === null) return null;
    if (partial) await mirror.bring(address, found.object, signal);
    return { path: found.path, text: await readText(git, found, bytesMax) };
  }

  /** Repositories of the two kinds of object ids share nothing. */
  #mirrorOf(address: Remote, commit: string, key: string | undefined): Mirror {
    const own = address.credential === undefined ? '' : 'own ';
    const whose = `${key === undefined ? '' : `${JSON.stringify(key)} `}${own}`;
    const digest = createHash('sha256').update(`${commit.length} ${whose}${address.url}`).digest('hex').slice(0, 40);
    const name = `${digest}${this.#dependencies.partial ? '.partial' : ''}.git`;
    let mirror = this.#mirrors.get(name);
    if (mirror === undefined) {
      mirror = new Mirror(join(this.#options.folder, name), Date.now(), this.#dependencies);
      this.#mirrors.set(name, mirror);
    }
    return mirror;
  }

  /** Of a repository that cannot be had nothing stays: a stranger may name as many as it likes. */
  #forgetUnlessThere(mirror: Mirror): void {
    const name = basename(mirror.folder);
    if (mirror.users > 0 || mirror.arriving > 0 || mirror.bytes > 0 || this.#mirrors.get(name) !== mirror) return;
    if (!existsSync(mirror.folder)) this.#mirrors.delete(name);
  }

  /** What an earlier process has left: mirrors to use again, and what it had no time to remove. */
  async #find(): Promise<void> {
    const { folder, log } = this.#options;
    const names = readdirSync(folder);
    const found: Mirror[] = [];
    for (const name of names) {
      const path = join(folder, name);
      if (!/^[0-9a-f]{40}(?:\.partial)?\.git$/u.test(name)) continue;
      const mirror = new Mirror(path, statSync(path).mtimeMs, this.#dependencies);
      this.#mirrors.set(name, mirror);
      found.push(mirror);
    }
    for (const name of names) {
      if (!name.startsWith('trash-')) continue;
      await rm(join(folder, name), { recursive: true, force: true }).catch((error: unknown) =>
        log.warn({ err: error }, 'a discarded mirror could not be removed'),
      );
    }
    for (const mirror of found) {
      const bytes = await folderBytes(mirror.folder);
      if (mirror.bytes === 0) mirror.bytes = bytes;
    }
  }

  /** MIRRORCACHE-1. */
  async #shrink(): Promise<void> {
    await this.#measured;
    const byAge = [...this.#mirrors].toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    let bytes = byAge.reduce((sum, [, mirror]) => sum + mirror.bytes, 0);
    for (const [name, mirror] of byAge) {
      if (bytes <= this.#options.bytesMax) return;
      if (mirror.users > 0) continue;
      bytes -= mirror.bytes;
      this.#mirrors.delete(name);
      mirror.discard();
      this.#options.log.debug({ mirror: name }, 'a mirrored repository made room for others');
    }
  }
}
