/**
 * Where the outside calls into the engine: timers, subscriptions, promises that nobody awaits. An exception that leaves one of
 * them would end the process, and with it the runs of everybody. So each is caught at its border, told with what it belongs
 * to, and counted; who stands behind the border says what the failure costs: a run, a partition, a message, one tick.
 *
 * The table of borders is what `test/bench/borders.test.ts` goes through: it throws from every one.
 */
import type { Log } from './log.ts';

/** Every border, and what a failure there costs. */
export const borders = {
  'scheduler.membership': 'a member that came or went is seen at the next tick',
  'scheduler.runner-lease': 'the renewal of a lease, which comes again',
  'scheduler.fleet': 'what a runner of the fleet may be granted is told again when it renews its credentials',
  'scheduler.released': 'a partition is opened a second later',
  'scheduler.controls': 'what was resumed is granted a second later',
  'scheduler.pull': 'the offer, which its runner makes again',
  'scheduler.tick': 'one tick',
  'scheduler.demand': "one announcement of a scheduler's demand",
  'scheduler.journal-level': 'one measurement',
  'scheduler.committing': 'whether it can commit is said a second later',
  'scheduler.silent-sessions': 'one look',
  'partition.request': 'the request',
  'partition.tick': 'the partition is dropped and opened anew',
  'partition.timer': 'the partition is dropped and opened anew',
  'partition.lease': 'the partition is dropped and opened anew',
  'partition.acknowledged': 'the partition is dropped and opened anew',
  'partition.counted': 'the figures of one commit',
  'partition.show-events': 'who watches the run asks a few seconds later',
  'partition.job-answered': 'the run is quarantined',
  'partition.head-looked-up': 'the request, which its sender repeats',
  'partition.id-looked-up': 'the request, which its sender repeats',
  'partition.ids-looked-up': 'the partition is dropped and opened anew',
  'partition.text-read': 'the partition is dropped and opened anew',
  'partition.run-read': 'the partition is dropped and opened anew',
  'partition.log-ends': 'the partition is dropped and opened anew',
  'partition.projection': 'the partition is dropped and opened anew',
  'partition.projector': 'one round of writing documents, which the next tick makes up for',
  'bus.connection': 'what this listener does about a broken connection, which comes again by its own timer',
  'bus.message': 'the message, for whose answer its sender waits until its deadline; what came with it is handled',
  'runner.schedulers': 'a scheduler that came or went is seen at the next offer',
  'runner.demand': 'one announcement',
  'runner.offers': 'one round of offers',
  'runner.job': 'the grant, which its owner repeats',
  'runner.attempt-gone': 'the workspace is released by the next sweep',
  'runner.attempt-ended': 'the slot takes the next stage without the credit that the result would carry',
  'runner.folders': 'one sweep of the workspaces',
  'runner.lease-renewal': 'one renewal of the lease',
} as const satisfies Readonly<Record<string, string>>;

export type BorderName = keyof typeof borders;

export interface Border {
  readonly log: Pick<Log, 'error'>;
  /** What the callback belongs to: a partition, a run, a session. */
  readonly about?: Readonly<Record<string, unknown>> | undefined;
  /** Limits what the failure costs; it is told by then. */
  readonly failed?: ((error: unknown) => void) | undefined;
}

const failures = new Map<BorderName, number>();
let fault: ((name: BorderName) => void) | undefined;

/** The callback, which throws and rejects no more. */
export function guarded<Args extends unknown[]>(
  name: BorderName,
  border: Border,
  callback: (...args: Args) => unknown,
): (...args: Args) => void {
  return (...args) => {
    try {
      fault?.(name);
      const result = callback(...args);
      if (result instanceof Promise) result.catch((error: unknown) => tell(name, border, error));
    } catch (error) {
      tell(name, border, error);
    }
  };
}

/** How often a callback of this border has failed since the process began. */
export function failuresAt(name: BorderName): number {
  return failures.get(name) ?? 0;
}

/** For tests: called at every border, before its callback. What it throws counts as the callback's. */
export function injectFaults(inject: ((name: BorderName) => void) | undefined): void {
  fault = inject;
}

function tell(name: BorderName, { log, about, failed }: Border, error: unknown): void {
  const count = failuresAt(name) + 1;
  failures.set(name, count);
  log.error(
    { err: error, border: name, failures: count, costs: borders[name], ...about },
    'a callback has failed, which is a fault of Penstock; the process goes on',
  );
  try {
    failed?.(error);
  } catch (second) {
    log.error({ err: second, border: name, ...about }, 'what a failed callback costs could not be limited');
  }
}
