/**
 * How much the runners of each tenant may send to the broker: so many operations and bytes a second, all of the tenant's together (P37);
 * what they are sent counts as theirs. It owns what each tenant has left. Nobody is refused for it: what is too much comes later, by way of the client's own socket.
 *
 *  FLOW-1 All tenants together have `TENANTS_AT_ONCE` times what one has: where more of them use up theirs, each gets it so much more slowly. Who
 *     does not has what it may have at once, whatever others do.
 */
import { Transform } from 'node:stream';
import { ClientOperations } from './client-operations.ts';

export interface FlowBounds {
  readonly operationsPerSecond: number;
  readonly bytesPerSecond: number;
  /** Of both: what may come at once, in seconds of it. */
  readonly burstSeconds: number;
}

/** Twenty machines that each end ten stages a second, and whose files come as fast as one thread passes them to others besides. */
const TENANT_FLOW: FlowBounds = {
  operationsPerSecond: 1_000,
  bytesPerSecond: 32 * 1024 * 1024,
  burstSeconds: 3,
};

/** One thread leads the bytes of all of them, and serves everybody else. */
const TENANTS_AT_ONCE = 4;
/** Between two counts of those that use up theirs. */
const COUNT_MS = 100;
/** A connection begins with a look at who it is. */
const CONNECTION_OPERATIONS = 50;
/** Those that sent nothing for longest are forgotten first, and have all of it again. */
const TENANTS_MAX = 1_000;

interface Left {
  /** Seconds of the bounds; below 0: of later ones. */
  seconds: number;
  at: number;
}

export class TenantFlow {
  readonly #bounds: FlowBounds;
  readonly #now: () => number;
  readonly #left = new Map<string, Left>();
  /** FLOW-1: of what a tenant may have. */
  #share = 1;
  #countedAt = Number.NEGATIVE_INFINITY;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(bounds: FlowBounds = TENANT_FLOW, now: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#now = now;
  }

  /** Through which the bytes of a new connection go, in order. It is destroyed by what is no protocol. Null: not now. */
  connection(tenant: string): Transform | null {
    if (this.take(tenant, CONNECTION_OPERATIONS, 0) > 0) return null;
    const operations = new ClientOperations();
    let timer: NodeJS.Timeout | undefined;
    return new Transform({
      transform: (bytes: Buffer, _encoding, done) => {
        try {
          const waitMs = this.take(tenant, operations.count(bytes), bytes.length);
          if (waitMs === 0) done(null, bytes);
          else timer = setTimeout(() => done(null, bytes), waitMs);
        } catch (error) {
          done(error as Error);
        }
      },
      destroy: (error, done) => {
        clearTimeout(timer);
        done(error);
      },
    });
  }

  /** The broker sends it to one of the tenant's machines: a short question may have a long answer, and the next ones wait for it. */
  answered(tenant: string, bytes: number): void {
    this.take(tenant, 0, bytes);
  }

  /** How long what is taken has to wait. */
  take(tenant: string, operations: number, bytes: number): number {
    const { operationsPerSecond, bytesPerSecond, burstSeconds } = this.#bounds;
    const now = this.#now();
    const share = this.#shareAt(now);
    const known = this.#left.get(tenant) ?? { seconds: burstSeconds, at: now };
    const seconds = Math.min(burstSeconds, known.seconds + ((now - known.at) / 1_000) * share);
    const left = { seconds: seconds - Math.max(operations / operationsPerSecond, bytes / bytesPerSecond), at: now };
    this.#left.delete(tenant);
    this.#left.set(tenant, left);
    const [longest] = this.#left.keys();
    if (this.#left.size > TENANTS_MAX && longest !== undefined) this.#left.delete(longest);
    return Math.ceil((Math.max(0, -left.seconds) / share) * 1_000);
  }

  #shareAt(now: number): number {
    if (now - this.#countedAt < COUNT_MS) return this.#share;
    this.#countedAt = now;
    const { burstSeconds } = this.#bounds;
    let using = 0;
    for (const { seconds, at } of this.#left.values())
      if (seconds + ((now - at) / 1_000) * this.#share < burstSeconds / 2) using += 1;
    this.#share = Math.min(1, TENANTS_AT_ONCE / Math.max(1, using));
    return this.#share;
  }
}
