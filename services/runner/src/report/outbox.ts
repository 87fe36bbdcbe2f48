/**
 * Results that their owners have not answered yet (P16). They lie on disk from the moment at which a stage's processes are
 * gone until they are answered, so that a runner that is killed in between reports them at its next start, and are sent
 * again every 2 s. What the broker lacked of the stage's log at that moment lies beside them.
 *
 * OUTBOX-1. A result is sent only after it is on disk, and forgotten only after an owner has answered `committed` or
 *     `obsolete`.
 * OUTBOX-2. Only the first send carries an offer: a later one could be granted when its slot has gone elsewhere.
 * OUTBOX-3. Room for the result of each attempt that `reserve` was called for stands on disk until the result is kept.
 */
import type { Time } from '@penstock/async';
import {
  type AttemptRef,
  type Bus,
  isSameAttempt,
  NoResponders,
  RESULT_REPEAT_MS,
  type ResultReply,
  type ResultRequest,
  subjects,
} from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { KeptChunks } from './chunk-store.ts';
import { isDiskFull } from './disk.ts';
import type { ResultLines } from './result-file.ts';

/** Nobody owns the partition at this moment: a new owner comes within seconds, and the run waits for this. */
const RETRY_UNOWNED_MS = 250;
/** What was answered is marked with the next result that is kept, where one comes within this. */
const MARK_MS = 50;
/** How long a full disk is left alone. */
const MARK_AGAIN_MS = 5_000;
/** The file is written anew when it has grown by as much as this, and to the double: so each line is written twice at most. */
const FILE_BYTES_KEPT = 256 * 1024;
/** Of one line: 64 KiB of outputs, each byte of which JSON may write as six, the end of the log, and names. */
const RESULT_BYTES_MAX = 416 * 1024;

export interface PendingResult {
  readonly partition: number;
  readonly request: ResultRequest;
  /** What the broker lacked of the attempt's log when the result was kept. */
  readonly chunks?: KeptChunks | undefined;
}

export type Offer = NonNullable<ResultRequest['offer']>;

/** `offerTaken` is called once where there was an offer, as soon as its fate is known; `done` when the result is answered. */
export interface Answered {
  offerTaken(taken: boolean): void;
  done(): void;
}

export interface OutboxOptions {
  readonly bus: Pick<Bus, 'request'>;
  readonly time: Time;
  readonly log: Log;
  readonly runner: string;
  readonly file: ResultLines;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #pending = new Map<string, PendingResult>();
  readonly #reserved = new Set<string>();
  /** Answered, and not marked so on disk yet: what a kill leaves of these is sent once more, and answered as obsolete. */
  readonly #unmarked = new Set<string>();
  #marksLater = false;
  /** What ends the waits that are under way. */
  readonly #waits = new Set<() => void>();
  readonly #file: ResultLines;
  /** What the file may grow to before it is written anew. */
  #bytesMax = 0;
  #closed = false;
  #onEmpty: (() => void)[] = [];

  /** Takes up what an earlier process has left; `resume` sends it. */
  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#file = options.file;
    for (const [id, result] of readPending(this.#file.lines())) this.#pending.set(id, result);
    this.#shrink();
  }

  /** What an earlier process has left. */
  get pending(): readonly PendingResult[] {
    return [...this.#pending.values()];
  }

  /**
   * Sends what an earlier process has left, each result once `logStored` has resolved for it. Resolves when all of it is
   * answered; with false where the outbox was closed before.
   */
  async resume(logStored: (result: PendingResult) => Promise<void>): Promise<boolean> {
    await Promise.all(
      [...this.#pending].map(async ([id, result]) => {
        try {
          await logStored(result);
        } catch (error) {
          const { runId, stage } = result.request;
          this.#options.log.error(
            { err: error, runId, stage },
            "what was left of a stage's log could not be sent; its result is",
          );
        }
        await this.#deliver(id, result);
      }),
    );
    return !this.#closed;
  }

  /** Whether the attempt's result is unanswered. */
  has(ref: AttemptRef): boolean {
    const pending = this.#pending.get(resultId(ref));
    return pending !== undefined && isSameAttempt(pending.request, ref);
  }

  /** OUTBOX-3. False: the disk is full, and the attempt is not to start. */
  reserve(ref: AttemptRef): boolean {
    try {
      this.#file.reserve((this.#reserved.size + 1) * RESULT_BYTES_MAX);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      return false;
    }
    this.#reserved.add(resultId(ref));
    return true;
  }

  /** The attempt comes to no result. */
  giveUp(ref: AttemptRef): void {
    this.#reserved.delete(resultId(ref));
  }

