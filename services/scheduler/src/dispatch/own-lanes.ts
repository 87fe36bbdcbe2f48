/**
 * Runners of single tenants, and the lanes that they pick from (P37): those of their tenant, wherever these stand, found without a look
 * at anybody else's. It owns which sessions each tenant has, and, of tenants that have some, which lanes; a lane's stages and its place
 * among others are its class's.
 *
 *  OWNLANES-1 Of a tenant with sessions here every lane is known. What is of no class any more is forgotten when it is met.
 *  OWNLANES-2 A look at some of them goes on where the last one has stopped: a file may ask for any number of sets of labels.
 */
import { NOBODY } from './fleet-entries.ts';
import type { Lane } from './lane.ts';
import type { ClassLane, ReadyClass } from './ready-class.ts';
import type { Session } from './sessions.ts';

interface Own {
  readonly sessions: Set<Session>;
  readonly lanes: Map<Lane, ReadyClass>;
  /** Where the look at some of them stands. */
  walk: Iterator<readonly [Lane, ReadyClass]>;
}

export class OwnLanes {
  readonly #tenants = new Map<string, Own>();

  /** Those that have sessions here. */
  get tenants(): readonly string[] {
    return [...this.#tenants.keys()];
  }

  has(tenant: string | undefined): boolean {
    return tenant !== undefined && this.#tenants.has(tenant);
  }

  sessionsOf(tenant: string | undefined): Iterable<Session> {
    return this.#tenants.get(tenant ?? NOBODY)?.sessions ?? [];
  }

  /** `all`: looked through where the tenant has no other session. */
  join(session: Session, all: () => Iterable<ClassLane>): void {
    const { tenant } = session;
    if (tenant === undefined || tenant === NOBODY) return;
    let own = this.#tenants.get(tenant);
    if (own === undefined) {
      this.#tenants.set(tenant, (own = { sessions: new Set(), lanes: new Map(), walk: [].values() }));
      for (const { ready, lane } of all()) if (lane.tenant === tenant) own.lanes.set(lane, ready);
    }
    own.sessions.add(session);
  }

  leave(session: Session): void {
    const tenant = session.tenant ?? NOBODY;
    const own = this.#tenants.get(tenant);
    own?.sessions.delete(session);
    if (own?.sessions.size === 0) this.#tenants.delete(tenant);
  }

  added(ready: ReadyClass, lane: Lane): void {
    this.#tenants.get(lane.tenant ?? NOBODY)?.lanes.set(lane, ready);
  }

  /** The next ones, at most so many, each once. */
  *someOf(tenant: string, max: number): Generator<ClassLane> {
    const own = this.#tenants.get(tenant);
    if (own === undefined) return;
    for (let left = Math.min(max, own.lanes.size); left > 0; left -= 1) {
      let next = own.walk.next();
      if (next.done === true) {
        own.walk = own.lanes.entries();
        next = own.walk.next();
      }
      if (next.done === true) return;
      const [lane, ready] = next.value;
      if (ready.has(lane)) yield { ready, lane };
      else own.lanes.delete(lane);
    }
  }

  *of(tenant: string | undefined): Generator<ClassLane> {
    const { lanes } = this.#tenants.get(tenant ?? NOBODY) ?? {};
    for (const [lane, ready] of lanes ?? []) {
      if (ready.has(lane)) yield { ready, lane };
      else lanes?.delete(lane);
    }
  }
}
