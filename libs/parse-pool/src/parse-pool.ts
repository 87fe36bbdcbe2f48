/**
 * Reads pipeline files on threads of its own, so that no file holds up the loop that others' requests and leases need.
 *
 * PARSEPOOL-1. A file has a deadline from when it is given to when its result is there. One that is late while it is read is
 * read on, for whoever asks again, and its thread is ended once it has read for the longest time that any file needs. A
 * thread's own start is not reading: on a machine that starts much at once it takes longer than any file.
 * PARSEPOOL-2. Files wait by key and keys take turns; a key has a bounded number of them waiting, and so has the pool of keys,
 * and what all of them hold is bounded.
 * PARSEPOOL-3. A small file is read at once on the calling thread: it takes less than handing it over does.
 * PARSEPOOL-4. Whoever asks for a file of their key that waits or is being read waits for it with the others, and takes no place:
 * a file that is triggered many times at once is one.
 */
import { hash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { FairQueue, FairRoom } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import {
  adoptForeign,
  type ManifestResult,
  parseManifest,
  parseRemembered,
  type ParseResult,
  recall,
  type ResolvedExtension,
  usesOf,
} from '@penstock/pipeline';
import type { ParseAnswer, ParseOptions, ParseTask, ThreadAnswer, ThreadMessage } from './parse-task.ts';

export interface ParsePoolOptions {
  /** Threads that read at a time; each is started at its first file. */
  readonly threads?: number;
  readonly waitingPerKeyMax?: number;
  readonly keysMax?: number;
  /** UTF-16 units of all files that wait, their extensions' manifests included. */
  readonly waitingLengthMax?: number;
  /** UTF-16 units of the largest file, and of its extensions' manifests, that is read on the calling thread. */
  readonly inlineLengthMax?: number;
  /** How long a thread may read one file. */
  readonly readingMsMax?: number;
  /** Another program for the threads, in tests. */
  readonly workerUrl?: URL;
}

type Settle = (outcome: ParseAnswer | Error) => void;

interface Task extends ParseTask {
  readonly key: string;
  /** Who waits for it; nobody may, of one that is read on. */
  readonly askers: Set<Settle>;
}

interface Thread {
  readonly worker: Worker;
  /** Settles when its program is loaded, or never will be. */
  readonly loaded: PromiseWithResolvers<void>;
  isLoaded: boolean;
  task: Task | undefined;
  /** Ends a thread that loads, or reads, for too long. */
  overdue: NodeJS.Timeout | undefined;
}

const THREADS = 1;
const WAITING_PER_KEY_MAX = 8;
const KEYS_MAX = 1_000;
/** A hundred of the largest files. Of one key a quarter of what is free: others have room. */
const WAITING_LENGTH_MAX = 64 * 1024 * 1024;
/** The costliest file takes 1.5 s of a machine that does nothing else. */
const READING_MS_MAX = 10_000;
/** A third of a second of processor time, of which a starved process gets little. */
const LOADING_MS_MAX = 60_000;
/** 2 KiB take below 5 ms; a matrix can make 1,800 stages of them and 20 ms, aliases 2,800 commands and 50 ms: those are never read here. */
const INLINE_LENGTH_MAX = 2 * 1024;
/** A matrix, or the backslash with which the word could be written otherwise. */
const MAY_EXPAND = /matrix|\\/;
/** What may be an anchor, and what may be an alias: a file has both, or writes nothing twice. */
const ANCHOR = /(?:^|[\s,[{:-])&\S/;
const ALIAS = /(?:^|[\s,[{:-])\*\S/;
/** The word, or the backslash with which it could be written otherwise: without them there is nothing to read. */
const MAY_USE = /uses|\\/;
/** So many files that a thread has read for what they use are not read again for that, least recently used first out. */
const KNOWN_USES_MAX = 1_000;
/** Characters of what one of them uses. */
const KNOWN_USES_LENGTH_MAX = 8 * 1024;
/** What one file of 512 KiB with its extensions needs is below 150 MB. */
const THREAD_HEAP_MB_MAX = 256;
/** Of that for what is new. */
const THREAD_YOUNG_MB_MAX = 48;

export class ParsePool {
  readonly #queue: FairQueue<Task>;
  /** By key, those that wait and those that are being read. */
  readonly #open = new Map<string, Set<Task>>();
  readonly #threads = new Set<Thread>();
  readonly #threadsMax: number;
  readonly #inlineLengthMax: number;
  readonly #room: FairRoom;
  readonly #readingMsMax: number;
  readonly #workerUrl: URL;
  /** By the digest of the text. */
  readonly #knownUses = new Map<string, readonly string[]>();

  constructor(options: ParsePoolOptions = {}) {
    this.#queue = new FairQueue(options.waitingPerKeyMax ?? WAITING_PER_KEY_MAX, options.keysMax ?? KEYS_MAX);
    this.#threadsMax = options.threads ?? THREADS;
    this.#room = new FairRoom({ shared: options.waitingLengthMax ?? WAITING_LENGTH_MAX, own: 0 });
    this.#inlineLengthMax = options.inlineLengthMax ?? INLINE_LENGTH_MAX;
    this.#readingMsMax = options.readingMsMax ?? READING_MS_MAX;
    this.#workerUrl = options.workerUrl ?? new URL('./parse-worker.ts', import.meta.url);
  }

  /** As `parsePipeline`. Throws `Unavailable` where the key's files, or this one, cannot be read in time. */
  async parse(text: string, options: ParseOptions, key: string, deadlineMs: number): Promise<ParseResult> {
    if (this.isReadAtOnce(text, options)) return parseRemembered(text, options);
    return (await this.#ask({ text, options }, key, deadlineMs)) as ParseResult;
  }

  /** As `usesOf`. Throws as `parse` does. What is remembered was good by itself: it uses none. */
  async uses(text: string, key: string, deadlineMs: number): Promise<readonly string[]> {
    if (!MAY_USE.test(text) || recall(text) !== undefined) return [];
    if (text.length <= this.#inlineLengthMax) return usesOf(text);
    const digest = hash('sha256', text, 'base64');
    const known = this.#knownUses.get(digest);
    const uses = known ?? ((await this.#ask({ text, options: undefined }, key, deadlineMs)) as readonly string[]);
    this.#knowUses(digest, uses);
    return uses;
  }

  /** As `parseManifest`. Throws as `parse` does. */
  async manifest(text: string, key: string, deadlineMs: number): Promise<ManifestResult> {
    if (this.#isSmall(text, {})) return parseManifest(text);
    return (await this.#ask({ text, options: undefined, isManifest: true }, key, deadlineMs)) as ManifestResult;
  }

  #knowUses(digest: string, uses: readonly string[]): void {
    if (uses.join('').length > KNOWN_USES_LENGTH_MAX) return;
    this.#knownUses.delete(digest);
    this.#knownUses.set(digest, uses);
    if (this.#knownUses.size > KNOWN_USES_MAX) this.#knownUses.delete(this.#knownUses.keys().next().value ?? '');
  }

  /** Starts a thread for the first file to come. Resolves also where that fails: the next file has another one. */
  async warm(): Promise<void> {
    const [thread = this.#start()] = this.#threads;
    await thread.loaded.promise;
  }

  /** Whether `parse` reads it on the calling thread. */
  isReadAtOnce(text: string, options: ParseOptions): boolean {
    return recall(text, options) !== undefined || this.#isSmall(text, options);
  }

  #ask(question: ParseTask, key: string, deadlineMs: number): Promise<ParseAnswer> {
    const task = this.#findOpen(question, key) ?? this.#openTask(question, key);
    if (task === undefined)
      return Promise.reject(new Unavailable('Too many pipeline files are being read at the moment.'));
    const { promise, resolve, reject } = Promise.withResolvers<ParseAnswer>();
    const settle: Settle = (outcome) => {
      clearTimeout(timer);
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    const timer = setTimeout(() => {
      task.askers.delete(settle);
      settle(late());
      if (task.askers.size === 0 && this.#queue.remove(key, task)) this.#close(task);
    }, deadlineMs);
    task.askers.add(settle);
    this.#pump();
    return promise;
  }

  #findOpen(question: ParseTask, key: string): Task | undefined {
    return this.#open
      .get(key)
      ?.values()
      .find((task) => isSame(task, question));
  }

  /** Undefined: there is no room for it. */
  #openTask(question: ParseTask, key: string): Task | undefined {
    const task: Task = { ...question, key, askers: new Set() };
    const length = lengthOf(task);
    if (!this.#room.take(key, length)) return undefined;
    if (!this.#queue.add(key, task)) {
      this.#room.giveBack(key, length);
      return undefined;
    }
    const open = this.#open.get(key);
    if (open === undefined) this.#open.set(key, new Set([task]));
    else open.add(task);
    return task;
  }

  /** Nothing comes of it any more. */
  #close(task: Task): void {
    const open = this.#open.get(task.key);
    if (open?.delete(task) !== true) return;
    if (open.size === 0) this.#open.delete(task.key);
    this.#room.giveBack(task.key, lengthOf(task));
  }

  #settle(task: Task, outcome: ParseAnswer | Error): void {
    this.#close(task);
    for (const settle of task.askers) settle(outcome);
  }

  async close(): Promise<void> {
    for (let task = this.#queue.next(); task !== undefined; task = this.#queue.next())
      this.#settle(task, new Unavailable('The server is stopping.'));
    await Promise.all(
      [...this.#threads].map((thread) => this.#end(thread, new Unavailable('The server is stopping.'))),
    );
  }

  #isSmall(text: string, { extensions }: ParseOptions): boolean {
    const manifests = manifestsLength(extensions);
    if (manifests > 0 || text.length > this.#inlineLengthMax || MAY_EXPAND.test(text)) return false;
    return !ANCHOR.test(text) || !ALIAS.test(text);
  }

  #pump(): void {
    const idle = [...this.#threads].find(({ task }) => task === undefined);
    if (idle === undefined && this.#threads.size >= this.#threadsMax) return;
    const task = this.#next();
    if (task === undefined) return;
    const thread = idle ?? this.#start();
    thread.task = task;
    if (thread.isLoaded) this.#endLater(thread, this.#readingMsMax);
    thread.worker.ref();
    const { text, options, isManifest } = task;
    thread.worker.postMessage({ text, options, isManifest } satisfies ParseTask);
  }

  /** What another has read meanwhile is not read again. */
  #next(): Task | undefined {
    for (;;) {
      const task = this.#queue.next();
      const known = task?.options === undefined ? undefined : recall(task.text, task.options);
      if (task === undefined || known === undefined) return task;
      this.#settle(task, known);
    }
  }

  #start(): Thread {
    const worker = new Worker(this.#workerUrl, {
      resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB_MAX, maxYoungGenerationSizeMb: THREAD_YOUNG_MB_MAX },
    });
    const loaded = Promise.withResolvers<void>();
    const thread: Thread = { worker, loaded, isLoaded: false, task: undefined, overdue: undefined };
    this.#threads.add(thread);
    // A thread without a file keeps no process alive.
    worker.unref();
    this.#endLater(thread, LOADING_MS_MAX);
    worker.on('message', (message: ThreadMessage) => {
      if (message === 'loaded') this.#loaded(thread);
      else this.#answered(thread, message);
    });
    worker.on('error', (cause) => {
      void this.#end(thread, new Unavailable('The pipeline file could not be read.', { cause }));
    });
    return thread;
  }

  #loaded(thread: Thread): void {
    clearTimeout(thread.overdue);
    thread.isLoaded = true;
    thread.loaded.resolve();
    if (thread.task !== undefined) this.#endLater(thread, this.#readingMsMax);
  }

  #endLater(thread: Thread, afterMs: number): void {
    thread.overdue = setTimeout(() => void this.#end(thread, late()), afterMs);
  }

  #answered(thread: Thread, { answer, bytes }: ThreadAnswer): void {
    const { task, worker } = thread;
    clearTimeout(thread.overdue);
    thread.task = undefined;
    worker.unref();
    if (task?.options !== undefined) adoptForeign(task.text, task.options, answer as ParseResult, bytes);
    if (task !== undefined) this.#settle(task, answer);
    this.#pump();
  }

  async #end(thread: Thread, outcome: Error): Promise<void> {
    this.#threads.delete(thread);
    const { task } = thread;
    clearTimeout(thread.overdue);
    thread.task = undefined;
    thread.loaded.resolve();
    if (task !== undefined) this.#settle(task, outcome);
    this.#pump();
    await thread.worker.terminate();
  }
}

/** What a file is read with, as far as it is known to be the same: extensions come anew with each question. */
function isSame(a: ParseTask, b: ParseTask): boolean {
  if (a.text !== b.text || a.isManifest !== b.isManifest) return false;
  if ((a.options === undefined) !== (b.options === undefined)) return false;
  const { extensions = [], ...others } = a.options ?? {};
  const { extensions: known = [], ...rest } = b.options ?? {};
  const keys = [...Object.keys(others), ...Object.keys(rest)] as (keyof typeof rest)[];
  return keys.every((key) => others[key] === rest[key]) && areSame(extensions, known);
}

function areSame(a: readonly ResolvedExtension[], b: readonly ResolvedExtension[]): boolean {
  const fields = ['uses', 'id', 'version', 'hash', 'manifest'] as const;
  return a.length === b.length && a.every((each, index) => fields.every((field) => each[field] === b[index]?.[field]));
}

function lengthOf({ text, options }: ParseTask): number {
  return text.length + manifestsLength(options?.extensions);
}

function manifestsLength(extensions: ParseOptions['extensions']): number {
  return (extensions ?? []).reduce((sum, { manifest }) => sum + manifest.length, 0);
}

function late(): Unavailable {
  return new Unavailable('The pipeline file could not be read in time.');
}
