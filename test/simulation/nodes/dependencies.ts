/** What every simulated node is given. */
import type { Network } from '../world/network.ts';
import type { Exchange } from '../world/exchange.ts';
import type { World } from '../world/world.ts';
import type { Processes } from './processes.ts';

export interface NodeDependencies {
  readonly world: World;
  readonly network: Network;
  readonly exchange: Exchange;
  readonly processes: Processes;
}
