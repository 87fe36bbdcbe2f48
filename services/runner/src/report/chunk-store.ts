/**
 * Where the chunks of running stages go: to the broker, or to disk while it is away or slow (P18, P21). Chunks of one
 * attempt are stored in their order; a chunk counts as stored when the broker has acknowledged it.
 *
 * CHUNKSTORE-1. In memory: what the log writer holds, at most its window and queue. On disk: at most `spoolBytesMax` of all
 *     attempts together. Beyond both a stage waits, by way of its pipes.
 * CHUNKSTORE-2. Once an attempt has something on disk its further chunks follow there, until the disk has been caught up with.
 */
import { closeSync, ftruncateSync, mkdirSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { encodeChunk, subjects, type Chunk, type LogWriter } from '@penstock/bus';
import type { Logger } from '@penstock/telemetry';
import { within } from '@penstock/async';

/** Chunks under way of all attempts before a stage is made to wait: half a megabyte to four. */
const PENDING_MAX = 64;
/** A broker that takes longer to make room is treated as away: the stage goes on, onto disk. */
const PATIENCE_MS = 250;
const HEAD_BYTES = 4;

export interface ChunkStoreOptions {
  readonly writer: LogWriter;
  readonly folder: string;
  readonly spoolBytesMax: number;
  readonly log: Logger;
}

export class ChunkStore {
  readonly options: ChunkStoreOptions;
  spooledBytes = 0;
  #roomWaiters: (() => void)[] = [];
  #files = 0;

  /** The folder is this store's alone: what an earlier process left there is of attempts that were lost with it. */
  constructor(options: ChunkStoreOptions) {
    this.options = options;
    rmSync(options.folder, { recursive: true, force: true });
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  }

  /** The log of one attempt. `runner`: as in its subject. */
  open(runId: string, runner: string): OutgoingLog {
    return new OutgoingLog(this, subjects.log(runId, runner));
  }

  nextFile(): string {
    this.#files += 1;
    return join(this.options.folder, `chunks-${this.#files}`);
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
  #unstored = 0;
  #onStored: (() => void)[] = [];
  #spool: Spool | null = null;
  #dropped = false;

  constructor(store: ChunkStore, subject: string) {
    this.#store = store;
    this.#subject = subject;
  }

  /** A promise where the caller is to wait before it brings more. */
  append(chunk: Chunk): void | Promise<void> {
    if (this.#dropped) return undefined;
    const bytes = encodeChunk(chunk);
    this.#unstored += 1;
    if (this.#spool !== null) return this.#toDisk(this.#spool, bytes);
    this.#publish(bytes);
    if (this.#store.options.writer.pending < PENDING_MAX) return undefined;
    return this.#roomOrDisk();
  }

  /** Resolves when the broker has acknowledged every chunk so far; never once the log was dropped. */
  stored(): Promise<void> {
    return this.#unstored === 0 ? Promise.resolve() : new Promise((resolve) => this.#onStored.push(resolve));
  }

  /** The attempt is no more: what is still on disk is not sent. */
  drop(): void {
    this.#dropped = true;
    this.#closeSpool();
  }

  /** Waits for the broker, but not long. */
  async #roomOrDisk(): Promise<void> {
    const { writer } = this.#store.options;
    const outcome = await within(
      PATIENCE_MS,
      writer.room().catch(() => undefined),
      () => 'late' as const,
    );
    if (outcome !== 'late' || this.#spool !== null || this.#dropped) return;
    const path = this.#store.nextFile();
    this.#spool = { path, fd: openSync(path, 'wx+', 0o600), read: 0, written: 0 };
    void this.#catchUp(this.#spool);
  }

  #toDisk(spool: Spool, bytes: Uint8Array): void | Promise<void> {
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(bytes.length);
    const record = Buffer.concat([head, bytes]);
    for (let at = 0; at < record.length;) at += writeSync(spool.fd, record, at, record.length - at, spool.written + at);
    spool.written += record.length;
    this.#store.spooledBytes += record.length;
    return this.#store.spoolHasRoom() ? undefined : this.#store.spoolRoom();
  }

  /** CHUNKSTORE-2: sends from disk until that is empty, then lets the chunks go straight again. */
  async #catchUp(spool: Spool): Promise<void> {
    const { writer, log } = this.#store.options;
    try {
      for (;;) {
        await writer.room();
        if (this.#dropped) return;
        if (spool.read === spool.written) break;
        const head = Buffer.alloc(HEAD_BYTES);
        readSync(spool.fd, head, 0, HEAD_BYTES, spool.read);
        const bytes = Buffer.alloc(head.readUInt32LE());
        readSync(spool.fd, bytes, 0, bytes.length, spool.read + HEAD_BYTES);
        const taken = HEAD_BYTES + bytes.length;
        spool.read += taken;
        this.#store.unspooled(taken);
        if (spool.read === spool.written) {
          ftruncateSync(spool.fd, 0);
          spool.read = spool.written = 0;
        }
        this.#publish(bytes);
      }
    } catch (error) {
      // The writer is closed: the runner is ending, and with it this attempt.
      log.debug({ err: error, subject: this.#subject }, 'spooled log chunks were given up');
      this.drop();
      return;
    }
    this.#closeSpool();
  }

  #publish(bytes: Uint8Array): void {
    this.#store.options.writer.publish(this.#subject, bytes).then(
      () => this.#landed(),
      (error: unknown) => {
        if (!this.#dropped)
          this.#store.options.log.error(
            { err: error, subject: this.#subject },
            'a log chunk could not be stored and is missing from the log',
          );
        this.#landed();
      },
    );
  }

  #landed(): void {
    this.#unstored -= 1;
    if (this.#unstored === 0) for (const resolve of this.#onStored.splice(0)) resolve();
  }

  #closeSpool(): void {
    const spool = this.#spool;
    if (spool === null) return;
    this.#spool = null;
    this.#store.unspooled(spool.written - spool.read);
    closeSync(spool.fd);
    rmSync(spool.path, { force: true });
  }
}

/** Records of a length and a chunk; `read` and `written` are offsets. */
interface Spool {
  readonly path: string;
  readonly fd: number;
  read: number;
  written: number;
}
