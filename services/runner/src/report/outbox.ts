/**
 * Results that their owners have not answered yet (P16). They lie on disk from the moment they are known until they are
 * answered, so that a runner that is killed in between reports them at its next start, and are sent again every 2 s.
 *
 * OUTBOX-1. A result is sent only after it is on disk, and forgotten only after an owner has answered `committed` or `obsolete`.
 * OUTBOX-2. Only the first send carries an offer: a later one could be granted when its slot has gone elsewhere.
 */
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { NoResponders, subjects, type AttemptRef, type Bus, type ResultReply, type ResultRequest } from '@penstock/bus';
import type { Logger } from '@penstock/telemetry';

/** P16. */
const RESEND_MS = 2_000;
/** Nobody owns the partition at this moment: a new owner comes within seconds, and the run waits for this. */
const RETRY_UNOWNED_MS = 250;
/** The file is written anew when it has grown by as much as this, and to the double: so each line is written twice at most. */
const FILE_BYTES_KEPT = 256 * 1024;

export interface PendingResult {
  readonly partition: number;
  readonly request: ResultRequest;
}

export type Offer = NonNullable<ResultRequest['offer']>;

export interface OutboxOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly runner: string;
  readonly file: string;
}

export class Outbox {
  readonly #options: OutboxOptions;
  readonly #pending = new Map<string, PendingResult>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #fd: number;
  #bytes = 0;
  /** What the file may grow to before it is written anew. */
  #bytesMax: number;
  #closed = false;
  #onEmpty: (() => void)[] = [];
  /** Resolves when what an earlier process has left is answered; with false where the outbox was closed before. */
  readonly earlierAnswered: Promise<boolean>;

  /** Takes up what an earlier process has left. */
  constructor(options: OutboxOptions) {
    this.#options = options;
    mkdirSync(dirname(options.file), { recursive: true, mode: 0o700 });
    for (const [id, result] of readPending(options.file)) this.#pending.set(id, result);
    ({ fd: this.#fd, bytes: this.#bytes } = this.#writtenAnew());
    this.#bytesMax = 2 * this.#bytes + FILE_BYTES_KEPT;
    this.earlierAnswered = Promise.all([...this.#pending].map(([id, result]) => this.#deliver(id, result))).then(
      () => !this.#closed,
    );
  }

  /** Whether the attempt's result is unanswered. */
  has(ref: AttemptRef): boolean {
    const pending = this.#pending.get(resultId(ref));
    return pending !== undefined && isSame(pending.request, ref);
  }

  /**
   * Keeps the result and sends it. `answered` is called once: with the fate of the offer as soon as that is known
   * (false where nobody took it), and when the result is answered.
   */
  put(result: PendingResult, offer: Offer | null, answered: { offerTaken(taken: boolean): void; done(): void }): void {
    const id = resultId(result.request);
    this.#pending.set(id, result);
    this.#append(lineOf(id, result));
    void this.#deliver(id, result, offer, answered);
  }

  /** Whether any result of the session is unanswered. */
  hasOf(session: string): boolean {
    return [...this.#pending.values()].some(({ request }) => request.session === session);
  }

  /** Resolves when everything is answered. */
  empty(): Promise<void> {
    return this.#pending.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onEmpty.push(resolve));
  }

  /** What is unanswered stays on disk. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers) clearTimeout(timer);
    closeSync(this.#fd);
  }

  async #deliver(
    id: string,
    result: PendingResult,
    offer: Offer | null = null,
    answered?: { offerTaken(taken: boolean): void; done(): void },
  ): Promise<void> {
    const { bus, log, runner } = this.#options;
    const { partition, request } = result;
    for (let first = true; !this.#closed; first = false) {
      const carried = first ? offer : null;
      let waitMs = RESEND_MS;
      const sentAt = performance.now();
      try {
        const body: ResultRequest = carried === null ? request : { ...request, offer: carried };
        const reply = await bus.request<ResultRequest, ResultReply>(subjects.result(partition, runner), body, {
          timeoutMs: RESEND_MS,
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
      await this.#wait(Math.max(RETRY_UNOWNED_MS, waitMs - (performance.now() - sentAt)));
    }
  }

  #answered(id: string, answered: { done(): void } | undefined): void {
    this.#pending.delete(id);
    if (!this.#closed) {
      this.#append(`${JSON.stringify({ done: id })}\n`);
      // A busy runner always has some result on its way: that is no reason to keep all others.
      if (this.#bytes > this.#bytesMax) this.#shrink();
    }
    answered?.done();
    if (this.#pending.size === 0) for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  #append(line: string): void {
    if (this.#closed) {
      // Drained and closed while this stage was ending: still kept for the next start.
      appendFileSync(this.#options.file, line);
      return;
    }
    this.#bytes += writeSync(this.#fd, line);
  }

  #shrink(): void {
    const { fd, bytes } = this.#writtenAnew();
    closeSync(this.#fd);
    this.#fd = fd;
    this.#bytes = bytes;
    this.#bytesMax = 2 * bytes + FILE_BYTES_KEPT;
  }

  /** Renamed into place, so that a process that is killed here leaves the old file or the new one. Half a line at the old one's end is gone. */
  #writtenAnew(): { readonly fd: number; readonly bytes: number } {
    const { file } = this.#options;
    const text = [...this.#pending].map(([id, result]) => lineOf(id, result)).join('');
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    return { fd: openSync(file, 'a', 0o600), bytes: Buffer.byteLength(text) };
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, ms);
      this.#timers.add(timer);
    });
  }
}

/** A credit is granted once in a session: it names its attempt. */
export function resultId(ref: { readonly session: string; readonly credit: number }): string {
  return `${ref.session}/${ref.credit}`;
}

/** P12: what does not match all of it is something else. */
export function isSame(one: AttemptRef, other: AttemptRef): boolean {
  return (
    one.runId === other.runId &&
    one.stage === other.stage &&
    one.attempt === other.attempt &&
    one.session === other.session &&
    one.credit === other.credit
  );
}

function lineOf(id: string, result: PendingResult): string {
  return `${JSON.stringify({ id, ...result })}\n`;
}

function readPending(file: string): Map<string, PendingResult> {
  const pending = new Map<string, PendingResult>();
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return pending;
  }
  for (const line of text.split('\n')) {
    let record: { id?: string; done?: string } & Partial<PendingResult>;
    try {
      record = JSON.parse(line) as typeof record;
    } catch {
      continue;
    }
    if (record.done !== undefined) pending.delete(record.done);
    else if (record.id !== undefined && record.partition !== undefined && record.request !== undefined) {
      pending.set(record.id, { partition: record.partition, request: record.request });
    }
  }
  return pending;
}
