import type { Bus, BusLog } from './bus.ts';

export interface ConnectOptions {
  readonly servers: string | readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
  readonly token?: string | undefined;
  /** Shown by the broker, e.g. `scheduler-7`. */
  readonly name: string;
  /** Where answers arrive; broker permissions bind it. Default `_INBOX`. */
  readonly inboxPrefix?: string | undefined;
  readonly log?: BusLog | undefined;
  /** How long the first connection is tried. Default 10,000; afterwards it reconnects without end. */
  readonly connectTimeoutMs?: number | undefined;
  /** A broker that is silent for three of these is left. Default 2,000. */
  readonly pingIntervalMs?: number | undefined;
}

/** Throws `BrokerAway` (nobody there in time, or wrong credentials) or `BrokerTooOld` (below 2.14). */
export declare function connectBus(options: ConnectOptions): Promise<Bus>;
