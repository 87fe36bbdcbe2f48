/**
 * The runners that a class of stages could go to, all of its keys together, and their slots: what keys share, and what "nobody takes it"
 * goes by. It owns the count of changes by which a pool that was put together is known to be of now.
 *
 *  POOLS-1 A tenant's own runners are in no pool that is kept: they count for who names the tenant alone.
 */
import type { Least } from '@penstock/pipeline';
import type { Pool } from './key-slots.ts';
import type { OwnLanes } from './own-lanes.ts';
import type { ReadyClass } from './ready-class.ts';
import { canTake, type Session, type Sessions } from './sessions.ts';

export interface Unserved {
  readonly labels: readonly string[];
  readonly least: Least | undefined;
  readonly count: number;
}

export interface PoolsParts {
  readonly sessions: Pick<Sessions, 'fewestWith'>;
  readonly own: Pick<OwnLanes, 'has' | 'sessionsOf'>;
  readonly isDrained: (runner: string) => boolean;
}

export class Pools {
  readonly #parts: PoolsParts;
  #version = 0;
  /** What the largest runners have. */
  #largest = { version: -1, cpu: 0, memoryBytes: 0 };

  constructor(parts: PoolsParts) {
    this.#parts = parts;
  }

  /** Of the sessions, their labels and slots. */
  get version(): number {
    return this.#version;
  }

  /** What was put together until now stands for nothing any more. */
  changed(): void {
    this.#version += 1;
  }

  /** Of the runners that are everybody's, with the tenant's own where one is named. */
  of(ready: ReadyClass, tenant?: string): Pool {
    const { sessions, own } = this.#parts;
    if (ready.pool?.version !== this.#version) {
      const isShared = (session: Session): boolean => session.tenant === undefined;
      const few = this.#isBeyondAll(ready.least) ? [] : [...sessions.fewestWith(ready.labels)].filter(isShared);
      ready.pool = { version: this.#version, of: this.#pooled(ready, few) };
    }
    const shared = ready.pool.of;
    if (!own.has(tenant)) return shared;
    const theirs = this.#pooled(ready, own.sessionsOf(tenant));
    return {
      slots: shared.slots + theirs.slots,
      runners: shared.runners.union(theirs.runners),
      drained: shared.drained + theirs.drained,
    };
  }

  /** What waits of these and no runner here could ever take, as its labels are now: somebody has to be told. */
  *unserved(classes: Iterable<ReadyClass>): Generator<Unserved> {
    for (const ready of classes) {
      const { labels, least, runner, lanes } = ready;
      if (runner !== undefined || isServed(this.of(ready))) continue;
      let count = 0;
      for (const lane of lanes.values())
        if (!this.#parts.own.has(lane.tenant) || !isServed(this.of(ready, lane.tenant))) count += lane.count;
      if (count > 0) yield { labels, least, count };
    }
  }

  /** Files may ask for any number of sizes that no runner has: to know it of each takes no look at all runners. */
  #isBeyondAll(least: Least | undefined): boolean {
    if (least === undefined) return false;
    if (this.#largest.version !== this.#version) {
      let [cpu, memoryBytes] = [0, 0];
      for (const { capacity } of this.#parts.sessions.fewestWith([])) {
        cpu = Math.max(cpu, capacity?.cpu ?? Infinity);
        memoryBytes = Math.max(memoryBytes, capacity?.memoryBytes ?? Infinity);
      }
      this.#largest = { version: this.#version, cpu, memoryBytes };
    }
    return (least.cpu ?? 0) > this.#largest.cpu || (least.memoryBytes ?? 0) > this.#largest.memoryBytes;
  }

  #pooled(ready: ReadyClass, sessions: Iterable<Session>): Pool {
    const runners = new Set<string>();
    let [slots, drained] = [0, 0];
    for (const session of sessions) {
      if (!session.leased || !canTake(session, ready)) continue;
      // It comes back as another session, if at all.
      if (ready.runner === undefined && session.isLeaving) continue;
      if (ready.runner === undefined && this.#parts.isDrained(session.runner)) {
        drained += 1;
        continue;
      }
      runners.add(session.runner);
      slots += session.slots;
    }
    return { slots, runners, drained };
  }
}

/** Whether some runner is there for it, drained or not. */
export function isServed({ runners, drained }: Pool): boolean {
  return runners.size + drained > 0;
}
