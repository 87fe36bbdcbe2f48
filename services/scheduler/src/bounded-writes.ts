/**
 * The ledger with a bound on the writes that a scheduler has under way. After an outage every partition has much to write;
 * all of it at once would make each call wait behind the others past its deadline, and be done in vain again and again.
 */
import type { RunsLedger } from '@penstock/store';

/** Enough for a store that answers in milliseconds, few enough for one that takes a second. */
const WRITES_AT_ONCE = 4;

export function withBoundedWrites(ledger: RunsLedger, atOnce = WRITES_AT_ONCE): RunsLedger {
  let running = 0;
  const waiting: (() => void)[] = [];
  // A partition has one write at a time: no more wait here than there are partitions.
  const inTurn = async <T>(write: () => Promise<T>): Promise<T> => {
    if (running < atOnce) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await write();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
  return {
    saveBatch: (documents) => inTurn(() => ledger.saveBatch(documents)),
    saveCounters: (counters) => inTurn(() => ledger.saveCounters(counters)),
    saveCheckpoint: (checkpoint) => inTurn(() => ledger.saveCheckpoint(checkpoint)),
    checkpoint: (partition) => ledger.checkpoint(partition),
    openOf: (partition) => ledger.openOf(partition),
    laterThan: (partition, position) => ledger.laterThan(partition, position),
    getAsOwner: (id) => ledger.getAsOwner(id),
    exists: (ids) => ledger.exists(ids),
    counter: (key, month) => ledger.counter(key, month),
    countersOf: (partition, month) => ledger.countersOf(partition, month),
  };
}
