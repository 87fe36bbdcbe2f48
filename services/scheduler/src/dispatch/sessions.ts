/**
 * The runner sessions that a scheduler knows, with their labels and open credits. Owns them; who is served with what is
 * `Dispatch`'s.
 */
import { CREDIT_SPENT_WITHIN_MS, type RunnerLease } from '@penstock/bus';
import type { Least } from '@penstock/pipeline';
import { invariant } from '../run/invariant.ts';

/** Open credits of one session; more would be a runner gone mad. */
const CREDITS_PER_SESSION_MAX = 4096;
/** Of a tenant's own runner: open ones, and those that are remembered. Its machine is a stranger's, and has few slots. */
const OWN_CREDITS_MAX = 256;
const OWN_SPENT_MAX = 4096;
/** Of one runner, that may be without a lease: one that starts again and again has some whose leases are not over yet. */
const SESSIONS_PER_RUNNER_MAX = 8;

export interface Session {
  readonly runner: string;
  readonly session: string;
  /** Whose stages alone it gets; undefined: everybody's. */
  tenant: string | undefined;
  labels: ReadonlySet<string>;
  /** As its lease says. */
  slots: number;
  capacity: RunnerLease['capacity'];
  /** Whether its lease has been seen; before that its credits cannot be spent. */
  leased: boolean;
  /** Its runner has been told to stop: it gets nothing but what is bound to it. */
  isLeaving: boolean;
  /** Credit number to expiry, oldest first. */
  readonly credits: Map<number, number>;
  /** Taken by a grant or withdrawn; kept for longer than any request that offers it may come again. */
  readonly spent: Map<number, number>;
}

/** What a session must have to be given something. */
export interface Needs {
  /** The one runner that it goes to. */
  readonly runner: string | undefined;
  readonly labels: readonly string[];
  readonly least: Least | undefined;
}

export class Sessions {
  readonly #all = new Map<string, Session>();
  readonly #ofRunner = new Map<string, Set<Session>>();
  /** Every session under each of its labels: of ten thousand sets of labels each has few that could take it, and many that cannot. */
  readonly #withLabel = new Map<string, Set<Session>>();

  get size(): number {
    return this.#all.size;
  }

  values(): Iterable<Session> {
    return this.#all.values();
  }

  find(id: string): Session | undefined {
    return this.#all.get(id);
  }

  /** Whether the runner may have another one than it has, or has this one. */
  hasRoomFor(runner: string, id: string): boolean {
    return this.#all.has(id) || (this.#ofRunner.get(runner)?.size ?? 0) < SESSIONS_PER_RUNNER_MAX;
  }

  ofRunner(runner: string): Iterable<Session> {
    return this.#ofRunner.get(runner) ?? [];
  }

