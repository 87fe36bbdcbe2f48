/**
 * The log of a process: what it tells there is traced, and an error in it is a fault of the code, for which the world ends. Of the
 * errors that a world's own faults make a healthy process tell, none is.
 */
import { BrokerAway, NoResponders, RequestTimeout } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import { InjectedFault, SimOutage } from './errors.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

const DROPPED = 'the partition is dropped after a fault';
/** What is told, by how it begins, and the rare branch that it marks. */
const MARKS: Readonly<Record<string, string>> = {
  'the store did not take run documents': 'projection failed',
  'the partition is not handed over yet': 'hand-over failed',
  'the membership has run out': 'membership lost',
  'the partition could not be opened': 'opening failed',
  'this run cannot be restored': 'run could not be restored',
  [DROPPED]: 'partition dropped after a fault',
  'runs wait outside of memory': 'runs wait outside of memory',
  'the log of a lost attempt could not be closed': 'log end not stored at once',
};

/** `isExcused`: whether an error that is none of the world's faults by its class may be told all the same. */
export function simLog(world: World, node: SimNode, isExcused: (error: unknown, message: string) => boolean): Log {
  const { life } = node;
  const trace = (fields: Record<string, unknown>, message: string): void => {
    world.trace(() => `${node.name}: ${message} ${describe(fields)}`);
    const mark = Object.keys(MARKS).find((beginning) => message.startsWith(beginning));
    if (mark !== undefined) world.mark(MARKS[mark] ?? '');
  };
  return {
    debug: () => {},
    info: (fields, message) => {
      trace(fields, message);
      if (typeof fields['runs'] === 'number' && fields['runs'] > 0) world.mark('take-over with runs');
      if (typeof fields['parked'] === 'number' && fields['parked'] > 0) world.mark('take-over with parked runs');
    },
    warn: trace,
    error: (fields, message) => {
      trace(fields, message);
      if (!node.alive || node.life !== life) return;
      const { err } = fields;
      const isDropped = err === undefined && message.startsWith(DROPPED) && world.profile.callbackThrows > 0;
      if (isDropped || isWorldFault(err) || isExcused(err, message)) return;
      world.fail(err instanceof Error ? err : new Error(message));
    },
  };
}

function isWorldFault(error: unknown): boolean {
  return (
    error instanceof SimOutage ||
    error instanceof InjectedFault ||
    error instanceof BrokerAway ||
    error instanceof NoResponders ||
    error instanceof RequestTimeout
  );
}

function describe(fields: Record<string, unknown>): string {
  // Failures are counted for the process that simulates, whichever worlds it has lived.
  const { failures: _failures, ...shown } = fields;
  return JSON.stringify(shown, (_key, value: unknown) => (value instanceof Error ? value.message : value));
}
