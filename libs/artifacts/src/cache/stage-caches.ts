/**
 * Caches of a stage, the same wherever their archives are kept: laid out in its folders before it starts, and saved once it has
 * succeeded.
 *
 *  STAGECACHE-1 Nothing that goes wrong with a cache fails a stage: a line of its log says so, and it goes without.
 *  STAGECACHE-2 Nothing of an archive is laid out before all of it is there and has the hash that was found.
 */
import { createHash } from 'node:crypto';
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import { collectFiles } from '../collect/collection.ts';
import { notTakenTogether, type NotTaken } from '../collect/not-taken.ts';
import { ArtifactsFailed } from '../errors.ts';
import { filesText, leftOutLines } from '../stage-rules.ts';
import { packCache, unpackCache, type PackedFiles } from './caches.ts';
import type { CacheFolders, CacheUser } from './child.ts';

/** A text whose hashes are reckoned where the files are. */
type CacheText = readonly (string | { readonly hash: readonly string[] })[];

/** What a stage asks for. */
interface AskedCache {
  readonly key: CacheText;
  readonly paths: readonly string[];
  readonly restore: readonly CacheText[];
}

/** A cache whose key was not found as it is. */
export interface CacheToSave {
  readonly key: string;
  readonly paths: readonly string[];
  /** What is at its paths and could not be brought to the folders that it is saved from. */
  readonly notTaken?: NotTaken | undefined;
}

export interface CachedStage {
  readonly folders: CacheFolders;
  /** Whose files are hashed for keys; absent: the working folder of those. */
  readonly hashedFolder?: string | undefined;
  /** Whether what stands in the folders gives way to what is laid out. */
  readonly replace: boolean;
  readonly user: CacheUser | undefined;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
}

/** Where the archives are that a stage may have. */
export interface CacheSource<Found extends { readonly key: string }> {
  /** The exact key, else the newest that begins with one of `prefixes`. */
  find(key: string, prefixes: readonly string[]): Promise<Found | null>;
  /** Calls `use` with a descriptor of the whole archive, if it is what was found. False: it is damaged, or gone. */
  lend(found: Found, use: (descriptor: number) => Promise<void>): Promise<boolean>;
  /** For the stage's log; it notes itself what is a mistake of its own. */
  reasonOf(error: unknown): string;
}

/** Where those are put that it leaves. */
export interface CacheTarget<Saved> {
  /** Takes what `write` hands over, unless that answers false; null: it is there by now, or being put there by another. */
  put(
    key: string,
    write: (take: (bytes: Buffer) => Promise<void>) => Promise<boolean>,
  ): Promise<Saved | null | undefined>;
  /** For the stage's log; it notes itself what is a mistake of its own. */
  reasonOf(error: unknown): string;
}

/** Of all that a stage saves: its result waits for it. */
const SAVE_MS_MAX = 10 * 60_000;
/** Of the files that a hash is made of. */
const HASHED_BYTES_MAX = 1024 ** 3;

/** Those that are to be saved when the stage has succeeded. @throws the signal's reason */
export async function restoreCaches<Found extends { readonly key: string }>(
  asked: readonly AskedCache[],
  stage: CachedStage,
  source: CacheSource<Found>,
): Promise<readonly CacheToSave[]> {
  const { signal, remark } = stage;
  const hashes = new Map<string, Promise<string>>();
  const toSave = new Map<string, CacheToSave>();
  for (const { key: text, paths, restore } of asked) {
    try {
      const key = checkedKey(await textOf(text, stage, hashes));
      const prefixes: string[] = [];
      for (const each of restore) prefixes.push(checkedKey(await textOf(each, stage, hashes)));
      const found = await restoreOne(stage, source, { key, prefixes, paths });
      if (found !== key && !toSave.has(key)) toSave.set(key, { key, paths });
    } catch (error) {
      signal.throwIfAborted();
      remark(`a cache is left out: ${source.reasonOf(error)}`);
    }
  }
  return [...toSave.values()];
}

