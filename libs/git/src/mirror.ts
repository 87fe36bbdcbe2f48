/**
 * One repository's bare mirror: it owns a folder and everything that runs in it.
 *
 * MIRROR-1. One process at a time fetches into it; reading goes on meanwhile, as git allows.
 * MIRROR-2. A commit counts as present when its own ref stands, which git writes only after everything it needs.
 * MIRROR-3. A folder in use is not removed by the cache; one found damaged is removed at once, and who reads from it then comes
 *     again. Removal is a rename, so that nobody meets half of a mirror.
 * MIRROR-4. Callers that want the same commit share one fetch; it is given up when all of them have left.
 * MIRROR-5. What a fetch brings along for later is never why it fails: then it is done again without.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { connectionTo, type Lookup } from './connection.ts';
import { credentialsFor, type CloneCredential } from './credentials.ts';
import { GitCommandFailed, GitError } from './errors.ts';
import { failureOf, isDamage } from './failure.ts';
import {
  changedPaths,
  fetchCommit,
  fetchObject,
  fetchTogether,
  refOf,
  type FetchDependencies,
} from './fetch-commit.ts';
import { folderBytes } from './folder-bytes.ts';
import { runGit } from './git-command.ts';
import type { ObjectReaders } from './objects.ts';
import { isPackedRef } from './packed-refs.ts';
import type { CloneAddress, GitPolicy } from './policy.ts';
import { writeSkeleton } from './skeleton.ts';
import type { Slots } from './slots.ts';
import { SharedWork } from './shared-work.ts';
import type { Log } from '@penstock/telemetry/log';
import { BoundedQueue, unlessAborted } from '@penstock/async';

/** A repository, and what opens it where it has something of its own. */
export interface Remote extends CloneAddress {
  readonly credential?: CloneCredential | undefined;
  /** Whose it is; absent: nobody's in particular. */
  readonly key?: string | undefined;
}

/** What all mirrors of a cache have in common. */
export interface MirrorDependencies {
  readonly policy: GitPolicy;
  readonly lookup: Lookup;
  readonly sshSettings: readonly string[];
  readonly credentialsFile: string | undefined;
  readonly partial: boolean;
  readonly repositoryBytesMax: number;
  readonly fetchMsMax: number;
  readonly slots: Slots;
  readonly readers: ObjectReaders;
  /** Rejects where there is no git to fetch with. */
  readonly assertUsable: () => Promise<void>;
  /** Called when an arrival has ended, also one that was given up. */
  readonly rested: (mirror: Mirror) => void;
  readonly log: Log;
}

/** Enough to make looking into them the larger part of a fetch. */
const PACKS_MAX = 50;
/** Each fetched commit leaves a line among the shallow ones; with so many a new mirror is cheaper than this one. */
const SHALLOW_BYTES_MAX = 2_000 * 41;
const COMMITS_KNOWN_MAX = 10_000;
/** Each is a file, which every fetch looks at. */
const LOOSE_REFS_MAX = 256;
/** A fetch of so many costs a little more than that of one. */
const ALONG_MAX = 15;
/** A server that is as slow as that has no more asked of it than is needed. */
const ALONG_MS_MAX = 10_000;
/** After one of them has failed: it may be a commit that its server never had. */
const ALONG_REST_MS = 60_000;
const READ_MS_MAX = 30_000;
/** A push uses its mirror three times. */
const TOUCH_MS = 10_000;
const ROUNDS_MAX = 3;

interface Wanted {
  readonly commit: string;
  /** With everything in its tree. */
  readonly whole: boolean;
  /** A ref beside branches and tags that leads to it. */
  readonly ref?: string | undefined;
  /** Commits that will be wanted next. */
  readonly along?: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

export class Mirror {
  readonly folder: string;
  users = 0;
  /** Arrivals that have not ended, those that are being given up too. */
  arriving = 0;
  usedAt: number;
  /** As last measured. */
  bytes = 0;
  readonly #dependencies: MirrorDependencies;
  /** Present, by ref; the value is the commit itself where the name was a tag's. */
  readonly #known = new Map<string, string>();
  #touchedAt = -Infinity;
  /** MIRROR-4. */
  readonly #arrivals = new SharedWork();
  /** MIRROR-1. */
  readonly #fetchLock = new BoundedQueue({ atOnce: 1 });
  /** Counts how often it was discarded. */
  #generation = 0;
  #isTidied = false;
  /** Before then nothing is brought along (MIRROR-5). */
  #aloneUntil = 0;