  /** From here on the result survives this process. It never throws: a disk that does not take it costs that alone. */
  keep(result: PendingResult): void {
    const id = resultId(result.request);
    this.#pending.set(id, result);
    const marks = this.#marks();
    this.#reserved.delete(id);
    try {
      this.#file.append(marks + lineOf(id, result));
      if (marks !== '') this.#unmarked.clear();
    } catch (error) {
      const { runId, stage } = result.request;
      this.#options.log.error(
        { err: error, runId, stage },
        'a result could not be written to the disk; it is reported unless this process ends before',
      );
    }
  }

  /** Sends what was kept. */
  send(ref: AttemptRef, offer: Offer | null, answered: Answered): void {
    const id = resultId(ref);
    const result = this.#pending.get(id);
    if (result !== undefined) void this.#deliver(id, result, offer, answered);
  }

  /** Whether any result of the session is unanswered. */
  hasOf(session: string): boolean {
    return this.pending.some(({ request }) => request.session === session);
  }

  /** Resolves when everything is answered. */
  empty(): Promise<void> {
    return this.#pending.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onEmpty.push(resolve));
  }

  /** What is unanswered stays on disk. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#mark();
    for (const end of this.#waits) end();
    this.#waits.clear();
    this.#file.close();
  }

  async #deliver(id: string, result: PendingResult, offer: Offer | null = null, answered?: Answered): Promise<void> {
    const { bus, log, runner, time } = this.#options;
    const { partition, request } = result;
    for (let first = true; !this.#closed; first = false) {
      const carried = first ? offer : null;
      let waitMs = RESULT_REPEAT_MS;
      const sentAt = time.bootNow();
      try {
        const body: ResultRequest = carried === null ? request : { ...request, offer: carried };
        const reply = await bus.request<ResultRequest, ResultReply>(subjects.result(partition, runner), body, {
          timeoutMs: RESULT_REPEAT_MS,
        });
        if (carried !== null) answered?.offerTaken(reply.ok && reply.offerTaken);
        if (reply.ok) return this.#answered(id, answered);
        log.debug({ ...request, code: reply.code }, 'a result was not taken; it is sent again');
      } catch (error) {
        if (carried !== null) answered?.offerTaken(false);
        if (error instanceof NoResponders) waitMs = RETRY_UNOWNED_MS;
        if (first)
          log.debug(
            { err: error, runId: request.runId, stage: request.stage },
            'a result was not answered; it is sent again',
          );
      }
      await this.#wait(Math.max(RETRY_UNOWNED_MS, waitMs - (time.bootNow() - sentAt)));
    }
  }

  #answered(id: string, answered: Answered | undefined): void {
    this.#pending.delete(id);
    if (!this.#closed) this.#forget(id);
    answered?.done();
    if (this.#pending.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #forget(id: string): void {
    this.#unmarked.add(id);
    void this.#markLater();
    // A busy runner always has some result on its way: that is no reason to keep all others.
    if (this.#file.bytes > this.#bytesMax) this.#shrink();
  }

  /**
   * The lines that say what was answered. On a full disk they stay away until there is room, for what is left of it is the results':
   * a start before that sends once too often.
   */
  #marks(): string {
    if (this.#unmarked.size === 0) return '';
    const lines = [...this.#unmarked].map((done) => `${JSON.stringify({ done })}\n`).join('');
    try {
      this.#file.reserve(this.#reserved.size * RESULT_BYTES_MAX + lines.length);
      return lines;
    } catch (error) {
      this.#options.log.debug({ err: error }, 'answered results could not be marked as such');
      return '';
    }
  }

  #mark(): void {
    const marks = this.#marks();
    if (marks === '') return;
    try {
      this.#file.append(marks);
      this.#unmarked.clear();
    } catch (error) {
      this.#options.log.debug({ err: error }, 'answered results could not be marked as such');
    }
  }

  async #markLater(waitMs = MARK_MS): Promise<void> {
    if (this.#marksLater) return;
    this.#marksLater = true;
    await this.#wait(waitMs);
    this.#marksLater = false;
    if (this.#closed || this.#unmarked.size === 0) return;
    this.#mark();
    if (this.#unmarked.size > 0) void this.#markLater(MARK_AGAIN_MS);
  }

  #shrink(): void {
    const text = [...this.#pending].map(([id, result]) => lineOf(id, result)).join('');
    try {
      this.#file.replace(text, this.#reserved.size * RESULT_BYTES_MAX);
      this.#unmarked.clear();
    } catch (error) {
      this.#options.log.debug({ err: error }, 'the file of results could not be written anew; it grows meanwhile');
    }
    this.#bytesMax = 2 * this.#file.bytes + FILE_BYTES_KEPT;
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        callOff();
        this.#waits.delete(end);
        resolve();
      };
      const callOff = this.#options.time.after(ms, end);
      this.#waits.add(end);
    });
  }
}

/** A credit is granted once in a session: it names its attempt. */
export function resultId(ref: { readonly session: string; readonly credit: number }): string {
  return `${ref.session}/${ref.credit}`;
}

function lineOf(id: string, result: PendingResult): string {
  return `${JSON.stringify({ id, ...result })}\n`;
}

function readPending(lines: readonly string[]): Map<string, PendingResult> {
  const pending = new Map<string, PendingResult>();
  for (const line of lines) {
    let record: { id?: string; done?: string } & Partial<PendingResult>;
    try {
      record = JSON.parse(line) as typeof record;
    } catch {
      continue;
    }
    const { id, done, partition, request, chunks } = record;
    if (done !== undefined) pending.delete(done);
    else if (id !== undefined && partition !== undefined && request !== undefined)
      pending.set(id, { partition, request, chunks });
  }
  return pending;
}