  /** Made where there is none. */
  get(runner: string, id: string): Session {
    let session = this.#all.get(id);
    if (session === undefined) {
      session = {
        runner,
        session: id,
        tenant: undefined,
        labels: new Set(),
        slots: 0,
        capacity: undefined,
        leased: false,
        isLeaving: false,
        credits: new Map(),
        spent: new Map(),
      };
      this.#all.set(id, session);
      addTo(this.#ofRunner, runner, session);
    }
    return session;
  }

  delete(session: Session): void {
    this.#all.delete(session.session);
    this.#unlabel(session);
    deleteFrom(this.#ofRunner, session.runner, session);
  }

  /** False: it has these very labels. */
  setLabels(session: Session, labels: readonly string[]): boolean {
    if (session.labels.size === labels.length && hasLabels(session, labels)) return false;
    this.#unlabel(session);
    session.labels = new Set(labels);
    for (const label of session.labels) addTo(this.#withLabel, label, session);
    return true;
  }

  #unlabel(session: Session): void {
    for (const label of session.labels) deleteFrom(this.#withLabel, label, session);
  }

  hasRunner(runner: string): boolean {
    for (const { leased } of this.#ofRunner.get(runner) ?? []) if (leased) return true;
    return false;
  }

  /** Whether the runner is here, and none of its sessions has all of these labels any more (P19). */
  lacks(runner: string, labels: readonly string[]): boolean {
    const leased = [...(this.#ofRunner.get(runner) ?? [])].filter((session) => session.leased);
    return leased.length > 0 && !leased.some((session) => hasLabels(session, labels));
  }

  /**
   * A runner has one session at a time: what an earlier one offered died with it, though its lease lives on for a while. A
   * grant to it would be answered by nobody and end as lost (P12), without ever having been started.
   */
  closeEarlier(session: Session): void {
    for (const other of this.#ofRunner.get(session.runner) ?? [])
      if (other !== session) for (const credit of [...other.credits.keys()]) spend(other, credit);
  }

  closeCredits(runner: string): void {
    for (const session of this.#ofRunner.get(runner) ?? [])
      for (const credit of [...session.credits.keys()]) spend(session, credit);
  }

  /** All that have the labels, and as few others as one label tells apart. */
  fewestWith(labels: readonly string[]): Iterable<Session> {
    let fewest: ReadonlySet<Session> | undefined;
    for (const label of labels) {
      const sessions = this.#withLabel.get(label);
      if (sessions === undefined) return [];
      if (fewest === undefined || sessions.size < fewest.size) fewest = sessions;
    }
    return fewest ?? this.#all.values();
  }
}

/** Numbers beyond the bound are dropped, their slots will be offered again. */
export function addCredits(session: Session, credits: readonly number[], now: number): void {
  const max = session.tenant === undefined ? CREDITS_PER_SESSION_MAX : OWN_CREDITS_MAX;
  if (session.tenant !== undefined && session.spent.size >= OWN_SPENT_MAX) return;
  for (const credit of credits) {
    if (session.credits.size < max && !session.credits.has(credit) && !session.spent.has(credit)) {
      session.credits.set(credit, now + CREDIT_SPENT_WITHIN_MS);
    }
  }
}

/** A credit is spent once (P11). False: it was not open. */
export function spend(session: Session, credit: number): boolean {
  const expiresAt = session.credits.get(credit);
  if (expiresAt === undefined) return false;
  session.credits.delete(credit);
  session.spent.set(credit, expiresAt + CREDIT_SPENT_WITHIN_MS);
  return true;
}

/** The oldest that can still be spent. */
export function nextCredit(session: Session, now: number): number | undefined {
  for (const [credit, expiresAt] of session.credits) {
    if (expiresAt > now) return credit;
    session.credits.delete(credit);
  }
  return undefined;
}

/** Lets go of the credits of the past. */
export function forgetPast(session: Session, now: number): void {
  for (const numbers of [session.credits, session.spent]) {
    for (const [credit, expiresAt] of numbers) {
      if (expiresAt > now) break;
      numbers.delete(credit);
    }
  }
}

export function canTake(session: Session, { runner, labels, least }: Needs): boolean {
  return (runner === undefined || runner === session.runner) && hasLabels(session, labels) && hasRoom(session, least);
}

/** DISPATCH-8. */
export function isFor({ tenant }: Session, stages: { readonly tenant?: string | undefined }): boolean {
  return tenant === undefined || tenant === stages.tenant;
}

export function hasLabels(session: Pick<Session, 'labels'>, labels: readonly string[]): boolean {
  return labels.every((label) => session.labels.has(label));
}

/** A runner that does not say what it has is taken to have enough. */
function hasRoom({ capacity }: Session, least: Least | undefined): boolean {
  return (
    least === undefined ||
    capacity === undefined ||
    ((least.cpu ?? 0) <= capacity.cpu && (least.memoryBytes ?? 0) <= capacity.memoryBytes)
  );
}

export function isSameCapacity(a: RunnerLease['capacity'], b: RunnerLease['capacity']): boolean {
  return a?.cpu === b?.cpu && a?.memoryBytes === b?.memoryBytes;
}

/** Throws InvariantBroken. */
export function assertCredits({ session, credits, spent }: Session): void {
  const facts = (): Record<string, unknown> => ({ session, open: credits.size, spent: spent.size });
  invariant('DISPATCH-3', credits.size <= CREDITS_PER_SESSION_MAX, 'a session has too many open credits', facts);
  for (const credit of credits.keys())
    invariant('DISPATCH-3', !spent.has(credit), 'a credit that was spent is open', () => ({ ...facts(), credit }));
}

function addTo(sets: Map<string, Set<Session>>, name: string, session: Session): void {
  const set = sets.get(name);
  if (set === undefined) sets.set(name, new Set([session]));
  else set.add(session);
}

function deleteFrom(sets: Map<string, Set<Session>>, name: string, session: Session): void {
  const set = sets.get(name);
  set?.delete(session);
  if (set?.size === 0) sets.delete(name);
}
