/**
 * Waiting for the end of a run. It owns one subscription while it waits. Subscribed before the run is created, it misses
 * no event; on a new owner, a reconnection and every 15 s it asks, so that a lost last event is not waited for (P20).
 */
import { type Bus, type CommittedEvents, subjects, WATCH_ASK_MS } from '@penstock/bus';
import { within } from '@penstock/async';
import { endsRun, isEnded, type RunId } from '@penstock/run';
import type { Owners } from './owners.ts';
import type { RunReads } from './run-reads.ts';

/** When a broken connection is back, thousands may wait: they ask within this time of each other. */
const ASK_SPREAD_MS = 500;

export interface RunEndWait {
  /** Resolves at the end, at `untilMs` from now, or when aborted. Never rejects. */
  until(untilMs: number, signal: AbortSignal): Promise<'ended' | 'not ended'>;
  /** Has to be called in any case. */
  stop(): void;
}

export interface RunEndSources {
  readonly bus: Bus;
  readonly owners: Owners;
  readonly reads: RunReads;
}

export function waitForRunEnd(sources: RunEndSources, runId: RunId, tenant: string): RunEndWait {
  const partition = sources.owners.partitionOf(runId);
  const ended = Promise.withResolvers<'ended'>();
  let waiting = false;
  let stopped = false;

  const subscription = sources.bus.subscribe<CommittedEvents>(subjects.events(runId), ({ epoch, events }) => {
    if (sources.owners.accepts(partition, epoch) && events.some(endsRun)) ended.resolve('ended');
  });
  const ask = async (): Promise<void> => {
    if (!waiting || stopped) return;
    // Asked from timers: what fails, whatever it is, is asked again.
    const hasEnded = await sources.reads
      .view(runId, [tenant])
      .then((view) => view !== null && isEnded(view.status))
      .catch(() => false);
    if (hasEnded) ended.resolve('ended');
  };
  const spread = new Set<NodeJS.Timeout>();
  const stopListening = sources.owners.onAskAgain(partition, () => {
    const timer = setTimeout(() => {
      spread.delete(timer);
      void ask();
    }, Math.random() * ASK_SPREAD_MS);
    spread.add(timer);
  });
  const timer = setInterval(() => void ask(), WATCH_ASK_MS);

  return {
    async until(untilMs, signal) {
      waiting = true;
      return within(untilMs, ended.promise, () => 'not ended' as const, signal);
    },
    stop() {
      stopped = true;
      clearInterval(timer);
      for (const each of spread) clearTimeout(each);
      stopListening();
      subscription.stop();
    },
  };
}
