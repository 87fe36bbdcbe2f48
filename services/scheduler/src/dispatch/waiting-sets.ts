/**
 * What waits for which labels, for the figures: a scrape may come at any moment, and must hold nobody up. What is paused is left out of the
 * sets: no further runner helps it.
 */
import type { Lane } from './lane.ts';
import { lanesOf, type ReadyClass } from './ready-class.ts';
import { hasLabels, type Sessions } from './sessions.ts';

export interface WaitingSet {
  readonly labels: readonly string[];
  readonly count: number;
  /** Since when the longest waiting of it does, milliseconds since 1970. */
  readonly since: number | undefined;
  /** Whether a runner for everybody has all of the labels; false also where that is not found out yet. */
  readonly isDeclared: boolean;
}

/** What waits of a key and priority. */
export interface WaitingLane {
  readonly labels: readonly string[];
  readonly key: string;
  readonly count: number;
  /** Since when the first of it does, milliseconds since 1970. */
  readonly since: number | undefined;
  readonly isPaused: boolean;
}

/**
 * Sessions looked at for one answer, a few milliseconds: files may ask for any number of sets. What is left is looked up for the
 * next one, and is taken for what it was.
 */
const LOOKS_MAX = 20_000;

/** `version`: of the sessions and their labels; what was found out of a class holds until it is another. */
export function* waitingSets(
  classes: Iterable<ReadyClass>,
  sessions: Pick<Sessions, 'fewestWith'>,
  version: number,
  isPaused: (ready: ReadyClass, lane: Lane) => boolean,
): Generator<WaitingSet, undefined> {
  let looks = LOOKS_MAX;
  const isDeclared = (ready: ReadyClass): boolean => {
    if (ready.declared?.version === version) return ready.declared.is;
    let is = false;
    for (const session of sessions.fewestWith(ready.labels)) {
      if ((looks -= 1) < 0) return ready.declared?.is ?? false;
      is = session.leased && session.tenant === undefined && hasLabels(session, ready.labels);
      if (is) break;
    }
    ready.declared = { version, is };
    return is;
  };
  for (const ready of classes) {
    let count = 0;
    let since: number | undefined;
    for (const lane of ready.lanes.values()) {
      if (lane.count === 0 || isPaused(ready, lane)) continue;
      count += lane.count;
      since = Math.min(since ?? Infinity, lane.since ?? Infinity);
    }
    if (count === 0) continue;
    const known = since === Infinity ? undefined : since;
    yield { labels: ready.labels, count, since: known, isDeclared: isDeclared(ready) };
  }
}

/** The same one by one, what is paused among it: for who looks at what the keys wait for. */
export function* waitingLanes(
  classes: ReadonlyMap<string, ReadyClass>,
  isPaused: (ready: ReadyClass, lane: Lane) => boolean,
): Generator<WaitingLane> {
  for (const { ready, lane } of lanesOf(classes)) {
    const { key, count, since } = lane;
    if (count > 0) yield { labels: ready.labels, key, count, since, isPaused: isPaused(ready, lane) };
  }
}
