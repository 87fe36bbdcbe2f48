/** The outbox as its senders and its people see it: what waits for a hook, in which order, and what became of it. */
import type { HookDeliveryView } from '@penstock/bus';
import { hookDeliveriesSpec, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';

/** Without its body. */
export type OutboxRow = Omit<DocumentOf<typeof hookDeliveriesSpec>, 'body'>;
type OutboxChange = Partial<Omit<OutboxRow, 'id' | 'revision'>>;

/** Kept of a hook, the newest: for people who look, and for the projector that inserts what it did not hear was inserted. */
const ENDED_MAX = 1_000;
const ENDED_MS_MAX = 7 * 24 * 60 * 60 * 1_000;
const SWEEP_BATCH = 500;
/** Behind all versions of a run. */
const AFTER_VERSIONS = '~';

export class Outbox {
  readonly #deliveries: Collection<typeof hookDeliveriesSpec>;

  constructor(store: DocumentStore) {
    this.#deliveries = store.collection(hookDeliveriesSpec);
  }

  /** The next hook, by its id, for which something waits; undefined: there is none behind `after`. */
  async nextHook(after: string): Promise<string | undefined> {
    const [row] = await this.#deliveries.list({
      where: { open: true, hook: { gt: after } },
      orderBy: { field: 'hook', direction: 'asc' },
      limit: 1,
      parts: [],
    });
    return row?.hook;
  }

  /** What waits for a hook: run by run, each in the order of its events. */
  async waiting(hook: string, after: string, limit: number): Promise<readonly OutboxRow[]> {
    return await this.#deliveries.list({
      where: { open: true, hook },
      limit,
      ...(after === '' ? {} : { after: { id: after } }),
      parts: [],
    });
  }

  /** For `waiting`: behind everything of this row's run. */
  afterRun({ hook, run }: Pick<OutboxRow, 'hook' | 'run'>): string {
    return `${hook}_${run}_${AFTER_VERSIONS}`;
  }

  /** Null: it is there no more. */
  async get(id: string): Promise<DocumentOf<typeof hookDeliveriesSpec> | null> {
    return id === '' || id.length > 500 ? null : await this.#deliveries.get(id);
  }

  /** False: somebody else has written it since it was read, or it went with its hook. */
  async change(row: DocumentOf<typeof hookDeliveriesSpec>, change: OutboxChange): Promise<boolean> {
    return await this.#deliveries.replaceStanding({ ...row, ...change, revision: row.revision + 1 });
  }

  /** Those of the newest runs first. */
  async newest(hook: string, limit: number): Promise<readonly OutboxRow[]> {
    return await this.#deliveries.list({
      where: { hook },
      orderBy: { field: 'id', direction: 'desc' },
      limit,
      parts: [],
    });
  }

  /** Of all hooks: what was given up, the latest first. */
  async dead(limit: number): Promise<readonly OutboxRow[]> {
    return await this.#deliveries.list({
      where: { open: false, taken: false },
      orderBy: { field: 'endedAt', direction: 'desc' },
      limit,
      parts: [],
    });
  }

  /** Leaves the newest of what has ended. */
  async trim(hook: string): Promise<void> {
    const ended = { open: false, hook };
    const kept = await this.#deliveries.list({
      where: ended,
      orderBy: { field: 'endedAt', direction: 'desc' },
      limit: ENDED_MAX,
      parts: [],
    });
    const last = kept.at(-1);
    if (last === undefined || kept.length < ENDED_MAX) return;
    await this.#sweep({ ...ended, endedAt: { lt: last.endedAt } });
  }

  async sweep(now: number): Promise<void> {
    await this.#sweep({ open: false, endedAt: { lt: now - ENDED_MS_MAX } });
  }

  async #sweep(where: Parameters<Collection<typeof hookDeliveriesSpec>['deleteWhere']>[0]['where']): Promise<void> {
    const orderBy = { field: 'endedAt', direction: 'asc' } as const;
    let deleted: number;
    do deleted = await this.#deliveries.deleteWhere({ where, orderBy, limit: SWEEP_BATCH });
    while (deleted === SWEEP_BATCH);
  }
}

export function deliveryView(row: OutboxRow): HookDeliveryView {
  const { open, taken, triedAt, attempts, status } = row;
  return {
    id: row.id,
    hook: row.hook,
    event: row.event,
    runId: row.run,
    version: row.runVersion,
    status: open ? 'WAITING' : taken ? 'DELIVERED' : 'DEAD',
    attempts,
    createdAt: new Date(row.createdAt).toISOString(),
    attemptedAt: triedAt === 0 ? null : new Date(triedAt).toISOString(),
    nextAttemptAt: open && row.dueAt > 0 ? new Date(row.dueAt).toISOString() : null,
    responseStatus: status === 0 ? null : status,
    responseMs: triedAt === 0 ? null : row.answerMs,
    error: row.why === '' ? null : row.why,
  };
}
