/**
 * The audit log: who did or was refused what, appended and never changed. It owns a queue in memory and its writing.
 *
 *  AUDIT-1 `record` never waits and never throws: what is audited goes on whether or not the store can be reached.
 *  AUDIT-2 At most `QUEUE_MAX` entries wait; what comes beyond is dropped, and the number of them is logged.
 *  AUDIT-3 An entry is written once: a batch that is repeated after a lost answer finds its own entries in place.
 *  AUDIT-4 No secret is in it: entries name users, tokens and runs by their ids, and free text is cut.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore } from './port.ts';
import type { Log } from '@penstock/telemetry/log';
import { within } from '@penstock/async';

export const auditSpec = {
  name: 'audit',
  fields: {
    /** Milliseconds since 1970. */
    at: 'integer',
    actor: 'string',
    action: 'string',
    target: 'string',
    outcome: 'string',
    /** '' where none is known. */
    ip: 'string',
    /** Always 0: with `at` the version that makes an entry unchangeable. */
    part: 'integer',
  },
  parts: [],
  indexes: [],
  version: ['at', 'part'],
} as const satisfies CollectionSpec;

export const auditCollections: readonly CollectionSpec[] = [auditSpec];

export interface AuditEntry {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** `user/<id>`, `token/<id>`, `api-key`, `anonymous`, or a service's name. */
  readonly actor: string;
  /** What was done or tried: `login`, `logout`, `token.create`, `token.revoke`, `run.cancel`, `run.approve`, `authenticate`, `rate-limit`, … */
  readonly action: string;
  /** What it was done to, by id; '' where there is nothing to name. */
  readonly target: string;
  /** `ok`, or the code of the refusal. */
  readonly outcome: string;
  readonly ip?: string | undefined;
}

export interface AuditLog {
  record(entry: AuditEntry): void;
}

export interface AuditReader {
  /** The newest first; limit 1 to 1,000. `since`: none from before, milliseconds since 1970. */
  newest(limit: number, since?: number): Promise<AuditEntry[]>;
}

export interface AuditRepositoryOptions {
  readonly log: Pick<Log, 'warn'>;
}

const QUEUE_MAX = 10_000;
const BATCH_MAX = 200;
/** Between the first entry and its writing: entries of one burst are one write. */
const GATHER_MS = 100;
/** Before a write that failed is tried again. */
const RETRY_MS = 2_000;
/** `close` writes what waits, for this long at most. */
const CLOSE_MS_MAX = 3_000;
const TEXT_LENGTH_MAX = 300;

/** Of processes that keep no audit log: tests, mostly. */
export const noAudit: AuditLog & AuditReader = { record: () => {}, newest: async () => [] };

type AuditRow = DocumentOf<typeof auditSpec>;

export class AuditRepository implements AuditLog, AuditReader {
  readonly #rows: Collection<typeof auditSpec>;
  readonly #log: AuditRepositoryOptions['log'];
  readonly #queue: AuditRow[] = [];
  readonly #closing = new AbortController();
  #writing: Promise<void> | null = null;
  #dropped = 0;
  #recorded = 0;

  /** The store has to be opened with `auditCollections` among its collections. */
  constructor(store: DocumentStore, options: AuditRepositoryOptions) {
    this.#rows = store.collection(auditSpec);
    this.#log = options.log;
  }

  record(entry: AuditEntry): void {
    if (this.#queue.length >= QUEUE_MAX) {
      this.#dropped += 1;
      return;
    }
    this.#recorded += 1;
    this.#queue.push(rowOf(entry, this.#recorded));
    if (!this.#closing.signal.aborted) this.#writing ??= this.#write();
  }

  async newest(limit: number, since = 0): Promise<AuditEntry[]> {
    const where = { id: { gte: idTime(since) } };
    const rows = await this.#rows.list({ where, orderBy: { field: 'id', direction: 'desc' }, limit });
    return rows.map(entryOf);
  }

  /** Writes what waits, where the store answers in time. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    const written = this.#writeBatches().catch((error: unknown) =>
      this.#log.warn({ err: error, lost: this.#queue.length }, 'audit entries are lost'),
    );
    await within(CLOSE_MS_MAX, written, () => {});
  }

  async #write(): Promise<void> {
    await this.#pause(GATHER_MS);
    while (this.#queue.length > 0 && !this.#closing.signal.aborted) {
      try {
        await this.#writeBatches();
      } catch (error) {
        this.#log.warn({ err: error, waiting: this.#queue.length }, 'the audit log cannot be written; trying again');
        await this.#pause(RETRY_MS);
      }
    }
    this.#writing = null;
  }

  async #writeBatches(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, BATCH_MAX);
      await this.#rows.replaceNewer(batch);
      this.#queue.splice(0, batch.length);
      if (this.#dropped === 0) continue;
      this.#log.warn({ dropped: this.#dropped }, 'audit entries were dropped: the store was away for too long');
      this.#dropped = 0;
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    await pause(milliseconds, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {});
  }
}

/** The id begins with the time, so that the newest are the last by id; those of one process in one millisecond are in their order. */
function rowOf(entry: AuditEntry, number: number): AuditRow {
  const id = `${idTime(entry.at)}-${number.toString(16).padStart(12, '0')}${randomBytes(8).toString('hex')}`;
  return {
    id,
    at: Math.floor(entry.at),
    part: 0,
    actor: audited(entry.actor),
    action: audited(entry.action),
    target: audited(entry.target),
    outcome: audited(entry.outcome),
    ip: audited(entry.ip ?? ''),
  };
}

function idTime(at: number): string {
  return Math.max(0, Math.floor(at)).toString(16).padStart(12, '0');
}

function entryOf(row: AuditRow): AuditEntry {
  const { at, actor, action, target, outcome, ip } = row;
  return { at, actor, action, target, outcome, ...(ip === '' ? {} : { ip }) };
}

function audited(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).toWellFormed();
}
