/**
 * Decided deliveries. Reads for people take the tenants that the asker may see, and a delivery of any other tenant does
 * not exist in their answers.
 *
 * DECISION-1 Of several decisions about one delivery the first insert stands; every later process goes by it.
 * DECISION-2 Look-ups that are asked at the same time go to the store together: the intake asks one for each delivery.
 * DECISION-3 A long file stays with its decision until that is carried out: the run has it.
 * DECISION-4 Of a tenant's long lists of paths, and long messages, LONG_BYTES_A_DAY are kept. The rest is cut: replayed, such a push
 *     matches every filter of paths.
 * DECISION-5 Of a tenant's deliveries ROW_BYTES_A_DAY are kept whole, and REFUSED_BYTES_A_DAY of those that were refused. Of each of the
 *     first beyond that there is for seven days what answers a repetition (P24) and what a replay needs; of the others nothing. What nobody
 *     has signed has rooms of its own: a stranger's takes none from the tenant `service`.
 */
import { setImmediate as othersTurn } from 'node:timers/promises';
import { bootMs } from '@penstock/async';
import type { Collection, DocumentOf, DocumentStore } from '@penstock/store';
import { deliveriesSpec } from './collections.ts';
import { DailyRoom } from './daily-room.ts';
import { fileBytesOf, shortened, withoutFiles, type Decision } from './decision.ts';
import type { Delivery } from './delivery.ts';

export interface DecidedDelivery {
  readonly delivery: Delivery;
  /** What its decision says, as stored. */
  readonly decision: Decision;
  readonly revision: number;
}

type Row = DocumentOf<typeof deliveriesSpec>;

const LOOKUPS_MAX = 500;
const SWEEP_BATCH = 500;
/** Read in a millisecond or so. */
const CHARACTERS_A_TURN = 256 * 1024;
/** DECISION-3: below it another write costs more than what it saves. */
const FILE_BYTES_KEPT = 8 * 1024;
const LONG_BYTES = 4 * 1024;
/** Some 15,000 pushes with a list of 4 KiB each. */
const LONG_BYTES_A_DAY = 64 * 1024 * 1024;
const SHORT_MESSAGE_CHARACTERS = 1_000;
/** Some 30,000 pushes. */
const ROW_BYTES_A_DAY = 64 * 1024 * 1024;
const REFUSED_BYTES_A_DAY = 8 * 1024 * 1024;
/** Enough to know it again. */
const SHORTENED_MESSAGE_CHARACTERS = 100;

export interface DailyBytes {
  /** DECISION-4 */
  readonly long?: number | undefined;
  /** DECISION-5 */
  readonly rows?: number | undefined;
  readonly refused?: number | undefined;
}

export class DeliveriesRepository {
  readonly #deliveries: Collection<typeof deliveriesSpec>;
  readonly #longRoom: DailyRoom;
  readonly #rowRoom: DailyRoom;
  readonly #refusedRoom: DailyRoom;
  #asked = new Map<string, Asker[]>();
  #asking = false;

  /** The store has to be opened with `ingestCollections` among its collections. */
  constructor(store: DocumentStore, daily: DailyBytes = {}) {
    this.#deliveries = store.collection(deliveriesSpec);
    this.#longRoom = new DailyRoom(daily.long ?? LONG_BYTES_A_DAY, bootMs);
    this.#rowRoom = new DailyRoom(daily.rows ?? ROW_BYTES_A_DAY, bootMs);
    this.#refusedRoom = new DailyRoom(daily.refused ?? REFUSED_BYTES_A_DAY, bootMs);
  }

