/**
 * What keys have used, read back at a take-over (P23): the counters of the store, and on top of each what the commits say
 * that it does not stand for yet.
 */
import {
  attemptMs,
  monthCountOf,
  monthEnd,
  monthOf,
  monthStart,
  type RunEvent,
  type Sequence,
  type Version,
} from '@penstock/run';
import type { RunCounter, RunsLedger } from '@penstock/store';
import type { KeyUsage } from '../admission/key-counts.ts';
import { Turns } from './turns.ts';

/** Events that a commit added to a run, as they stand among the run's others. */
export interface ReplayedEvents {
  /** Of the commit. */
  readonly incarnation: number;
  readonly sequence: Sequence;
  /** All events of the run, version 1 first. */
  readonly all: readonly RunEvent[];
  /** The version of the first of the commit's. */
  readonly from: Version;
  readonly count: number;
}

type Position = Pick<RunCounter, 'incarnation' | 'sequence'>;

interface MonthFound {
  runs: number;
  stageMs: number;
  isStored: boolean;
  /** What the stored counter stands for. */
  readonly storedAt: Position;
}

interface KeyFound {
  readonly tenant: string;
  readonly key: string;
  maxConcurrent: number | null;
  /** Of the counter that says it. */
  storedAt: Position;
  readonly months: Map<string, MonthFound>;
}

const NOWHERE: Position = { incarnation: 0, sequence: 0 };

/** `replayed` in the order of the log, read to its end. A counter that is written meanwhile stands for its commits itself. */
export async function loadUsages(
  ledger: Pick<RunsLedger, 'countersOf'>,
  partition: number,
  replayed: readonly ReplayedEvents[],
  now: number,
  turns: Turns = new Turns(),
): Promise<KeyUsage[]> {
  const keys = new Map<string, KeyFound>();
  for (const month of await monthsOf(replayed, now, turns)) {
    for await (const counter of ledger.countersOf(partition, month)) {
      takeCounter(keys, counter);
      await turns.after(1);
    }
  }
  for (const events of replayed) {
    replay(keys, events);
    await turns.after(events.count);
  }
  const usages: KeyUsage[] = [];
  for (const { tenant, key, maxConcurrent, months } of keys.values()) {
    const counted = [...months].map(([month, { runs, stageMs, isStored }]) => ({ month, runs, stageMs, isStored }));
    usages.push({ tenant, key, maxConcurrent, months: counted });
    await turns.after(1);
  }
  return usages;
}

/** This month, and those beside it: the clocks of earlier owners may have been a little different. And what the log is about. */
async function monthsOf(replayed: readonly ReplayedEvents[], now: number, turns: Turns): Promise<Set<string>> {
  const month = monthOf(now);
  const months = new Set([monthOf(monthStart(month) - 1), month, monthOf(monthEnd(month))]);
  for (const { all, from, count } of replayed) {
    for (const { at } of all.slice(from - 1, from - 1 + count)) months.add(monthOf(at));
    await turns.after(count);
  }
  return months;
}

function takeCounter(keys: Map<string, KeyFound>, counter: RunCounter): void {
  const { tenant, key, month, runs, stageMs, maxConcurrent, incarnation, sequence } = counter;
  const found = keyFound(keys, tenant, key);
  found.months.set(month, { runs, stageMs, isStored: true, storedAt: { incarnation, sequence } });
  if (!isBehind(found.storedAt, counter)) return;
  found.maxConcurrent = maxConcurrent;
  found.storedAt = { incarnation, sequence };
}

function replay(keys: Map<string, KeyFound>, { all, from, count, ...position }: ReplayedEvents): void {
  const [created] = all;
  if (created?.type !== 'run_created') return;
  const found = keyFound(keys, created.tenant, created.key);
  for (let index = from - 1; index < from - 1 + count; index++) {
    const event = all[index] as RunEvent;
    const month = monthFound(found, monthOf(event.at));
    if (event.type === 'run_created' && isBehind(found.storedAt, position))
      found.maxConcurrent = event.maxConcurrent ?? null;
    const runOfMonth = monthCountOf(event) ?? 0;
    month.isStored &&= month.runs >= runOfMonth;
    month.runs = Math.max(month.runs, runOfMonth);
    const ms = isBehind(month.storedAt, position) ? attemptMs(all, index) : undefined;
    if (ms === undefined) continue;
    month.stageMs += ms;
    month.isStored = false;
  }
}

function isBehind(a: Position, b: Position): boolean {
  return a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.sequence < b.sequence);
}

function keyFound(keys: Map<string, KeyFound>, tenant: string, key: string): KeyFound {
  let found = keys.get(key);
  if (found === undefined)
    keys.set(key, (found = { tenant, key, maxConcurrent: null, storedAt: NOWHERE, months: new Map() }));
  return found;
}

function monthFound(found: KeyFound, month: string): MonthFound {
  let known = found.months.get(month);
  if (known === undefined)
    found.months.set(month, (known = { runs: 0, stageMs: 0, isStored: false, storedAt: NOWHERE }));
  return known;
}
