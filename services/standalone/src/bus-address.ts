/** How a thread of this process reaches the broker. Data only: it crosses from one thread to another. */
import type { connectBus } from '@penstock/bus';

export type BusAddress = Pick<Parameters<typeof connectBus>[0], 'servers' | 'user' | 'pass' | 'answersItself'>;
