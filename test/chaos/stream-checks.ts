/**
 * What a watcher heard over all its connections, against the whole event stream as a new client is shown it: the same events in
 * their order, the same lines in theirs, the same event stream of each stage. How the lines of one stage and the events of another
 * stand to each other is not fixed.
 */
import type { StreamEvent } from '../support/sse.ts';
import type { Watched } from './watcher.ts';

/** What is wrong, in words; none where all is well. */
export function checkStream(watched: Watched, replay: readonly StreamEvent[] | null): string[] {
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
  compare('events', ({ event }) => event !== 'stage_log');
  compare('lines', ({ event }) => event === 'stage_log');
  for (const stage of new Set(replay.map(({ data }) => data['stage'])))
    compare(`the event stream of ${String(stage)}`, ({ data }) => data['stage'] === stage);
  return problems;
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
