/** Which schedulers there are (the bucket `members`), and which of them have stages waiting that this runner could take. */
import {
  buckets,
  subjects,
  type BusSubscription,
  type Demand,
  type LeaseWatch,
  type Membership,
  type RunnerLease,
} from '@penstock/bus';
import type { Least } from '@penstock/pipeline';
import { guarded, type Border } from '@penstock/telemetry/borders';
import type { SessionWorld } from './session-world.ts';

/** Demand is announced every second while there is some; two lost messages are no end of it. */
const DEMAND_MS = 3_000;

export interface SchedulersListener {
  /** A scheduler came or went, or announced demand that this runner's labels meet. */
  changed(): void;
  gone(scheduler: string): void;
}

export class Schedulers {
  readonly #members = new Set<string>();
  readonly #demandAt = new Map<string, number>();
  readonly #ports: Pick<SessionWorld, 'time'>;
  readonly #watch: Pick<LeaseWatch, 'stop'>;
  readonly #demand: BusSubscription;

  constructor(
    ports: Pick<SessionWorld, 'bus' | 'time' | 'watchLeases'>,
    { labels, capacity, tenant }: Pick<RunnerLease, 'labels' | 'capacity'> & { readonly tenant?: string | undefined },
    border: Border,
    listener: SchedulersListener,
  ) {
    const own = new Set(labels);
    const hasRoom = ({ cpu = 0, memoryBytes = 0 }: Least): boolean =>
      capacity === undefined || (cpu <= capacity.cpu && memoryBytes <= capacity.memoryBytes);
    this.#ports = ports;
    this.#watch = ports.watchLeases<Membership>(
      buckets.members,
      guarded('runner.schedulers', border, (event) => {
        if (event.kind === 'put') {
          if (this.#members.has(event.key)) return;
          this.#members.add(event.key);
        } else {
          this.#demandAt.delete(event.key);
          if (!this.#members.delete(event.key)) return;
          listener.gone(event.key);
        }
        listener.changed();
      }),
    );
    this.#demand = ports.bus.subscribe<Demand>(
      tenant === undefined ? subjects.demand('*') : subjects.demandOfTenant('*', tenant),
      guarded('runner.demand', border, (demand) => {
        if (
          !demand.waiting.some(
            ({ labels: wanted, least }) => hasRoom(least ?? {}) && wanted.every((label) => own.has(label)),
          )
        )
          return;
        this.#demandAt.set(demand.scheduler, ports.time.bootNow());
        listener.changed();
      }),
    );
  }

  get members(): ReadonlySet<string> {
    return this.#members;
  }

  isAsking(scheduler: string): boolean {
    const askedAt = this.#demandAt.get(scheduler) ?? Number.NEGATIVE_INFINITY;
    return this.#ports.time.bootNow() - askedAt < DEMAND_MS;
  }

  stop(): void {
    this.#watch.stop();
    this.#demand.stop();
  }
}
