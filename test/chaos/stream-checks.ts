/**
 * What a watcher heard over all its connections, against the whole event stream as a new client is shown it: the same events in
 * their order, the same lines in theirs, the same event stream of each stage. How the lines of one stage and the events of another
 * stand to each other is not fixed.
 */
import type { StreamEvent } from '../support/sse.ts';
import { checkNumbers } from './line-checks.ts';
import type { Watched } from './watcher.ts';

/**
 * What is wrong, in words; none where all is well. Where chunks may have gone meanwhile, a watcher may have heard what no replay
 * has: then its lines are looked at by their numbers.
 */
export function checkStream(watched: Watched, replay: readonly StreamEvent[] | null, logsLimited = false): string[] {
  if (watched.state === 'not found') return ['a watcher was answered that there is no such run'];
  if (watched.state !== 'ended')
    return [
      `a watcher never heard the end, after ${watched.reconnects} reconnects and ${watched.events.length} events`,
    ];
  if (replay === null) return ['its event stream could not be read again'];
  const problems: string[] = [];
  const compare = (what: string, keep: (event: StreamEvent) => boolean): void => {
    const difference = firstDifference(watched.events.filter(keep), replay.filter(keep));
    if (difference !== null) problems.push(`${what}, over ${watched.reconnects} reconnects: ${difference}`);
  };
  if (logsLimited) {
    const difference = firstDifference(outcomesOf(watched.events), outcomesOf(replay));
    if (difference !== null) problems.push(`events, over ${watched.reconnects} reconnects: ${difference}`);
    for (const [who, events] of [
      ['a watcher heard', watched.events],
      ['a new client is shown', replay],
    ] as const) {
      const { problem, missing } = checkNumbers(events, true, events === watched.events && watched.reconnects > 0);
      if (problem !== undefined) problems.push(`${who}: ${problem}`);
      for (const { event, data } of events)
        if (event === 'stage_completed' && missing.has(String(data['stage'])) && data['truncated'] !== true)
          problems.push(`${who} the text of ${String(data['stage'])} as whole, and a part of it is missing`);
    }
    return problems;
  }
  compare('events', ({ event }) => event !== 'stage_log');
  compare('lines', ({ event }) => event === 'stage_log');
  for (const stage of new Set(replay.map(({ data }) => data['stage'])))
    compare(`the event stream of ${String(stage)}`, ({ data }) => data['stage'] === stage);
  return problems;
}

/** The events without lines and texts, of which a later client may be shown less. */
function outcomesOf(events: readonly StreamEvent[]): StreamEvent[] {
  return events
    .filter(({ event }) => event !== 'stage_log')
    .map((event) => ({ ...event, data: { ...event.data, logs: undefined, truncated: undefined } }));
}

function firstDifference(heard: readonly StreamEvent[], whole: readonly StreamEvent[]): string | null {
  const length = Math.max(heard.length, whole.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [textOf(heard[index]), textOf(whole[index])];
    if (one !== other)
      return `number ${index + 1} was heard as ${one.slice(0, 300)} and is replayed as ${other.slice(0, 300)}`;
  }
  return null;
}

function textOf(event: StreamEvent | undefined): string {
  return event === undefined ? 'nothing' : `${event.event} ${JSON.stringify(event.data)}`;
}
