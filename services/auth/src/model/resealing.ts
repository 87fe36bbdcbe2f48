/**
 * Seals secrets anew that are kept under an older master key, so that it can be taken away. Several processes may do it at
 * once, and a secret that is set or deleted meanwhile stays so: a row sealed anew is written over the version that was read, and no other.
 */
import type { Collection, DocumentStore } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import type { MasterKeys } from './master-keys.ts';
import { signingKeysSpec, stageSecretsSpec } from './collections.ts';

export interface ResealingOptions {
  readonly store: DocumentStore;
  readonly keys: MasterKeys;
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Default 10 minutes: another process may still seal under the older key while they are started one by one. */
  readonly everyMs?: number | undefined;
}

export interface Resealing {
  /** Of those under other keys: how many were sealed anew, and how many no key of this server opens. */
  round(): Promise<{ readonly resealed: number; readonly unreadable: number }>;
  /** Has a round made now, where none is under way. */
  begin(): void;
  close(): void;
}

const EVERY_MS = 10 * 60_000;
const BATCH = 100;

export function startResealing({ store, keys, log, everyMs = EVERY_MS }: ResealingOptions): Resealing {
  let told = '';
  let underWay = false;

  const reseal = async (
    sealedRows: Collection<typeof stageSecretsSpec>,
    where: { readonly gt: string } | { readonly lt: string },
  ): Promise<[number, number]> => {
    let [resealed, unreadable] = [0, 0];
    let after: { readonly id: string; readonly value: string } | undefined;
    for (;;) {
      const rows = await sealedRows.list({
        where: { keyId: where },
        orderBy: { field: 'keyId', direction: 'asc' },
        limit: BATCH,
        after,
      });
      for (const row of rows) {
        const value = await keys.open(row.id, String(row.sealed));
        if (value === null) {
          unreadable += 1;
          continue;
        }
        const anew = { ...row, ...(await keys.seal(row.id, value)), revision: row.revision + 1 };
        if (await sealedRows.replaceStanding(anew)) resealed += 1;
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < BATCH) return [resealed, unreadable];
      after = { id: last.id, value: last.keyId };
    }
  };

  const round = async (): Promise<{ resealed: number; unreadable: number }> => {
    const { currentId } = keys;
    if (currentId === undefined) return { resealed: 0, unreadable: 0 };
    const counts = { resealed: 0, unreadable: 0 };
    for (const where of [{ lt: currentId }, { gt: currentId }])
      for (const [resealed, unreadable] of [
        await reseal(store.collection(stageSecretsSpec), where),
        // What is looked at of a row is alike in both.
        await reseal(store.collection(signingKeysSpec) as unknown as Collection<typeof stageSecretsSpec>, where),
      ]) {
        counts.resealed += resealed;
        counts.unreadable += unreadable;
      }
    const sign = JSON.stringify(counts);
    if (counts.resealed > 0)
      log.info(
        counts,
        "secrets were sealed anew under the first key of SERVICE_MASTER_KEY; 'penstock admin rotate-key' says whether the others may go",
      );
    if (counts.unreadable > 0 && sign !== told)
      log.warn(
        counts,
        'secrets are kept under a key that is not among those of SERVICE_MASTER_KEY: no stage gets them',
      );
    told = sign;
    return counts;
  };

  const tried = async (): Promise<void> => {
    if (underWay) return;
    underWay = true;
    try {
      await round();
    } catch (error) {
      log.warn({ err: error }, 'secrets could not be sealed anew; later');
    } finally {
      underWay = false;
    }
  };
  const begin = (): void => void tried();
  const timer = setInterval(begin, everyMs);
  timer.unref();
  begin();
  return { round, begin, close: () => clearInterval(timer) };
}
