/** Rules broken on purpose, to prove that the simulation sees it. Each names the rule that it breaks. */
import type { LiveRun, OpenedPartition, RestoredPartition } from '@penstock/scheduler/testing';
import type { Checkpoint, EncodedRun, RunCounter, RunDocument, RunsLedger } from '@penstock/store';
import { noFaults, type Profile } from './profile.ts';

export const mutations = {
  'no-expected-sequence': 'P1: the broker takes a commit whatever stands before it',
  'acts-before-acknowledgement': 'P1: replies, grants and events go out before the commit is stored',
  'opens-by-force': 'P3: a partition is opened while its owner lives',
  'acts-for-ever': 'P4: an owner answers and sends however old its renewal is',
  'own-timer-declares-loss': 'P5: a scheduler declares a session lost by its own timer',
  'checkpoint-first': 'P6: the projector writes the checkpoint before the documents',
  'never-owned-believed': 'P7: every owner takes itself for the first of its partition, and asks the store about no id',
  'late-no-responders-frees': 'P12: "no responders" to a repeated grant frees it',
  'stops-forgotten': 'P14: a runner takes a grant that comes after its stop',
  'guard-counts-from-the-line': 'P15: the guard counts from when the renewal was answered',
  'no-guard': 'P15: nobody ends the processes of a runner that cannot renew',
  'month-forgotten': 'P23: a take-over does not read how many runs keys have had in a month',
  'places-forgotten': 'P23: a take-over does not read how many runs of a key may go on at once',
  'held-left-aside': 'P23: a take-over leaves held runs aside',
  'counters-last': 'P23: the projector writes the counters behind the checkpoint',
} as const;

export type Mutation = keyof typeof mutations;

export function isMutation(name: string): name is Mutation {
  return Object.hasOwn(mutations, name);
}

/** Writes each checkpoint before the documents that it covers, or before the counters. */
class MisorderedLedger implements RunsLedger {
  readonly #ledger: RunsLedger;
  readonly #late: 'documents' | 'counters';
  #documents: readonly (RunDocument | EncodedRun)[] = [];
  #counters: readonly RunCounter[] = [];
  readonly counter: RunsLedger['counter'];
  readonly countersOf: RunsLedger['countersOf'];

  constructor(ledger: RunsLedger, late: 'documents' | 'counters') {
    this.#ledger = ledger;
    this.#late = late;
    this.counter = (key, month) => ledger.counter(key, month);
    this.countersOf = (partition, month) => ledger.countersOf(partition, month);
  }

  async saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }> {
    if (this.#late !== 'documents') return this.#ledger.saveBatch(documents);
    this.#documents = documents;
    return { stale: [] };
  }

  async saveCounters(counters: readonly RunCounter[]): Promise<void> {
    if (this.#late === 'counters') this.#counters = counters;
    else await this.#ledger.saveCounters(counters);
  }

  async saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'> {
    const saved = await this.#ledger.saveCheckpoint(checkpoint);
    await (this.#late === 'documents'
      ? this.#ledger.saveBatch(this.#documents)
      : this.#ledger.saveCounters(this.#counters));
    return saved;
  }

  checkpoint(partition: number): Promise<Checkpoint | null> {
    return this.#ledger.checkpoint(partition);
  }

  openOf(partition: number): AsyncIterable<RunDocument> {
    return this.#ledger.openOf(partition);
  }

  laterThan(
    partition: number,
    position: { readonly incarnation: number; readonly sequence: number },
  ): AsyncIterable<RunDocument> {
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
  return mutation === 'counters-last' ? new MisorderedLedger(ledger, 'counters') : ledger;
}

/** What a take-over has read, as the mutation would have it. */
export function mutatedRestore(
  mutation: Mutation | undefined,
  opened: OpenedPartition,
  { runs, usages }: { readonly runs: readonly LiveRun[]; readonly usages: NonNullable<RestoredPartition['usages']> },
): RestoredPartition {
  return {
    sequence: opened.sequence,
    commitNumber: opened.commitNumber,
    neverOwned: opened.neverOwned || mutation === 'never-owned-believed',
    runs: mutation === 'held-left-aside' ? runs.filter(({ state }) => !state.held) : runs,
    usages: usages.map((usage) => ({
      ...usage,
      ...(mutation === 'month-forgotten' ? { months: usage.months.map((month) => ({ ...month, runs: 0 })) } : {}),
      ...(mutation === 'places-forgotten' ? { maxConcurrent: null } : {}),
    })),
  };
}

/** Worlds in which a rule matters more than in most: what makes its breaking show within a few of them. */
export const mutationProfiles: { readonly [mutation in Mutation]?: Partial<Profile> } = {
  'acts-for-ever': {
    schedulers: 3,
    runs: 12,
    illMs: 50_000,
    latencyMs: 40,
    faults: { ...noFaults, schedulerFreeze: 20 },
  },
  'late-no-responders-frees': { slow: 0.15, slowMs: 3_000 },
  'stops-forgotten': { cancels: 1, slow: 0.25, slowMs: 2_000, lost: 0.1 },
  'guard-counts-from-the-line': {
    schedulers: 1,
    runners: 3,
    runs: 12,
    leaseMs: 15_000,
    illMs: 50_000,
    stageMs: 20_000,
    slow: 0,
    latencyMs: 250,
    faults: { ...noFaults, runnerFreeze: 12, runnerCut: 20 },
  },
  'no-guard': { runners: 3, stageMs: 8_000 },
};
