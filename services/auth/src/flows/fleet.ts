/**
 * Runners of a fleet (P37): a token is traded for an hour at the broker, under the key that the runner has made. It owns no list:
 * the broker's door knows who is let in, the store which tokens live.
 *
 *  FLEET-1 Before a runner is let in, what it may be granted stands in the bucket of the fleet, for the moments that takes where it is not in yet;
 *     without that owners grant it nothing.
 *  FLEET-2 Whose token is revoked or over is cut off: at once by who revokes it, and by a look every `LOOK_MS` whatever was missed.
 *  FLEET-4 A tenant brings so many machines an hour and no more, and none while its user is shut out. What is refused leaves nothing
 *     behind.
 *  FLEET-3 A token that is revoked while a runner attaches by it lets nobody in: it is looked up again once the runner is in.
 */
import { FLEET_BUCKET, fleetRunnerId, isPublicKey, putExpiring, type Bus, type FleetEntry } from '@penstock/bus';
import { BadUserInput, NotFound, Unauthenticated, Unavailable } from '@penstock/errors';
import {
  isRunnerToken,
  personalTokenHash,
  signFleetTicket,
  type AttachAnswer,
  type RunnerTokenInfo,
} from '@penstock/identity';
import { printable } from '@penstock/pipeline';
import type { Log } from '@penstock/telemetry/log';
import { AttachRate } from '../model/attach-rate.ts';
import type { RunnerTokenRow, RunnerTokens } from '../model/runner-tokens.ts';

/** Who keeps the broker's door. */
export interface FleetDoor {
  /**
   * Lets the runner in, or goes on letting it in, for so long. False: there are too many, of its tenant or at all. Throws where the broker could not be told.
   */
  admit(runner: AdmittedRunner, forMs: number): Promise<boolean>;
  /** Cuts these off; nothing happens to others. Resolves when they are. */
  shut(runners: readonly string[]): Promise<void>;
  admitted(): Promise<readonly (AdmittedRunner & { readonly leftMs: number })[]>;
}

export interface FleetGrant {
  /** Whose stages alone it is given; absent: everybody's. */
  readonly tenant?: string | undefined;
}

interface AdmittedRunner extends FleetGrant {
  readonly id: string;
  readonly publicKey: string;
  readonly tokenId: string;
  readonly name: string;
}

export interface FleetOptions {
  readonly bus: Bus;
  readonly tokens: RunnerTokens;
  /** Whether the tenant's user is shut out. */
  readonly isShut: (tenant: string) => Promise<boolean>;
  /** Undefined: this server's broker is not its own. */
  readonly door: FleetDoor | undefined;
  readonly jwtSecret: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly now: () => number;
  /** Default `LOOK_MS`. */
  readonly lookMs?: number | undefined;
}

const ADMITTED_MS = 60 * 60_000;
/** For the door to be told. */
const ADMITTING_MS = 60_000;
const LOOK_MS = 20_000;
/** A grant under way when its runner is shut out is a matter of moments. */
const REVOKED_MS = 60_000;
const NAME_LENGTH_MAX = 100;
const NO_FLEET =
  'This server takes no runners by tokens: its broker is not its own. Name them when the broker is configured (npm run broker-config).';

const TOO_MANY =
  "This server has as many runners as it takes, of this token's owner or at all; one that ends makes room, within an hour.";

