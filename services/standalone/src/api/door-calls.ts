/** The broker's door, which the engine keeps, as the API's thread asks for it. */
import type { DoorRunner, FleetDoor } from '../fleet-door.ts';

type Door = Pick<FleetDoor, 'admit' | 'shut' | 'list'>;

export interface DoorCalls {
  admitRunner(runner: DoorRunner, forMs: number): Promise<boolean>;
  shutRunners(runners: readonly string[]): Promise<void>;
  admittedRunners(): Promise<ReturnType<Door['list']>>;
}

/** The side that has the door. */
export function doorCalls(door: () => Door | undefined): DoorCalls {
  const there = (): Door => {
    const found = door();
    if (found === undefined) throw new Error('this server has no fleet');
    return found;
  };
  return {
    admitRunner: async (runner, forMs) => await there().admit(runner, forMs),
    shutRunners: async (runners) => await there().shut(runners),
    admittedRunners: async () => there().list(),
  };
}

/** The side that asks. */
export function doorByCalls(calls: DoorCalls) {
  return {
    admit: (runner: DoorRunner, forMs: number) => calls.admitRunner(runner, forMs),
    shut: (runners: readonly string[]) => calls.shutRunners(runners),
    admitted: () => calls.admittedRunners(),
  };
}
