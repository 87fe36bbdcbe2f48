/**
 * Who the people behind credentials are, for gates (P26): what their identity provider vouches for, asked of auth and kept for a
 * minute. A name that was taken from somebody means nothing any more after that.
 */
import type { Bus } from '@penstock/bus';
import { Remembered, callAuth, readableTenants, requireUser, type Caller } from '@penstock/identity';
import { SERVICE_TENANT, type Person } from '@penstock/run';

const KEPT_MS = 60_000;
const KEPT_MAX = 10_000;

interface Known {
  readonly names: readonly string[];
  readonly by: string;
  readonly until: number;
}

export class People {
  readonly #bus: Bus;
  readonly #now: () => number;
  readonly #known = new Remembered<Known>(KEPT_MAX);

  constructor(bus: Bus, now: () => number) {
    this.#bus = bus;
    this.#now = now;
  }

  /** Whose decision it would be. Throws `Unauthenticated` for whoever is neither logged in nor has the API key. */
  async personOf(caller: Caller): Promise<Person> {
    if (caller.kind === 'api-key') return { id: 'api-key', by: 'api-key', names: [], tenants: [SERVICE_TENANT] };
    const { id } = requireUser(caller);
    const { names, by } = await this.#lookUp(id);
    const own = caller.writeTenant === null ? [] : [caller.writeTenant];
    return { id: `user/${id}`, by, names, tenants: caller.changeTenants ?? own };
  }

  /** What a reader of runs is known by as an approver; nothing for whoever is no user, or may not read. */
  async namesOf(caller: Caller): Promise<readonly string[]> {
    if (caller.user === undefined || readableTenants(caller).length === 0) return [];
    return (await this.#lookUp(caller.user.id)).names;
  }

  async #lookUp(id: string): Promise<Known> {
    const known = this.#known.get(id);
    if (known !== undefined && known.until > this.#now()) return known;
    const { names, by } = await callAuth(this.#bus, 'names', { id });
    const fresh = { names, by, until: this.#now() + KEPT_MS };
    this.#known.set(id, fresh);
    return fresh;
  }
}
