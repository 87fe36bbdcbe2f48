/**
 * Where the chunks of running stages go: to the broker, or to disk while it is away or slow (P18, P21). A chunk counts as
 * stored when the broker has acknowledged it, and in no other way; one that was refused is sent again.
 *
 * CHUNKSTORE-1. In memory: what the log writer holds, and of each attempt what it had handed over when the writer was full.
 *     On disk: at most `spoolBytesMax` of all attempts together. Beyond both a stage waits, by way of its pipes; it also
 *     waits where the disk has no room.
 * CHUNKSTORE-2. Once an attempt has something on disk its further chunks follow there, until the disk has been caught up
 *     with.
 * CHUNKSTORE-3. What is not acknowledged when an attempt ends lies on disk until it is (`keep`), also for the next start.
 */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  BrokerAway,
  encodeChunk,
  LogQueueFull,
  MessageTooLarge,
  subjects,
  type Chunk,
  type LogWriter,
} from '@penstock/bus';
import { letGo } from '@penstock/artifacts';
import type { Log } from '@penstock/telemetry/log';
import { within } from '@penstock/async';
import { ChunkSpool, chunksIn } from './chunk-spool.ts';

/** Chunks under way of all attempts before a stage is made to wait: half a megabyte to four. */
const PENDING_MAX = 64;
/** So many that the writer is about to refuse some: a stage does not wait for it any more. */
const PENDING_FULL = 512;
/** A broker that takes longer to make room is treated as away: the stage goes on, onto disk. */
const PATIENCE_MS = 250;
/** After a refusal that may pass. */
const REFUSED_RETRY_MS = 5_000;
/** Kept within the line of its result, as most stages' last words are; more goes into a file of its own. */
const INLINE_BYTES_MAX = 8 * 1024;

/** What the broker lacks of an attempt's log: chunks in base64, and names of files in the store's folder. */
export interface KeptChunks {
  readonly inline: readonly string[];
  readonly files: readonly string[];
}

export interface ChunkStoreOptions {
  readonly writer: LogWriter;
  readonly folder: string;
  readonly spoolBytesMax: number;
  readonly log: Log;
}

export class ChunkStore {
  readonly options: ChunkStoreOptions;
  spooledBytes = 0;
  #roomWaiters: (() => void)[] = [];
  readonly #start = Date.now().toString(36);
  #files = 0;

  /** The folder is this store's alone: what an earlier process left there goes, but for the files of `kept`. */
  constructor(options: ChunkStoreOptions, kept: readonly KeptChunks[]) {
    this.options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    const wanted = new Set(kept.flatMap(({ files }) => files));
    for (const name of readdirSync(options.folder))
      if (!wanted.has(name)) rmSync(join(options.folder, name), { recursive: true, force: true });
  }

  /** The log of one attempt. `runner`: as in its subject. */
  open(runId: string, runner: string): OutgoingLog {
    return new OutgoingLog(this, subjects.log(runId, runner));
  }

  /** Sends what an earlier process has kept of an attempt's log. Resolves when the broker has all of it. */
  async resend(runId: string, runner: string, { inline, files }: KeptChunks): Promise<void> {
    const { folder, log } = this.options;
    const outgoing = this.open(runId, runner);
    for (const chunk of inline) await outgoing.resend(Buffer.from(chunk, 'base64'));
    for (const file of files) {
      try {
        for (const chunk of chunksIn(join(folder, file))) await outgoing.resend(chunk);
      } catch (error) {
        log.error({ err: error, runId, file }, "a part of a stage's log was kept and cannot be read");
      }
    }
    await outgoing.stored();
    for (const file of files) this.remove(join(folder, file));
  }

  /** Never throws: nothing waits for a file to go, and the next start removes what is left. */
  remove(path: string): void {
    try {
      rmSync(path, { force: true });
    } catch (error) {
      this.options.log.warn(
        { err: error, path },
        "a file of a stage's log could not be removed; the next start removes it",
      );
    }
  }

  nextFile(): string {
    this.#files += 1;
    return join(this.options.folder, `chunks-${this.#start}-${this.#files}`);
  }

