/**
 * The driver's client, its pool, and the calls under way.
 *
 * MONGOLINK-1 Every call settles within its deadline.
 * MONGOLINK-2 Calls under way are bounded in number and bytes; beyond, a call is refused at once and nothing was done.
 * MONGOLINK-3 A dead connection is found out within half of a call's time, so that the call can still be repeated on another.
 * MONGOLINK-4 No error shows the address's user, password or options.
 */
import { MongoClient, type MongoClientOptions } from 'mongodb';
import { within } from '@penstock/async';
import { StoreUnavailable, StoreUsageError, type StoreError } from '../errors.ts';
import type { MongoAddress } from './address.ts';
import { Call, failureOfCall, type CallTarget, type ReadConcern } from './call.ts';
import { errorOf } from '../failure.ts';
import { failureOf } from './failures.ts';

/** A projector and a gateway have a few dozen calls under way; thousands mean that the server has stopped. */
const CALLS_MAX = 4_000;
const CALL_BYTES_MAX = 256 * 1024 * 1024;
/** A majority write takes some milliseconds, most of them waiting: this many carry thousands of writes a second. */
const CONNECTIONS_MAX = 20;
/** How often a server is looked for while calls wait for one. The driver's half second would be paid by every call that meets a cut connection. */
const SEARCH_MS = 100;
const SELECTION_MARGIN_MS = 500;
/** The goodbye to a server that does not listen any more. */
const CLOSE_MS = 2_000;

export class MongoLink {
  readonly label: string;
  readonly #client: MongoClient;
  readonly #databaseName: string;
  readonly #deadlineMs: number;
  #readConcern: ReadConcern = null;
  readonly #pending = new Set<Promise<unknown>>();
  #pendingBytes = 0;
  #closing: Promise<void> | null = null;

  /** Connects with the first call. */
  constructor(url: string, address: MongoAddress, deadlineMs: number) {
    this.label = address.label;
    this.#databaseName = address.database;
    this.#deadlineMs = deadlineMs;
    this.#client = makeClient(url, address.label, deadlineMs);
  }

  /** For all reads from now on. */
  setReadConcern(readConcern: ReadConcern): void {
    this.#readConcern = readConcern;
  }

  /** `bytes`: about what the call keeps in memory until it settles. Rejects with the port's errors. */
  async call<T>(
    work: (call: Call) => Promise<T>,
    options: { readonly bytes?: number; readonly deadlineMs?: number } = {},
  ): Promise<T> {
    const bytes = options.bytes ?? 0;
    if (this.#closing !== null) throw new StoreUnavailable(this.label, 'it was closed');
    if (this.#pending.size >= CALLS_MAX || (this.#pendingBytes > 0 && this.#pendingBytes + bytes > CALL_BYTES_MAX)) {
      throw new StoreUnavailable(this.label, `it is busy with ${this.#pending.size} calls`);
    }
    const target: CallTarget = { database: this.#client.db(this.#databaseName), readConcern: this.#readConcern };
    const call = new Call(target, options.deadlineMs ?? this.#deadlineMs, () => this.#closing === null);
    const running = call.run(work);
    this.#pending.add(running);
    this.#pendingBytes += bytes;
    try {
      return await running;
    } catch (error) {
      throw this.errorOf(error);
    } finally {
      this.#pending.delete(running);
      this.#pendingBytes -= bytes;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await within(CLOSE_MS, this.#client.close(), () => {}).catch(() => {});
  }

  /** As the port's error, naming this store. */
  errorOf(error: unknown): StoreError {
    if (error instanceof StoreUsageError) return error;
    return errorOf(this.label, failureOfCall(error));
  }
}

function makeClient(url: string, label: string, deadlineMs: number): MongoClient {
  const options: MongoClientOptions = {
    appName: 'penstock',
    maxPoolSize: CONNECTIONS_MAX,
    // The deadline of each call aborts its commands (a socket timeout would cut the building of an index); these end what the driver does of itself.
    // Before the deadline of the call, or its reason would not be known then.
    serverSelectionTimeoutMS: Math.max(SEARCH_MS, deadlineMs - SELECTION_MARGIN_MS),
    waitQueueTimeoutMS: deadlineMs,
    heartbeatFrequencyMS: Math.min(2_000, Math.max(500, Math.floor(deadlineMs / 5))),
    minHeartbeatFrequencyMS: SEARCH_MS,
    connectTimeoutMS: Math.min(3_000, Math.max(250, Math.floor(deadlineMs * 0.3))),
    retryReads: false,
    retryWrites: false,
    promoteLongs: true,
  };
  try {
    return new MongoClient(url, options);
  } catch (error) {
    // Without the cause: the driver may quote the address. Its sentence is told only where it cannot hold a part of it.
    const { problem } = failureOf(error);
    const secrets = url
      .slice(0, url.lastIndexOf('@') + 1)
      .split(/[:@/]+/)
      .slice(1)
      .filter((part) => part !== '');
    const isSafe = !secrets.some((secret) => problem.includes(secret));
    throw new StoreUsageError(
      label,
      `the address of the store is refused by the driver${isSafe ? `: ${problem}` : ''}`,
    );
  }
}
