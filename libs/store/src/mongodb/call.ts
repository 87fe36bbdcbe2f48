/**
 * One call of the port on its way: what is left of its time, its commands, its retries. Commands go out as they are, by
 * the driver's `command`; the driver's own retries are off, so that one rule holds on every server.
 *
 * CALL-1 A command never outlives the call: it is aborted at the deadline, and the server is told to stop by then.
 * CALL-2 What failed in passing is tried again after a jittered pause, as often as the time allows.
 * CALL-3 After a failure nobody knows what was written. The next attempt is told so (`again`), and looks before it answers.
 */
import { backoffMs, pause } from '@penstock/async';
import type { Db, Document } from 'mongodb';
import { codeFailure, failureOf, type MongoFailure } from './failures.ts';

const BACKOFF = { firstMs: 20, maxMs: 500 };

/** What reads ask for, so that every write settled before is seen (see docs/adr/0008-mongodb.md). */
export type ReadConcern = { readonly level: 'linearizable' | 'majority' } | null;

export interface CallTarget {
  readonly database: Db;
  readonly readConcern: ReadConcern;
}

/** One refused write of a command that held several. */
export interface WriteError {
  readonly index: number;
  readonly code: number;
  readonly message: string;
}

/** Carries a failure through code that may throw. */
export class CallFailure extends Error {
  readonly failure: MongoFailure;

  constructor(failure: MongoFailure) {
    super(failure.problem, { cause: failure.cause });
    this.failure = failure;
  }
}

export class Call {
  readonly #target: CallTarget;
  readonly #expiresAtMs: number;
  readonly #deadlineMs: number;
  readonly #aborter = new AbortController();
  readonly #mayRetry: () => boolean;
  /** The last that failed in passing: the reason told at the deadline. */
  #lastFailure: MongoFailure | null = null;

  constructor(target: CallTarget, deadlineMs: number, mayRetry: () => boolean) {
    this.#target = target;
    this.#deadlineMs = deadlineMs;
    this.#expiresAtMs = performance.now() + deadlineMs;
    this.#mayRetry = mayRetry;
  }

  /** Settles by the deadline, whatever the driver does; rejects with what `failureOfCall` reads. */
  async run<T>(work: (call: Call) => Promise<T>): Promise<T> {
    const expired = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#aborter.abort(new Error('the deadline of the call has passed'));
      // After the driver has had its turn: the reason it gives says more.
      setImmediate(() => expired.reject(new CallFailure(this.#expiry())));
    }, this.#deadlineMs);
    try {
      return await Promise.race([work(this), expired.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** A read; answers the reply. */
  read(command: Document): Promise<Document> {
    const { readConcern } = this.#target;
    return this.#send(readConcern === null ? command : { ...command, readConcern });
  }

  /** A write, acknowledged when a majority has it in its journal; answers how many documents it met, and what was refused. */
  async write(command: Document): Promise<{ readonly count: number; readonly refused: readonly WriteError[] }> {
    const reply = await this.#send({
      ...command,
      writeConcern: { w: 'majority', j: true, wtimeout: this.#remainingMs() },
    });
    const errors = (reply['writeErrors'] ?? []) as readonly Document[];
    const refused = errors.map((error): WriteError => ({
      index: Number(error['index']),
      code: Number(error['code']),
      message: String(error['errmsg']),
    }));
    return { count: Number(reply['n'] ?? 0), refused };
  }

  /** A command with neither, of the set-up; it may take as long as it is given. */
  manage(command: Document): Promise<Document> {
    return this.#send(command);
  }

  /** `again`: an earlier attempt failed, and may have done its work all the same. */
  async retry<T>(attempt: (again: boolean) => Promise<T>): Promise<T> {
    for (let attempts = 0; ; attempts++) {
      try {
        return await attempt(attempts > 0);
      } catch (error) {
        const failure = failureOfCall(error);
        if (!failure.again || !this.#mayRetry()) throw error;
        this.#lastFailure = failure;
        await this.#backOff(attempts + 1);
      }
    }
  }

  async #send(command: Document): Promise<Document> {
    const { signal } = this.#aborter;
    try {
      return await this.#target.database.command(
        { ...command, maxTimeMS: this.#remainingMs() },
        { signal, readPreference: 'primary' },
      );
    } catch (error) {
      throw signal.aborted ? new CallFailure(this.#expiry()) : error;
    }
  }

  async #backOff(failures: number): Promise<void> {
    try {
      await pause(backoffMs(failures, BACKOFF), this.#aborter.signal);
    } catch {
      throw new CallFailure(this.#expiry());
    }
  }

  #expiry(): MongoFailure {
    const last = this.#lastFailure;
    const problem = `no answer within ${this.#deadlineMs} ms`;
    return {
      tag: 'unavailable',
      problem: last === null ? problem : `${problem}; the last attempt: ${last.problem}`,
      again: false,
      cause: last?.cause,
    };
  }

  /** At least 1: to the server 0 means for ever. */
  #remainingMs(): number {
    return Math.max(1, Math.ceil(this.#expiresAtMs - performance.now()));
  }
}

export function failureOfCall(error: unknown): MongoFailure {
  return error instanceof CallFailure ? error.failure : failureOf(error);
}

/** Rejects for refused writes that are no duplicates: those are the caller's to judge. */
export function throwUnless(isExpected: (error: WriteError) => boolean, refused: readonly WriteError[]): void {
  const unexpected = refused.find((error) => !isExpected(error));
  if (unexpected !== undefined) throw new CallFailure(codeFailure(unexpected.code, unexpected.message, false));
}