export class Fleet {
  readonly #options: FleetOptions;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #rate: AttachRate;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#rate = new AttachRate(options.now);
    if (options.door === undefined) return;
    this.#timer = setInterval(() => this.lookSoon(), options.lookMs ?? LOOK_MS);
    this.#timer.unref();
  }

  /** Throws `Unavailable` where there is no fleet. */
  get door(): FleetDoor {
    const { door } = this.#options;
    if (door === undefined) throw new Unavailable(NO_FLEET);
    return door;
  }

  /** Throws `Unauthenticated`, `BadUserInput`, `Unavailable`. Attaching again goes on where the last one ends. */
  async attach(token: string, publicKey: string, name: string): Promise<AttachAnswer> {
    const { bus, tokens, jwtSecret, log, now } = this.#options;
    const { door } = this;
    const found = isRunnerToken(token) ? await tokens.livingByHash(personalTokenHash(token)) : null;
    if (found === null) throw refused();
    if (!isPublicKey(publicKey))
      throw new BadUserInput("The field 'public_key' is no public key of the broker's kind.", { field: 'public_key' });
    const id = fleetRunnerId(found.id, publicKey);
    const forMs = Math.min(ADMITTED_MS, (found.expiresAt ?? Infinity) - now());
    if (forMs < 1_000) throw refused();
    const { labels, untrusted } = found;
    const whose = found.tenant === null ? {} : { tenant: found.tenant };
    const isIn = (await door.admitted()).some((known) => known.id === id);
    if (found.tenant !== null) await this.#checkTenant(found.tenant, isIn);
    const entry: FleetEntry = { labels, untrusted, ...whose };
    const grantFor = (ms: number): Promise<void> => putExpiring(bus, FLEET_BUCKET, id, entry, Math.ceil(ms));
    await grantFor(isIn ? forMs : Math.min(forMs, ADMITTING_MS));
    const runner = { id, publicKey, tokenId: found.id, name: shortened(name), ...whose };
    if (!(await door.admit(runner, forMs))) throw new Unavailable(TOO_MANY);
    if (!isIn) await grantFor(forMs);
    if (!(await tokens.livingAmong([found.id])).has(found.id) || (await this.#isShut(found))) {
      await this.#cutOff([id]);
      throw refused();
    }
    log.info({ runner: id, name: runner.name, tokenId: found.id }, 'a runner of the fleet is let in');
    return {
      runner: id,
      labels,
      untrusted,
      ...whose,
      expires_in: Math.floor(forMs / 1_000),
      ticket: signFleetTicket(jwtSecret, { runner: id, ...whose }, now() + forMs),
    };
  }

  /** Whose stages a runner that is let in is given; null: it is not let in. Throws where that cannot be told. */
  async grantOf(runner: string): Promise<FleetGrant | null> {
    const admitted = (await this.#options.door?.admitted()) ?? [];
    return admitted.find(({ id }) => id === runner) ?? null;
  }

  /** Undefined: of everybody. */
  async list(tenant?: string): Promise<RunnerTokenInfo[]> {
    const { tokens, now } = this.#options;
    const [rows, admitted] = await Promise.all([tokens.list(tenant), this.door.admitted()]);
    const byToken = Map.groupBy(admitted, ({ tokenId }) => tokenId);
    return rows.map(({ createdAt, expiresAt, ...row }) => ({
      ...row,
      createdAt: new Date(createdAt).toISOString(),
      expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
      runners: (byToken.get(row.id) ?? []).map(({ id, name, leftMs }) => ({
        id,
        name,
        admittedUntil: new Date(now() + leftMs).toISOString(),
      })),
    }));
  }

  /** Resolves when its runners are cut off. Throws `NotFound`, also where a tenant is named and it is another's. */
  async revoke(tokenId: string, tenant?: string): Promise<void> {
    const { door } = this;
    await this.#options.tokens.revoke(tokenId, tenant);
    await this.#cutOff((await door.admitted()).filter((each) => each.tokenId === tokenId).map(({ id }) => id));
  }

  /** All of a tenant's; how many there were. Its runners are cut off. */
  async revokeAll(tenant: string): Promise<number> {
    const { tokens, door } = this.#options;
    let count = 0;
    for (let rows = await tokens.list(tenant); rows.length > 0; rows = await tokens.list(tenant)) {
      // One that somebody else has revoked meanwhile is gone as well.
      for (const { id } of rows) await tokens.revoke(id, tenant).catch(ignoreMissing);
      count += rows.length;
    }
    if (door !== undefined)
      await this.#cutOff((await door.admitted()).filter((each) => each.tenant === tenant).map(({ id }) => id));
    return count;
  }

  /** Without waiting for it; what fails is done by the next look. */
  lookSoon(): void {
    if (this.#options.door === undefined) return;
    this.look().catch((error: unknown) =>
      this.#options.log.warn({ err: error }, 'the tokens of the fleet could not be looked up; later'),
    );
  }

  /** FLEET-2. */
  async look(): Promise<void> {
    const { tokens, log } = this.#options;
    const admitted = await this.door.admitted();
    const living = await tokens.livingAmong([...new Set(admitted.map(({ tokenId }) => tokenId))]);
    const tenants = new Set(admitted.flatMap(({ tenant }) => tenant ?? []));
    const shut = new Set<string>();
    for (const tenant of tenants) if (await this.#options.isShut(tenant)) shut.add(tenant);
    const over = admitted
      .filter(({ tokenId, tenant }) => !living.has(tokenId) || (tenant !== undefined && shut.has(tenant)))
      .map(({ id }) => id);
    if (over.length === 0) return;
    log.info({ runners: over }, 'the tokens of these runners are revoked or over; they are cut off');
    await this.#cutOff(over);
  }

  /** FLEET-4. Throws `Unauthenticated`, `Unavailable`. */
  async #checkTenant(tenant: string, isIn: boolean): Promise<void> {
    if (await this.#options.isShut(tenant)) throw refused();
    if (!isIn && !this.#rate.take(tenant)) throw new Unavailable(TOO_MANY);
  }

  async #isShut({ tenant }: Pick<RunnerTokenRow, 'tenant'>): Promise<boolean> {
    return tenant !== null && (await this.#options.isShut(tenant));
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Nothing is granted to it before it is cut off, and not while that is under way. */
  async #cutOff(runners: readonly string[]): Promise<void> {
    if (runners.length === 0) return;
    const entry: FleetEntry = { labels: [], untrusted: false, revoked: true };
    const told = await Promise.allSettled(
      runners.map((id) => putExpiring(this.#options.bus, FLEET_BUCKET, id, entry, REVOKED_MS)),
    );
    // The door counts, whatever became of that.
    await this.door.shut(runners);
    const failed = told.find(({ status }) => status === 'rejected');
    if (failed !== undefined)
      this.#options.log.warn(
        { err: (failed as PromiseRejectedResult).reason },
        'an entry of the fleet stays for its hour',
      );
  }
}

/** The same for whatever is wrong with a token. */
function refused(): Unauthenticated {
  return new Unauthenticated(
    'This runner token is not known here: it was revoked, has expired, or is of another server.',
  );
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof NotFound)) throw error;
}

/** It is shown to people, in lists and in a terminal. */
function shortened(name: string): string {
  return printable([...name.slice(0, 2 * NAME_LENGTH_MAX)].slice(0, NAME_LENGTH_MAX).join(''));
}