  get(id: string): Promise<DecidedDelivery | null> {
    return new Promise((resolve, reject) => {
      const waiting = this.#asked.get(id);
      if (waiting === undefined) this.#asked.set(id, [{ resolve, reject }]);
      else waiting.push({ resolve, reject });
      if (this.#asking) return;
      this.#asking = true;
      setImmediate(() => this.#ask());
    });
  }

  /** DECISION-1: null: a decision stands already. Else what stands from now on (DECISION-4, DECISION-5). */
  async insert(delivery: Delivery, decision: Decision): Promise<DecidedDelivery | null> {
    const taken: Taken = [];
    const { row, ...kept } = this.#keptOf(delivery, decision, taken);
    return (await this.#inserted(row, taken)) ? { ...kept, revision: 0 } : null;
  }

  /** One of which nothing comes, and which nobody was promised to find here: kept while there is room for it (DECISION-5). */
  async insertRefused(delivery: Delivery, decision: Decision): Promise<void> {
    const row = rowOf(delivery, decision, 0);
    const taken: Taken = [];
    if (takes(this.#refusedRoom, roomOf(delivery), bytesOf(row), taken)) await this.#inserted(row, taken);
  }

  /** `outcome`: what has become of the decision, which is carried out. Keeps DECISION-3. */
  async carriedOut({ delivery, decision, revision }: DecidedDelivery, outcome: Decision): Promise<void> {
    const isShortened = decision.shortened === true;
    const isLong = fileBytesOf(outcome) > (isShortened ? 0 : FILE_BYTES_KEPT);
    if (outcome === decision && !isLong) return;
    const told = isShortened ? shortened(outcome) : outcome;
    await this.#deliveries.replaceNewer([rowOf(delivery, isLong ? withoutFiles(told) : told, revision + 1)]);
  }

  /** By our id, the run's, or the host's; the newest where several are meant. */
  async find(id: string, tenants: readonly string[]): Promise<DecidedDelivery | null> {
    if (id === '' || id.length > 1_000) return null;
    const own = await this.#deliveries.get(id);
    const found = [
      ...(own === null ? [] : [own]),
      ...(await this.#deliveries.list({ where: { runId: id }, limit: 10 })),
      ...(await this.#deliveries.list({ where: { deliveryId: id }, limit: 100 })),
    ].filter(({ tenant }) => tenants.includes(tenant));
    const newest = found.toSorted((a, b) => b.receivedAt - a.receivedAt)[0];
    return newest === undefined ? null : decidedOf(newest);
  }

  /** The newest first. */
  async newest(tenants: readonly string[], limit: number): Promise<DecidedDelivery[]> {
    const rows = await this.#deliveries.list({
      where: { tenant: { in: tenants } },
      orderBy: { field: 'receivedAt', direction: 'desc' },
      limit,
    });
    return await decidedOfAll(rows);
  }

  /**
   * Of at most `limit` of a tenant's nothing stays but that they came: a host that sends one again is answered that nothing comes of it,
   * and no run is made anew (P34). What is left goes by its age.
   */
  async forget(tenant: string, limit: number): Promise<{ readonly forgotten: number; readonly more: boolean }> {
    const rows = await this.#deliveries.list({
      where: { tenant },
      orderBy: { field: 'receivedAt', direction: 'asc' },
      limit,
    });
    const kept = (await decidedOfAll(rows)).map(({ delivery, revision }) =>
      rowOf(nobodys(delivery), NOTHING, revision + 1),
    );
    const { stale } = await this.#deliveries.replaceNewer(kept);
    return { forgotten: rows.length - stale.length, more: rows.length > 0 };
  }

  async removeOlderThan(time: number): Promise<void> {
    let removed: number;
    do
      removed = await this.#deliveries.deleteWhere({
        where: { receivedAt: { lt: time } },
        orderBy: { field: 'receivedAt', direction: 'asc' },
        limit: SWEEP_BATCH,
      });
    while (removed === SWEEP_BATCH);
  }

  /** What was taken for it is given back where it is not: a store that takes nothing for an hour is asked many times. */
  async #inserted(row: Row, taken: Taken): Promise<boolean> {
    let isInserted = false;
    try {
      isInserted = (await this.#deliveries.insert(row)) === 'inserted';
    } finally {
      if (!isInserted) for (const giveBack of taken) giveBack();
    }
    return isInserted;
  }

  /** Keeps DECISION-5. */
  #keptOf(
    given: Delivery,
    decision: Decision,
    taken: Taken,
  ): Omit<DecidedDelivery, 'revision'> & { readonly row: Row } {
    const delivery = this.#withoutLong(given, taken);
    const row = rowOf(delivery, decision, 0);
    // A long file goes when the run has it.
    const files = fileBytesOf(decision);
    const bytes = bytesOf(row) - (files > FILE_BYTES_KEPT ? files : 0);
    if (takes(this.#rowRoom, roomOf(delivery), bytes, taken)) return { delivery, decision, row };
    const message = shortMessage(delivery.message, SHORTENED_MESSAGE_CHARACTERS);
    const kept = { delivery: { ...delivery, message, paths: null }, decision: shortened(decision) };
    return { ...kept, row: rowOf(kept.delivery, kept.decision, 0) };
  }

  /** Keeps DECISION-4. */
  #withoutLong(delivery: Delivery, taken: Taken): Delivery {
    const { message, paths } = delivery;
    // A path with what stands around it in JSON; about, for it is not made once more for that.
    const bytes = (paths ?? []).reduce((sum, path) => sum + path.length + 3, message?.length ?? 0);
    if (bytes <= LONG_BYTES || takes(this.#longRoom, roomOf(delivery), bytes, taken)) return delivery;
    return { ...delivery, message: shortMessage(message, SHORT_MESSAGE_CHARACTERS), paths: null };
  }

  #ask(): void {
    const asked = [...this.#asked].slice(0, LOOKUPS_MAX);
    for (const [id] of asked) this.#asked.delete(id);
    void this.#answer(asked);
    this.#asking = this.#asked.size > 0;
    if (this.#asking) setImmediate(() => this.#ask());
  }

  async #answer(asked: readonly (readonly [string, readonly Asker[]])[]): Promise<void> {
    try {
      const rows = await this.#deliveries.getMany(asked.map(([id]) => id));
      const found = new Map((await decidedOfAll(rows)).map((decided) => [decided.delivery.id, decided]));
      for (const [id, askers] of asked) for (const { resolve } of askers) resolve(found.get(id) ?? null);
    } catch (error) {
      for (const [, askers] of asked) for (const { reject } of askers) reject(error);
    }
  }
}

interface Asker {
  resolve(found: DecidedDelivery | null): void;
  reject(error: unknown): void;
}

/** Gives it back, each. */
type Taken = (() => void)[];

function takes(room: DailyRoom, whose: string, bytes: number, taken: Taken): boolean {
  const hasRoom = room.take(whose, bytes);
  if (hasRoom) taken.push(() => room.giveBack(whose, bytes));
  return hasRoom;
}

/** Whose room it takes. */
function roomOf({ tenant, verified }: Pick<Delivery, 'tenant' | 'verified'>): string {
  return verified === 'none' ? `unsigned ${tenant}` : tenant;
}

function bytesOf({ delivery, decision }: Row): number {
  return String(delivery).length + String(decision).length;
}

function shortMessage(message: string | null, characters: number): string | null {
  return message?.slice(0, characters).toWellFormed() ?? null;
}

const NOTHING: Decision = { kind: 'nothing', status: 'Ignored', source: 'none', trace: [] };

/** Of no tenant, so in no list. */
function nobodys({ id, runId, provider, verified, receivedAt, answeredBy }: Delivery): Delivery {
  const names = { event: '', deliveryId: '', repository: '', ref: '', commit: '', cloneUrl: '', tenant: '', key: '' };
  return {
    ...names,
    id,
    runId,
    provider,
    verified,
    receivedAt,
    answeredBy,
    message: null,
    paths: null,
    bodySha256: '',
  };
}

function rowOf(delivery: Delivery, decision: Decision, revision: number): Row {
  const { id, tenant, deliveryId, runId, repository, receivedAt } = delivery;
  return {
    id,
    tenant,
    deliveryId,
    repository,
    receivedAt,
    revision,
    step: 0,
    runId: decision.kind === 'nothing' ? '' : runId,
    delivery: JSON.stringify(delivery),
    decision: JSON.stringify(decision),
  };
}

/** Each may have some 256 KiB: others have a turn in between. */
async function decidedOfAll(rows: readonly Row[]): Promise<DecidedDelivery[]> {
  const decided: DecidedDelivery[] = [];
  let characters = 0;
  for (const row of rows) {
    if (characters > CHARACTERS_A_TURN) {
      await othersTurn();
      characters = 0;
    }
    decided.push(decidedOf(row));
    characters += bytesOf(row);
  }
  return decided;
}

function decidedOf(row: Row): DecidedDelivery {
  return {
    delivery: JSON.parse(String(row.delivery)) as Delivery,
    decision: JSON.parse(String(row.decision)) as Decision,
    revision: row.revision,
  };
}