  constructor(folder: string, usedAt: number, dependencies: MirrorDependencies) {
    this.folder = folder;
    this.usedAt = usedAt;
    this.#dependencies = dependencies;
  }

  /** Runs `work` with the commit present. A mirror that turns out damaged is made anew, once. Counts as use meanwhile. */
  async with<T>(address: Remote, request: Wanted, work: (commit: string) => Promise<T>): Promise<T> {
    this.users += 1;
    try {
      for (let isRepeated = false; ; isRepeated = true) {
        const commit = await this.#ensure(address, request);
        const generation = this.#generation;
        try {
          return await work(commit);
        } catch (error) {
          if (isRepeated || !isDamage(error)) throw failureOf(error);
          this.#dependencies.log.warn(
            { err: error, url: address.url },
            'a mirrored repository is damaged and is fetched anew',
          );
          // Others who read from it have found the same.
          if (generation === this.#generation) this.discard();
        }
      }
    } finally {
      this.users -= 1;
      this.touch();
    }
  }

  /** MIRROR-3. At once; its bytes are freed in the background. */
  discard(): void {
    this.#generation += 1;
    this.#known.clear();
    this.#isTidied = false;
    this.bytes = 0;
    this.#dependencies.readers.close(this.folder);
    if (!existsSync(this.folder)) return;
    const trash = join(dirname(this.folder), `trash-${randomUUID()}`);
    renameSync(this.folder, trash);
    rm(trash, { recursive: true, force: true }).catch((error: unknown) => {
      this.#dependencies.log.warn(
        { err: error },
        'a discarded mirror could not be removed; the next start tries again',
      );
    });
  }

