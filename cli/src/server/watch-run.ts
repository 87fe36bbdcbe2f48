/** Asks for a run again and again until it has ended, and shows each answer. */
import { pauseOrAbort } from '@penstock/async';
import type { Terminal } from '../output/terminal.ts';
import { EXIT, OutputClosed, ServerUnreached, type ServerError } from '../process/errors.ts';
import { TooManyRequests } from './graphql.ts';
import { dieOf } from '../process/interrupts.ts';
import { ReconnectWaits } from './reconnect-waits.ts';
import type { ShownRun } from '../output/shown-run.ts';

/** Well below what a server allows a client in a minute. */
const INTERVAL_MS = 1_000;
/** A run of thousands of stages takes its server some time: most of the time nobody is to ask for it. */
const INTERVAL_SHARE = 4;
/** A server that is updated or moved is back long before. */
const AWAY_MS_MAX = 5 * 60_000;

export interface WatchOptions {
  read(): Promise<ShownRun>;
  show(run: ShownRun, isLast: boolean): void;
  readonly terminal: Terminal;
  readonly id: string;
}

/** Resolves to the exit code: how the run ended. */
export async function watchRun({ read, show, terminal, id }: WatchOptions): Promise<number> {
  const stop = new AbortController();
  let exitBySignal: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (exitBySignal !== undefined) dieOf(signal);
    exitBySignal = signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
    stop.abort();
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  void terminal.out.closed.then(() => stop.abort());
  try {
    const reader = patient(read, terminal, stop.signal);
    while (!stop.signal.aborted) {
      const askedAt = performance.now();
      const run = await reader();
      if (run === undefined || stop.signal.aborted) break;
      show(run, run.finishedAt !== null);
      if (run.finishedAt !== null)
        return run.status === 'SUCCESS' || run.status === 'SKIPPED' ? EXIT.success : EXIT.failure;
      await terminal.out.room();
      await pauseOrAbort(Math.max(INTERVAL_MS, (performance.now() - askedAt) * INTERVAL_SHARE), stop.signal);
    }
    if (terminal.out.isClosed) throw new OutputClosed('the reader has gone');
    terminal.note(`penstock: the run goes on without us; penstock status --watch ${id} shows it again.`);
    return exitBySignal ?? EXIT.interrupted;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

const isAway = (error: unknown): error is ServerError => error instanceof ServerUnreached || isFull(error);

/** It has done nothing of what it was asked, and says when it does again. */
export const isFull = (error: unknown): error is TooManyRequests => error instanceof TooManyRequests;

/** A server that has answered once may be away, or take no more for a while; one that was never there is a wrong address. */
export function patient<Answer>(
  read: () => Promise<Answer>,
  terminal: Pick<Terminal, 'note'>,
  signal: AbortSignal,
  hasAnswered = false,
  isPassing: (error: unknown) => error is ServerError = isAway,
): () => Promise<Answer | undefined> {
  return async () => {
    const waits = new ReconnectWaits();
    const since = performance.now();
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const answer = await read();
        hasAnswered = true;
        return answer;
      } catch (error) {
        if (!isPassing(error) || !hasAnswered || performance.now() - since >= AWAY_MS_MAX) throw error;
        if (failures === 0) terminal.note(`penstock: ${error.message}; trying again.`);
        await pauseOrAbort(waits.nextMs(), signal);
      }
    }
    return undefined;
  };
}
