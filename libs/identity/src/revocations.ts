/**
 * Which credentials have been revoked before their end, as far as this process can know. It owns a watch on the bucket of
 * revocations, what the bucket holds, and the listeners that wait for the end of a credential.
 *
 *  REVOCATION-1 What the bucket holds when the watch begins is known before anything counts as certain: a gateway that starts late
 *     refuses what was revoked before.
 *  REVOCATION-2 A watch that has been broken for longer than 5 s knows nothing for certain; whoever asks then has to ask auth. While
 *     the connection is there, a watch that is not current is uncertain at once: its own silence took 5 s to be noticed.
 *  REVOCATION-3 Each listener is called once, at the latest when the watch is current again. A break that may have outlasted an entry
 *     of the bucket ends everything that waits: it comes back and is judged anew.
 */
import { buckets, watchLeases, type Bus, type LeaseEvent, type LeaseWatch } from '@penstock/bus';
import { REVOCATION_TTL_MS, revocationKeys, type Revocation } from './auth-messages.ts';

export interface RevocationsOptions {
  readonly bus: Bus;
  /** Milliseconds of a clock that never goes back; default: the process's. */
  readonly now?: (() => number) | undefined;
}

/** What a credential hangs on: it is dead once any of these is revoked. */
export interface Revocable {
  readonly user?: { readonly id: string; readonly sessionId?: string | undefined } | undefined;
  readonly tokenId?: string | undefined;
  readonly issuedAt?: number | undefined;
  /** It is good for something that another lets its user do: it ends when that changes. */
  readonly isGranted?: boolean | undefined;
}

const UNCERTAIN_AFTER_MS = 5_000;
/** How often the watch is looked at: how late its recovery is noticed at most. */
const LOOK_MS = 500;
/** The broker's clock and ours run apart by less. */
const CLOCK_MARGIN_MS = 60_000;

export class Revocations {
  readonly #bus: Bus;
  readonly #now: () => number;
  readonly #watch: LeaseWatch;
  /** They are found by what their keys name. Every request asks, so no key is put together for it. */
  readonly #sessions = new Map<string, Revocation>();
  readonly #users = new Map<string, Revocation>();
  readonly #tokens = new Map<string, Revocation>();
  /** By their ids; what hangs on a user is dead with it, whenever it was given out. */
  readonly #suspended = new Map<string, Revocation>();
  readonly #waiting = new Map<string, Set<Waiting>>();
  #accessChanged: (userId: string) => void = () => {};
  #accessChanges = 0;
  readonly #look: NodeJS.Timeout;
  /** When the watch was last seen current; null: never yet. */
  #currentAt: number | null = null;

