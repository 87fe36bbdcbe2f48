/** What every simulated node is given. */
import type { Network } from '../world/network.ts';
import type { Subjects } from '../world/subjects.ts';
import type { World } from '../world/world.ts';
import type { Processes } from './processes.ts';

export interface NodeDependencies {
  readonly world: World;
  readonly network: Network;
  readonly subjects: Subjects;
  readonly processes: Processes;
}
