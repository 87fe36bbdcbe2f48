/** The mutations that stand between a partition and its store, and between it and who asks. */
import type { RunWaits } from '@penstock/run';
import type {
  Checkpoint,
  EncodedRun,
  NewCacheEntry,
  NewHookDelivery,
  RunCounter,
  RunDocument,
  RunsLedger,
  ScheduleDocument,
  Tombstone,
} from '@penstock/store';
import type { Mutation } from '../world/mutations.ts';

/** Writes each checkpoint before the documents that it covers, or before what else stands for the same commits. */
class MisorderedLedger implements RunsLedger {
  readonly #ledger: RunsLedger;
  readonly #late: 'documents' | 'counters' | 'schedules' | 'outbox';
  #documents: readonly (RunDocument | EncodedRun)[] = [];
  #counters: readonly RunCounter[] = [];
  #schedules: readonly ScheduleDocument[] = [];
  #hookDeliveries: readonly NewHookDelivery[] = [];
  readonly counter: RunsLedger['counter'];
  readonly countersOf: RunsLedger['countersOf'];
  readonly headOf: RunsLedger['headOf'];

  constructor(ledger: RunsLedger, late: 'documents' | 'counters' | 'schedules' | 'outbox') {
    this.#ledger = ledger;
    this.#late = late;
    this.counter = (key, month) => ledger.counter(key, month);
    this.headOf = (of) => ledger.headOf(of);
    this.countersOf = (partition, month) => ledger.countersOf(partition, month);
  }

  async saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }> {
    if (this.#late !== 'documents') return this.#ledger.saveBatch(documents);
    this.#documents = documents;
    return { stale: [] };
  }

  async saveSchedules(documents: readonly ScheduleDocument[]): Promise<void> {
    if (this.#late === 'schedules') this.#schedules = documents;
    else await this.#ledger.saveSchedules(documents);
  }

  schedulesOf(partition: number): ReturnType<RunsLedger['schedulesOf']> {
    return this.#ledger.schedulesOf(partition);
  }

  newestSchedule(partition: number): ReturnType<RunsLedger['newestSchedule']> {
    return this.#ledger.newestSchedule(partition);
  }

  standingOf(id: string): ReturnType<RunsLedger['standingOf']> {
    return this.#ledger.standingOf(id);
  }

  saveTombstones(tombstones: readonly Tombstone[]): Promise<void> {
    return this.#ledger.saveTombstones(tombstones);
  }

  deletedAmong(ids: readonly string[]): Promise<Set<string>> {
    return this.#ledger.deletedAmong(ids);
  }

  hooksOf(tenants: readonly string[]): ReturnType<RunsLedger['hooksOf']> {
    return this.#ledger.hooksOf(tenants);
  }

  async addHookDeliveries(deliveries: readonly NewHookDelivery[]): Promise<void> {
    if (this.#late === 'outbox') this.#hookDeliveries = deliveries;
    else await this.#ledger.addHookDeliveries(deliveries);
  }

  hookBacklog(...asked: Parameters<RunsLedger['hookBacklog']>): ReturnType<RunsLedger['hookBacklog']> {
    return this.#ledger.hookBacklog(...asked);
  }

  addCaches(entries: readonly NewCacheEntry[]): Promise<void> {
    return this.#ledger.addCaches(entries);
  }

  async saveCounters(counters: readonly RunCounter[]): Promise<void> {
    if (this.#late === 'counters') this.#counters = counters;
    else await this.#ledger.saveCounters(counters);
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'> {
    const saved = await this.#ledger.saveCheckpoint(checkpoint);
    if (this.#late === 'documents') await this.#ledger.saveBatch(this.#documents);
    else if (this.#late === 'counters') await this.#ledger.saveCounters(this.#counters);
    else if (this.#late === 'outbox') await this.#ledger.addHookDeliveries(this.#hookDeliveries);
    else await this.#ledger.saveSchedules(this.#schedules);
    return saved;
  }

  checkpoint(partition: number): Promise<Checkpoint | null> {
    return this.#ledger.checkpoint(partition);
  }

  openOf(partition: number): ReturnType<RunsLedger['openOf']> {
    return this.#ledger.openOf(partition);
  }

  laterThan(
    partition: number,
    position: { readonly incarnation: number; readonly sequence: number },
  ): ReturnType<RunsLedger['laterThan']> {
    return this.#ledger.laterThan(partition, position);
  }

  getAsOwner(id: string): Promise<RunDocument | null> {
    return this.#ledger.getAsOwner(id);
  }

  exists(ids: readonly string[]): Promise<Set<string>> {
    return this.#ledger.exists(ids);
  }
}

export function mutatedLedger(mutation: Mutation | undefined, ledger: RunsLedger): RunsLedger {
  if (mutation === 'checkpoint-first') return new MisorderedLedger(ledger, 'documents');
  if (mutation === 'outbox-last') return new MisorderedLedger(ledger, 'outbox');
  if (mutation === 'schedules-last') return new MisorderedLedger(ledger, 'schedules');
  return mutation === 'counters-last' ? new MisorderedLedger(ledger, 'counters') : ledger;
}

export function mutatedWaits(mutation: Mutation | undefined, told: RunWaits): RunWaits {
  if (mutation !== 'keeps-reasons-to-itself') return told;
  const stages = told.stages?.filter(([, waits]) => waits.every(({ kind }) => kind !== 'dependency'));
  return { ...told, stages };
}
