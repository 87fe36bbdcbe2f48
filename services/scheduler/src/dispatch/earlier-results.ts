/**
 * Results that a runner has kept from its earlier sessions and that are not answered yet: its leases list them (P13). While
 * such a lease lives, their attempts are not lost, although their own session is over.
 */
import type { RunnerLease } from '@penstock/bus';

/** A credit is granted once in a session: it names its attempt. */
interface Granted {
  readonly runner: string;
  readonly session: string;
  readonly credit: number;
}

export class EarlierResults {
  /** By the session whose lease lists them. */
  readonly #listed = new Map<string, ReadonlySet<string>>();

  seen(lease: RunnerLease): void {
    const earlier = lease.attempts.filter(({ session }) => session !== lease.session);
    if (earlier.length === 0) this.#listed.delete(lease.session);
    else this.#listed.set(lease.session, new Set(earlier.map((each) => idOf({ ...each, runner: lease.runner }))));
  }

  gone(session: string): void {
    this.#listed.delete(session);
  }

  has(granted: Granted): boolean {
    if (this.#listed.size === 0) return false;
    const id = idOf(granted);
    return [...this.#listed.values()].some((ids) => ids.has(id));
  }
}

/** By the runner, too: none holds up the loss of what another was given. */
function idOf({ runner, session, credit }: Granted): string {
  return `${runner}/${session}/${credit}`;
}