  constructor(options: RevocationsOptions) {
    this.#bus = options.bus;
    this.#now = options.now ?? (() => performance.now());
    this.#watch = watchLeases<Revocation>(options.bus, buckets.revocations, (event) => this.#take(event), {
      leaseMs: REVOCATION_TTL_MS,
    });
    this.#look = setInterval(() => {
      if (this.#watch.current) this.#noteCurrent();
    }, LOOK_MS);
    this.#look.unref();
  }

  /** Resolves when everything revoked so far is known. */
  get ready(): Promise<void> {
    return this.#watch.ready;
  }

  close(): void {
    clearInterval(this.#look);
    this.#watch.stop();
    this.#waiting.clear();
  }

  /** False: a credential that is not known as revoked may be so all the same (REVOCATION-2). */
  get certain(): boolean {
    if (this.#watch.current) {
      this.#noteCurrent();
      return true;
    }
    if (this.#currentAt === null || this.#bus.connected) return false;
    return this.#now() - this.#currentAt <= UNCERTAIN_AFTER_MS;
  }

  isRevoked(credential: Revocable): boolean {
    const { user, tokenId, issuedAt } = credential;
    if (user !== undefined && this.#suspended.has(user.id)) return true;
    if (tokenId !== undefined) return this.#tokens.has(tokenId);
    if (user === undefined) return false;
    if (user.sessionId !== undefined && this.#sessions.has(user.sessionId)) return true;
    const revocation = this.#users.get(user.id);
    return revocation !== undefined && issuedAt !== undefined && issuedAt <= revocation.before;
  }

  /** What this process has just had revoked itself: known here before the bucket tells. */
  note(key: string): void {
    this.#take({ kind: 'put', key, value: { before: Date.now() }, revision: 0 });
  }

  /** Calls back once when the credential is revoked, or may have been unseen (REVOCATION-3). Answers how to stop waiting. */
  onRevoked(credential: Revocable, listener: () => void): () => void {
    const keys = keysOf(credential);
    const stop = (): void => {
      for (const key of keys) {
        const waiting = this.#waiting.get(key);
        waiting?.delete(entry);
        if (waiting?.size === 0) this.#waiting.delete(key);
      }
    };
    const end = (): void => {
      stop();
      listener();
    };
    const entry: Waiting = { credential, end };
    for (const key of keys) {
      const waiting = this.#waiting.get(key) ?? new Set();
      this.#waiting.set(key, waiting.add(entry));
    }
    return stop;
  }

  /** What this process has just had changed itself: as `note`. */
  accessChanged(userId: string): void {
    this.note(revocationKeys.access(userId));
  }

  /** How often what others let some user do has changed: what was read while this was another number may be of before. */
  get accessChanges(): number {
    return this.#accessChanges;
  }

  /** Called when what others let a user do has changed; there is one listener. */
  onAccessChanged(listener: (userId: string) => void): void {
    this.#accessChanged = listener;
  }

  #take(event: LeaseEvent<Revocation>): void {
    const dot = event.key.indexOf('.');
    const kind = event.key.slice(0, dot);
    const id = event.key.slice(dot + 1);
    if (kind === 'access') {
      if (event.kind === 'expired') return;
      this.#accessChanges += 1;
      this.#accessChanged(id);
      for (const { end } of [...(this.#waiting.get(event.key) ?? [])]) end();
      return;
    }
    const revoked = this.#ofKind(kind);
    if (event.kind === 'expired' || (kind === 'suspended' && event.value.before === 0)) {
      revoked?.delete(id);
      return;
    }
    revoked?.set(id, event.value);
    for (const { credential, end } of [...(this.#waiting.get(event.key) ?? [])]) if (this.isRevoked(credential)) end();
  }

  /** Undefined: a kind of a later release. */
  #ofKind(kind: string): Map<string, Revocation> | undefined {
    switch (kind) {
      case 'session':
        return this.#sessions;
      case 'user':
        return this.#users;
      case 'token':
        return this.#tokens;
      case 'suspended':
        return this.#suspended;
      default:
        return undefined;
    }
  }

  #noteCurrent(): void {
    const now = this.#now();
    const brokenMs = this.#currentAt === null ? 0 : now - this.#currentAt;
    this.#currentAt = now;
    if (brokenMs > REVOCATION_TTL_MS - CLOCK_MARGIN_MS) this.#endAll();
  }

  #endAll(): void {
    const all = new Set([...this.#waiting.values()].flatMap((waiting) => [...waiting]));
    for (const { end } of all) end();
  }
}

interface Waiting {
  readonly credential: Revocable;
  end(): void;
}

function keysOf({ user, tokenId, isGranted = false }: Revocable): string[] {
  const ofUser = user === undefined ? [] : [revocationKeys.suspended(user.id)];
  if (user !== undefined && isGranted) ofUser.push(revocationKeys.access(user.id));
  if (tokenId !== undefined) return [revocationKeys.token(tokenId), ...ofUser];
  if (user === undefined) return [];
  return [
    ...ofUser,
    revocationKeys.user(user.id),
    ...(user.sessionId === undefined ? [] : [revocationKeys.session(user.sessionId)]),
  ];
}