/** Those that were stored. `targetUntil`: where to, as long as the signal says. Never rejects. */
export async function saveCaches<Saved>(
  toSave: readonly CacheToSave[],
  stage: Omit<CachedStage, 'replace'>,
  targetUntil: (signal: AbortSignal) => CacheTarget<Saved>,
): Promise<readonly Saved[]> {
  const { remark, signal } = stage;
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(SAVE_MS_MAX)]);
  const target = targetUntil(bounded);
  const saved: Saved[] = [];
  for (const cache of toSave) {
    try {
      const one = await saveOne({ ...stage, signal: bounded }, target, cache);
      if (one !== undefined) saved.push(one);
    } catch (error) {
      const isOver = bounded.aborted;
      const why = isOver && !signal.aborted ? 'it took too long' : target.reasonOf(error);
      remark(`the cache ${quoted(cache.key)} is not saved: ${why}`);
      if (isOver) break;
    }
  }
  return saved;
}

/** The key of what was laid out; undefined: nothing was. */
async function restoreOne<Found extends { readonly key: string }>(
  { folders, replace, user, signal, remark }: CachedStage,
  source: CacheSource<Found>,
  { key, prefixes, paths }: CacheToSave & { readonly prefixes: readonly string[] },
): Promise<string | undefined> {
  try {
    const found = await source.find(key, prefixes);
    if (found === null) {
      remark(`no cache ${quoted(key)} is there yet`);
      return undefined;
    }
    const isWhole = await source.lend(found, async (descriptor) => {
      const { files, bytes } = await unpackCache({ ...folders, paths, user, signal }, descriptor, replace);
      remark(`restored the cache ${quoted(found.key)}: ${filesText(files, bytes)}`);
    });
    if (isWhole) return found.key;
    remark(`the cache ${quoted(found.key)} is damaged; the stage goes on without it`);
  } catch (error) {
    signal.throwIfAborted();
    remark(`the cache ${quoted(key)} cannot be had: ${source.reasonOf(error)}; the stage goes on without it`);
  }
  return undefined;
}

async function saveOne<Saved>(
  { folders, user, signal, remark }: Omit<CachedStage, 'replace'>,
  target: CacheTarget<Saved>,
  { key, paths, notTaken }: CacheToSave,
): Promise<Saved | undefined> {
  let packed: PackedFiles | undefined;
  const saved = await target.put(key, async (take) => {
    packed = await packCache({ ...folders, paths, user, signal }, take);
    const leftOut = notTakenTogether(notTaken === undefined ? [packed] : [notTaken, packed]);
    for (const line of leftOutLines({ ...leftOut, files: [], folders: [] })) remark(line);
    if (packed.files === 0) remark(`the cache ${quoted(key)} is not saved: there is nothing at its paths`);
    return packed.files > 0;
  });
  if (saved === null) remark(`the cache ${quoted(key)} is there by now, or being saved by another stage`);
  if (saved === null || saved === undefined) return undefined;
  remark(`saved the cache ${quoted(key)}: ${filesText(packed?.files ?? 0, packed?.bytes ?? 0)}`);
  return saved;
}

/** With its hashes reckoned, of the working folder as it is. */
async function textOf(text: CacheText, stage: CachedStage, hashes: Map<string, Promise<string>>): Promise<string> {
  let whole = '';
  for (const part of text) {
    if (typeof part === 'string') {
      whole += part;
      continue;
    }
    const id = JSON.stringify(part.hash);
    const known = hashes.get(id) ?? hashOf(part.hash, stage);
    hashes.set(id, known);
    whole += await known;
  }
  return whole;
}

async function hashOf(
  patterns: readonly string[],
  { folders, hashedFolder, user, signal, remark }: CachedStage,
): Promise<string> {
  const folder = hashedFolder ?? folders.workspace;
  const collection = await collectFiles({ folder, patterns, user, bytesMax: HASHED_BYTES_MAX, signal });
  try {
    const { files } = collection.listing;
    if (files.length === 0) remark(`no file matches hash(${patterns.map(quoted).join(', ')})`);
    const hash = createHash('sha256');
    for (const { path, sha256 } of files) hash.update(`${path}\0${sha256}\n`);
    return hash.digest('hex');
  } finally {
    await collection.close();
  }
}

function checkedKey(key: string): string {
  const { cacheKeyLengthMax } = PIPELINE_LIMITS;
  if (key === '' || key.length > cacheKeyLengthMax || !key.isWellFormed() || /\p{Cc}/u.test(key))
    throw new ArtifactsFailed('artifacts', `its key is no text of 1 to ${cacheKeyLengthMax} characters on one line`);
  return key;
}

function quoted(text: string): string {
  return `'${text}'`;
}
