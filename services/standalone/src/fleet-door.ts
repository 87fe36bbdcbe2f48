/**
 * The broker's door for runners of the fleet (P37). It owns the list of who is let in, with the key and the end of each; the broker
 * is told of every change of that list, and has it anew from its configuration when it is started again.
 *
 *  DOOR-1 Who asks is answered when the broker has it. Changes that come while it is told are told together, by one reading.
 *  DOOR-2 Whose time is over is cut off by the next look, `LOOK_MS` later at most, by a clock that no step of the wall clock moves.
 *  DOOR-5 Tenants have so many each, and so many together that the installation's own have room.
 *  DOOR-4 A key is of one runner, the last that came with it: a broker takes no configuration that names one twice.
 *  DOOR-3 A broker that could not be told is told again by the next look, until it has taken it.
 */
import { machineTime } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';
import type { EmbeddedBroker } from './broker.ts';

export interface DoorRunner {
  readonly id: string;
  readonly publicKey: string;
  readonly tokenId: string;
  readonly name: string;
  /** Whose stages alone it is given; absent: everybody's. */
  readonly tenant?: string | undefined;
}

export interface FleetDoorOptions {
  readonly broker: Pick<EmbeddedBroker, 'setRunners'>;
  readonly log: Pick<Log, 'info' | 'error'>;
  /** Milliseconds of the boot clock; default the machine's. */
  readonly now?: (() => number) | undefined;
  /** Default `LOOK_MS`. */
  readonly lookMs?: number | undefined;
  readonly runnersMax?: number | undefined;
}

const LOOK_MS = 5_000;
/** An account each at the broker, which reads 300 in four seconds, and more of them with the square of their number. */
const RUNNERS_MAX = 300;
const RUNNERS_PER_TENANT_MAX = 20;
/** Of all that there may be, those of tenants. */
const TENANTS_SHARE = 2 / 3;

interface Admitted extends DoorRunner {
  until: number;
}

export class FleetDoor {
  readonly #options: FleetDoorOptions;
  readonly #now: () => number;
  readonly #admitted = new Map<string, Admitted>();
  readonly #timer: NodeJS.Timeout;
  /** Whether the broker lacks something of the list. */
  #isStale = false;
  #telling: Promise<void> | null = null;

  constructor(options: FleetDoorOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => machineTime.bootNow());
    this.#timer = setInterval(() => void this.look(), options.lookMs ?? LOOK_MS);
    this.#timer.unref();
  }

  /** False: there are as many as there may be. Rejects where the broker could not be told; it is told again later. */
  async admit(runner: DoorRunner, forMs: number): Promise<boolean> {
    const until = this.#now() + forMs;
    const known = this.#admitted.get(runner.id);
    if (known !== undefined && known.publicKey === runner.publicKey) {
      this.#admitted.set(runner.id, { ...runner, until });
      // DOOR-1, also where the same has asked a moment before.
      await this.#telling?.catch(() => {});
      if (this.#isStale) await this.#tell();
      return true;
    }
    // Who is not let in changes nothing: what the broker has stays in the list, to be cut off when its time is over.
    if (!this.#hasRoomFor(runner)) return false;
    // DOOR-4: it has another token now.
    for (const other of [...this.#admitted.values()])
      if (other.publicKey === runner.publicKey) this.#admitted.delete(other.id);
    this.#admitted.set(runner.id, { ...runner, until });
    this.#isStale = true;
    await this.#tell();
    return true;
  }

  /** Rejects where the broker could not be told; it is told again later. */
  async shut(runners: readonly string[]): Promise<void> {
    for (const id of runners) if (this.#admitted.delete(id)) this.#isStale = true;
    if (this.#isStale) await this.#tell();
  }

  list(): readonly (DoorRunner & { readonly leftMs: number })[] {
    const now = this.#now();
    return [...this.#admitted.values()].map(({ until, ...runner }) => ({
      ...runner,
      leftMs: Math.max(0, until - now),
    }));
  }

  /** DOOR-2, DOOR-3. */
  async look(): Promise<void> {
    const now = this.#now();
    const over = [...this.#admitted.values()].filter(({ until }) => until <= now).map(({ id }) => id);
    if (over.length > 0)
      this.#options.log.info({ runners: over }, 'the time of these runners is over; they are cut off');
    await this.shut(over).catch((error: unknown) =>
      this.#options.log.error({ err: error }, 'the broker could not be told who is in the fleet; tried again'),
    );
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** DOOR-5. Whoever has its key makes place for it. */
  #hasRoomFor({ tenant, publicKey }: DoorRunner): boolean {
    const others = [...this.#admitted.values()].filter((each) => each.publicKey !== publicKey);
    const runnersMax = this.#options.runnersMax ?? RUNNERS_MAX;
    if (others.length >= runnersMax) return false;
    if (tenant === undefined) return true;
    const ofTenants = others.filter((each) => each.tenant !== undefined);
    const own = ofTenants.filter((each) => each.tenant === tenant);
    return own.length < RUNNERS_PER_TENANT_MAX && ofTenants.length < Math.floor(runnersMax * TENANTS_SHARE);
  }

  /** DOOR-1. Resolves when the broker has the list as it is now. */
  async #tell(): Promise<void> {
    // One that is under way may have read the list before this change.
    if (this.#telling !== null) await this.#telling.catch(() => {});
    this.#telling ??= this.#tellOnce();
    await this.#telling;
  }

  async #tellOnce(): Promise<void> {
    try {
      this.#isStale = false;
      await this.#options.broker.setRunners(
        new Map([...this.#admitted.values()].map(({ id, publicKey, tenant }) => [id, { publicKey, tenant }])),
      );
    } catch (error) {
      this.#isStale = true;
      throw error;
    } finally {
      this.#telling = null;
    }
  }
}