  /** On the disk for the next process, which needs no more than to know which were used in the same minute. */
  touch(): void {
    this.usedAt = Date.now();
    if (Math.abs(this.usedAt - this.#touchedAt) < TOUCH_MS) return;
    this.#touchedAt = this.usedAt;
    const now = new Date(this.usedAt);
    try {
      utimesSync(this.folder, now, now);
    } catch {
      // It was discarded.
    }
  }

  async #ensure(address: Remote, { commit, whole, ref: leading, along, signal }: Wanted): Promise<string> {
    signal.throwIfAborted();
    const ref = refOf(commit, whole);
    for (let rounds = 0; ; rounds += 1) {
      const known = this.#known.get(ref) ?? this.#known.get(refOf(commit, true));
      if (known !== undefined) return known;
      // Once for a mirror that was discarded while the commit arrived in it.
      if (rounds === ROUNDS_MAX) throw new GitError('unreachable', 'the repository could not be kept on the disk');
      await this.#arrivals.join(ref, signal, async (flightSignal) => {
        this.arriving += 1;
        try {
          await this.#arrive(address, { commit, whole, ref: leading, along, signal: flightSignal });
        } finally {
          this.arriving -= 1;
          this.#dependencies.rested(this);
        }
      });
    }
  }

  /** An object that a partial mirror may lack. @throws GitError */
  async bring(address: Remote, object: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#git(['cat-file', '-e', object], signal);
    } catch (error) {
      if (!(error instanceof GitCommandFailed)) throw error;
      await this.#inTurn(signal, (fetch) => fetchObject(fetch, object), address);
    }
  }

  /** Of a commit that is present: what it changes since it left a branch; null: not known. @throws GitError */
  async changedPaths(
    address: Remote,
    of: { readonly commit: string; readonly ref: string; readonly branch: string },
    signal: AbortSignal,
  ): Promise<string[] | null> {
    let paths: string[] | null = null;
    await this.#inTurn(
      signal,
      async (fetch) => {
        paths = await changedPaths(fetch, of);
      },
      address,
    );
    return paths;
  }

  async #arrive(address: Remote, { commit, whole, ref, along = [], signal }: Wanted): Promise<void> {
    const { partial, log } = this.#dependencies;
    // What has come along with another needs no turn: a fetch of others may be under way.
    if (existsSync(join(this.folder, 'HEAD')) && (await this.#recall(commit, whole, signal))) return;
    await this.#inTurn(
      signal,
      async (fetch) => {
        const isWarm = existsSync(join(this.folder, 'HEAD'));
        if (isWarm && (await this.#fetchTogether(fetch, commit, along, whole || !partial))) {
          await this.#recall(commit, whole, fetch.signal);
          await this.#maintain();
          return;
        }
        const attempt = async (): Promise<void> => {
          if (!existsSync(join(this.folder, 'HEAD'))) {
            mkdirSync(this.folder, { recursive: true, mode: 0o700 });
            await writeSkeleton(this.folder, { bare: true, url: address.url, sha256: commit.length === 64, partial });
          }
          await fetchCommit(fetch, commit, { whole: whole || !partial, ref });
        };
        try {
          await attempt().catch(async (error: unknown) => {
            // Of a mirror that has grown over time, what is wanted now may well have room.
            const isOutgrown = error instanceof GitError && error.code === 'too_large';
            if (!isWarm || !(isOutgrown || isDamage(error))) throw error;
            log.warn({ err: error, url: address.url }, 'a mirrored repository is fetched anew');
            this.discard();
            await attempt();
          });
        } catch (error) {
          // A killed fetch leaves its parts: a warm mirror is rid of them, a new one is nothing yet.
          if (isWarm && existsSync(this.folder)) this.#clearLeftovers();
          else this.discard();
          throw error;
        }
        if (!(await this.#recall(commit, whole, fetch.signal)) && this.#hasRef(refOf(commit, whole || !partial))) {
          throw new GitError('not_found', 'what the repository has by this id is no commit');
        }
        await this.#maintain();
      },
      address,
      { commit, whole },
    );
  }

  /** Keeps MIRROR-5. Whether the commit has come, and others with it. */
  async #fetchTogether(
    fetch: FetchDependencies,
    commit: string,
    along: readonly string[],
    whole: boolean,
  ): Promise<boolean> {
    if (performance.now() < this.#aloneUntil) return false;
    const others = new Set(along.filter((other) => other.length === commit.length && other !== commit));
    const missing = [...others].filter((other) => !this.#hasRef(refOf(other, whole))).slice(0, ALONG_MAX);
    if (missing.length === 0) return false;
    try {
      await fetchTogether(fetch, [commit, ...missing], { whole, timeoutMs: ALONG_MS_MAX });
      return true;
    } catch (error) {
      fetch.signal.throwIfAborted();
      this.#aloneUntil = performance.now() + ALONG_REST_MS;
      this.#dependencies.log.debug({ err: error }, 'several commits could not be fetched together; each alone');
      this.#clearLeftovers();
      return false;
    }
  }

  /**
   * `work` when it is this caller's turn in the mirror and a slot is free, with a connection to the repository. Nothing at
   * all is done where `unless` is there already. Waiting counts against the deadline: whoever waits behind a slow server
   * has one too.
   */
  async #inTurn(
    given: AbortSignal,
    work: (fetch: FetchDependencies) => Promise<void>,
    address: Remote,
    unless?: { readonly commit: string; readonly whole: boolean },
  ): Promise<void> {
    const {
      slots,
      fetchMsMax,
      policy,
      lookup,
      sshSettings,
      credentialsFile,
      partial,
      repositoryBytesMax: bytesMax,
    } = this.#dependencies;
    const deadline = performance.now() + fetchMsMax;
    const tooLate = AbortSignal.timeout(fetchMsMax);
    const signal = AbortSignal.any([given, tooLate]);
    try {
      await this.#fetchLock.run(
        () =>
          slots.with({ server: `${address.host}:${address.port}`, key: address.key }, signal, async () => {
            if (existsSync(join(this.folder, 'HEAD'))) {
              this.#tidy();
              if (unless !== undefined && (await this.#recall(unless.commit, unless.whole, signal))) return;
            }
            const connection = await connectionTo(address, policy, {
              lookup: (host) => unlessAborted(lookup(host), signal),
              sshSettings,
              hasOwnCredential: address.credential !== undefined,
            });
            await this.#dependencies.assertUsable();
            const credentials = credentialsFor(address, address.credential, credentialsFile);
            await work({
              gitFolder: this.folder,
              partial,
              connection,
              signal,
              credentials,
              bytesMax,
              timeLeftMs: () => Math.max(1, deadline - performance.now()),
            });
          }),
        signal,
      );
    } catch (error) {
      if (tooLate.aborted && !given.aborted)
        throw new GitError('timeout', `the repository was not fetched within ${Math.round(fetchMsMax / 1000)} s`, {
          cause: error,
        });
      throw failureOf(error);
    }
  }

  /** MIRROR-2. */
  async #recall(commit: string, whole: boolean, signal: AbortSignal): Promise<boolean> {
    for (const ref of whole || !this.#dependencies.partial
      ? [refOf(commit, true)]
      : [refOf(commit, true), refOf(commit, false)]) {
      if (!this.#hasRef(ref)) continue;
      const found = await this.#commitAt(ref, signal);
      if (found === null) continue;
      if (this.#known.size >= COMMITS_KNOWN_MAX) this.#known.clear();
      this.#known.set(refOf(commit, whole), found);
      return true;
    }
    return false;
  }

  /** Null: what the ref names is no commit. */
  async #commitAt(ref: string, signal: AbortSignal): Promise<string | null> {
    try {
      const info = await unlessAborted(this.#dependencies.readers.of(this.folder).info(`${ref}^{commit}`), signal);
      if (info !== null) return info.id;
    } catch (error) {
      signal.throwIfAborted();
      this.#dependencies.log.debug({ err: error }, 'a mirrored repository is asked by a process of its own');
    }
    try {
      const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
      return (await this.#git(args, signal)).toString('latin1').trim();
    } catch (error) {
      if (error instanceof GitCommandFailed) return null;
      throw error;
    }
  }

  /** Without a process, for the most frequent answer is no. */
  #hasRef(ref: string): boolean {
    return existsSync(join(this.folder, ref)) || isPackedRef(join(this.folder, 'packed-refs'), ref);
  }

  /** Before the first use of a mirror that an earlier process has left, perhaps in the middle of a fetch. */
  #tidy(): void {
    if (this.#isTidied) return;
    this.#isTidied = true;
    this.#clearLeftovers();
  }

  #clearLeftovers(): void {
    for (const name of ['shallow.lock', 'packed-refs.lock', 'config.lock', 'HEAD.lock'])
      rmSync(join(this.folder, name), { force: true });
    for (const folder of ['objects/pack', 'refs/penstock/whole', 'refs/penstock/partial']) {
      const path = join(this.folder, folder);
      if (!existsSync(path)) continue;
      for (const name of readdirSync(path))
        if (name.startsWith('tmp_') || name.endsWith('.lock')) rmSync(join(path, name), { force: true });
    }
  }

  /** Keeps the number of packs and refs bounded; a mirror that has had its day goes when nobody else uses it. */
  async #maintain(): Promise<void> {
    const { log, partial } = this.#dependencies;
    const packs = readdirSync(join(this.folder, 'objects/pack')).filter((name) => name.endsWith('.pack')).length;
    const refs = join(this.folder, refOf('', !partial));
    const looseRefs = existsSync(refs) ? readdirSync(refs).length : 0;
    const shallow = join(this.folder, 'shallow');
    const isOld = existsSync(shallow) && statSync(shallow).size > SHALLOW_BYTES_MAX;
    // Packs with objects missing are not put together by size; without the contents of files all of them are soon fetched.
    const isFull = packs > (partial ? PACKS_MAX : 4 * PACKS_MAX);
    if ((isOld || isFull) && this.users <= 1) {
      this.discard();
    } else if (packs > PACKS_MAX && !partial) {
      try {
        // The small ones only: what that costs does not grow with the repository.
        await this.#git(['repack', '--geometric=2', '-d', '-q', '--no-write-bitmap-index'], undefined);
        await this.#git(['pack-refs', '--all'], undefined);
      } catch (error) {
        log.warn(
          { err: error },
          'the packs of a mirrored repository could not be put together; it goes when they are too many',
        );
        this.#clearLeftovers();
      }
    } else if (looseRefs > LOOSE_REFS_MAX) {
      await this.#git(['pack-refs', '--all'], undefined).catch((error: unknown) => {
        log.warn({ err: error }, 'the refs of a mirrored repository could not be put together');
        this.#clearLeftovers();
      });
    }
    this.bytes = await folderBytes(this.folder);
  }

  #git(args: readonly string[], signal: AbortSignal | undefined): Promise<Buffer> {
    return runGit({
      args,
      options: [`--git-dir=${this.folder}`],
      cwd: dirname(this.folder),
      timeoutMs: READ_MS_MAX,
      signal,
    });
  }
}