  spoolHasRoom(): boolean {
    return this.spooledBytes < this.options.spoolBytesMax;
  }

  spoolRoom(): Promise<void> {
    return this.spoolHasRoom() ? Promise.resolve() : new Promise((resolve) => this.#roomWaiters.push(resolve));
  }

  unspooled(bytes: number): void {
    this.spooledBytes -= bytes;
    if (this.spoolHasRoom()) for (const resolve of this.#roomWaiters.splice(0)) resolve();
  }
}

export class OutgoingLog {
  readonly #store: ChunkStore;
  readonly #subject: string;
  /** In memory, and not acknowledged. */
  readonly #unacknowledged = new Set<Uint8Array>();
  readonly #keptFiles: string[] = [];
  #onStored: (() => void)[] = [];
  #spool: ChunkSpool | null = null;
  #isKept = false;
  #dropped = false;

  constructor(store: ChunkStore, subject: string) {
    this.#store = store;
    this.#subject = subject;
  }

  /** The chunk is copied. A promise where the caller is to wait before it brings more. It never throws: what no disk takes waits in memory. */
  append(chunk: Chunk): void | Promise<void> {
    if (this.#dropped) return undefined;
    const bytes = encodeChunk(chunk);
    const { pending } = this.#store.options.writer;
    if (this.#spool === null && pending >= PENDING_FULL) this.#openSpool();
    if (this.#spool !== null) return this.#toDisk(this.#spool, bytes);
    this.#publish(bytes);
    return pending < PENDING_MAX ? undefined : this.#roomOrDisk();
  }

  /** Of an earlier process; resolves when the writer has room for the next one. */
  async resend(bytes: Uint8Array): Promise<void> {
    this.#publish(bytes);
    await this.#store.options.writer.room().catch(() => {});
  }

  /** Resolves when the broker has acknowledged every chunk so far; never once the log was dropped. */
  stored(): Promise<void> {
    return this.#isStored() ? Promise.resolve() : new Promise((resolve) => this.#onStored.push(resolve));
  }

  /**
   * CHUNKSTORE-3. No chunk follows any more. Undefined: the broker has everything. It never throws: what the disk does not
   * take is sent unless this process ends before.
   */
  keep(): KeptChunks | undefined {
    this.#isKept = true;
    if (this.#isStored()) return undefined;
    const chunks = [...this.#unacknowledged];
    const isShort = chunks.reduce((sum, { length }) => sum + length, 0) <= INLINE_BYTES_MAX;
    if (!isShort) this.#writeTail(chunks);
    if (this.#spool !== null) this.#keptFiles.push(this.#spool.path);
    return {
      inline: isShort ? chunks.map((chunk) => Buffer.from(chunk).toString('base64')) : [],
      files: this.#keptFiles.map((path) => basename(path)),
    };
  }

  /** The attempt is no more: what is still on disk is not sent. */
  drop(): void {
    this.#dropped = true;
    this.#unacknowledged.clear();
    this.#closeSpool();
  }

  #isStored(): boolean {
    return this.#unacknowledged.size === 0 && (this.#spool === null || this.#spool.isEmpty);
  }

  #writeTail(chunks: readonly Uint8Array[]): void {
    const tail = this.#newSpool();
    if (tail === null) return;
    try {
      for (const chunk of chunks) tail.put(chunk);
      this.#keptFiles.push(tail.path);
    } catch (error) {
      this.#store.remove(tail.path);
      this.#tellNoRoom(error);
    } finally {
      tail.close();
    }
  }

  #tellNoRoom(error: unknown): void {
    this.#store.options.log.warn(
      { err: error, subject: this.#subject },
      "a stage's log could not be put on disk and waits in memory for the broker",
    );
  }

  #newSpool(): ChunkSpool | null {
    try {
      return new ChunkSpool(this.#store.nextFile());
    } catch (error) {
      this.#tellNoRoom(error);
      return null;
    }
  }

  /** Waits for the broker, but not long. */
  async #roomOrDisk(): Promise<void> {
    const { writer } = this.#store.options;
    const room = writer.room().catch(() => undefined);
    const outcome = await within(PATIENCE_MS, room, () => 'late' as const);
    if (outcome !== 'late' || this.#spool !== null || this.#dropped) return;
    this.#openSpool();
    // No disk either: the stage waits.
    if (this.#spool === null) await room;
  }

  #openSpool(): void {
    this.#spool = this.#newSpool();
    if (this.#spool !== null) void this.#catchUp(this.#spool);
  }

  #toDisk(spool: ChunkSpool, bytes: Uint8Array): void | Promise<void> {
    try {
      this.#store.spooledBytes += spool.put(bytes);
    } catch (error) {
      this.#tellNoRoom(error);
      this.#publish(bytes);
      return this.#store.options.writer.room().catch(() => {});
    }
    return this.#store.spoolHasRoom() ? undefined : this.#store.spoolRoom();
  }

  /** CHUNKSTORE-2: sends from disk until that is empty, then lets the chunks go straight again. */
  async #catchUp(spool: ChunkSpool): Promise<void> {
    const { writer, log } = this.#store.options;
    try {
      for (;;) {
        await writer.room();
        if (this.#dropped) return;
        const taken = this.#takeFrom(spool);
        if (taken === null) break;
        this.#store.unspooled(taken.bytes);
        this.#publish(taken.chunk);
      }
      this.#closeSpool();
      this.#settle();
    } catch (error) {
      // The writer is closed: the runner is ending. What was kept is sent by its next start.
      log.debug({ err: error, subject: this.#subject }, 'spooled log chunks are not sent by this process any more');
    }
  }

  /** Null: there is no more that can be read. A result does not wait for what no start would read either. */
  #takeFrom(spool: ChunkSpool): ReturnType<ChunkSpool['take']> {
    try {
      return spool.take(this.#isKept);
    } catch (error) {
      this.#store.options.log.error(
        { err: error, subject: this.#subject, bytes: spool.bytes },
        "a part of a stage's log was put on disk and cannot be read; it is missing from the log",
      );
      return null;
    }
  }

  #publish(bytes: Uint8Array): void {
    if (this.#dropped) return;
    this.#unacknowledged.add(bytes);
    this.#store.options.writer.publish(this.#subject, bytes).then(
      () => this.#acknowledged(bytes),
      (error: unknown) => this.#refused(bytes, error),
    );
  }

  /** Nothing is lost but what no broker would ever take. */
  #refused(bytes: Uint8Array, error: unknown): void {
    const { writer, log } = this.#store.options;
    if (this.#dropped || error instanceof BrokerAway) return;
    if (error instanceof MessageTooLarge) {
      log.error({ err: error, subject: this.#subject }, 'a log chunk is too large and is missing from the log');
      this.#acknowledged(bytes);
    } else if (error instanceof LogQueueFull) {
      void writer.room().then(
        () => this.#publish(bytes),
        () => {},
      );
    } else {
      log.error({ err: error, subject: this.#subject }, 'a log chunk could not be stored and is sent again');
      setTimeout(() => this.#publish(bytes), REFUSED_RETRY_MS).unref();
    }
  }

  #acknowledged(bytes: Uint8Array): void {
    this.#unacknowledged.delete(bytes);
    letGo(bytes);
    this.#settle();
  }

  #settle(): void {
    if (this.#dropped || !this.#isStored()) return;
    if (this.#isKept) for (const path of this.#keptFiles.splice(0)) this.#store.remove(path);
    for (const resolve of this.#onStored.splice(0)) resolve();
  }

  #closeSpool(): void {
    const spool = this.#spool;
    if (spool === null) return;
    this.#spool = null;
    this.#store.unspooled(spool.bytes);
    try {
      spool.close();
    } catch (error) {
      // A disk that fails tells it again here. The file is closed all the same, and nobody is to wait for what it held.
      this.#store.options.log.warn(
        { err: error, subject: this.#subject },
        "a file of a stage's log was closed by an error",
      );
    }
    if (!this.#keptFiles.includes(spool.path)) this.#store.remove(spool.path);
  }
}
