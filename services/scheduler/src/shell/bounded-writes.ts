/**
 * The ledger with a bound on the writes that a scheduler has under way. After an outage every partition has much to write;
 * all of it at once would make each call wait behind the others past its deadline, and be done in vain again and again.
 */
import type { RunsLedger } from '@penstock/store';
import PQueue from 'p-queue';

/** Enough for a store that answers in milliseconds, few enough for one that takes a second. */
const WRITES_AT_ONCE = 4;

export function withBoundedWrites(ledger: RunsLedger, atOnce = WRITES_AT_ONCE): RunsLedger {
  // A partition has one write at a time: no more wait here than there are partitions.
  const writes = new PQueue({ concurrency: atOnce });
  return {
    saveBatch: (documents) => writes.add(() => ledger.saveBatch(documents)),
    hooksOf: (tenants) => ledger.hooksOf(tenants),
    hookBacklog: (hook, max) => ledger.hookBacklog(hook, max),
    addHookDeliveries: (deliveries) => writes.add(() => ledger.addHookDeliveries(deliveries)),
    addCaches: (entries) => writes.add(() => ledger.addCaches(entries)),
    saveCounters: (counters) => writes.add(() => ledger.saveCounters(counters)),
    saveSchedules: (schedules) => writes.add(() => ledger.saveSchedules(schedules)),
    saveTombstones: (tombstones) => writes.add(() => ledger.saveTombstones(tombstones)),
    standingOf: (id) => ledger.standingOf(id),
    deletedAmong: (ids) => ledger.deletedAmong(ids),
    schedulesOf: (partition) => ledger.schedulesOf(partition),
    newestSchedule: (partition) => ledger.newestSchedule(partition),
    saveCheckpoint: (checkpoint) => writes.add(() => ledger.saveCheckpoint(checkpoint)),
    checkpoint: (partition) => ledger.checkpoint(partition),
    openOf: (partition) => ledger.openOf(partition),
    laterThan: (partition, position) => ledger.laterThan(partition, position),
    getAsOwner: (id) => ledger.getAsOwner(id),
    exists: (ids) => ledger.exists(ids),
    headOf: (of) => ledger.headOf(of),
    counter: (key, month) => ledger.counter(key, month),
    countersOf: (partition, month) => ledger.countersOf(partition, month),
  };
}
