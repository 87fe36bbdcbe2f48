/**
 * Tickets: what a browser puts into the address of a log stream in place of a credential. A ticket is a signed text that
 * any gateway can read; which of them have been used stands in the store.
 *
 *  TICKET-1 A ticket is good for one run, and for nothing but its log stream.
 *  TICKET-2 It is to be used within 60 s. Used once, it is good until 5 minutes after the end of its run: an EventSource comes
 *     back with the same address.
 *  TICKET-3 It is dead as soon as the session or the personal token that it was made with is dead, or the API key has changed, or whose run
 *     it is lets its user in no more.
 */
import { createHmac, randomUUID } from 'node:crypto';
import { jwtSecretsOf } from '@penstock/config';
import { errors, jwtVerify, SignJWT, type JWTPayload } from 'jose';
import { callAuth, type Caller, type Grant, type Revocable, type Revocations } from '@penstock/identity';
import { Unauthenticated } from '@penstock/errors';
import { reachOf, repositoryOfReach } from '@penstock/run';
import { unavailableStore } from '@penstock/run-client';
import type { Bus } from '@penstock/bus';
import type { Collection, CollectionSpec, DocumentStore } from '@penstock/store';

/** There is one document for each ticket that has been used; its id is the ticket's. */
export const ticketsSpec = {
  name: 'stream_tickets',
  fields: {
    /** Milliseconds since 1970. */
    usedAt: 'integer',
  },
  parts: [],
  indexes: [['usedAt']],
} as const satisfies CollectionSpec;

export interface TicketsOptions {
  readonly bus: Bus;
  readonly store: Pick<DocumentStore, 'collection'>;
  /** `JWT_SECRET` */
  readonly secret: string;
  readonly apiKey?: string | undefined;
  readonly revocations: Pick<Revocations, 'certain' | 'isRevoked'>;
  readonly isSessionActive: (sessionId: string) => Promise<boolean>;
  /** What others let a user do. */
  readonly grantsOf: (userId: string) => Promise<readonly Grant[]>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** A ticket that is genuine and not revoked; `use` decides whether it is in time. */
export interface Ticket {
  readonly id: string;
  /** Whose runs it may read: the run's own tenant. */
  readonly tenants: readonly string[];
  readonly credential: Revocable & Pick<Caller, 'endsAt'>;
  readonly issuedAt: number;
}

const FIRST_USE_MS_MAX = 60_000;
const AFTER_END_MS_MAX = 5 * 60_000;
/** No stream is watched for longer with one ticket: its use is forgotten then. */
const LIFE_MS_MAX = 40 * 24 * 3_600_000;
/** The bucket of revocations holds those of the last 17 minutes: about older tickets auth is asked. */
const REVOCATIONS_KNOWN_MS = 15 * 60_000;
const SWEEP_MS = 3_600_000;
const SWEEP_MAX = 1_000;

const HEADER = { alg: 'HS256', typ: 'st+jwt' } as const;
const AUDIENCE = 'penstock-stream';
const ISSUER = 'penstock';
/** Every ticket begins like this, and no other token does. */
const BEGINNING = `${Buffer.from(JSON.stringify(HEADER)).toString('base64url')}.`;

interface Claims {
  readonly run: string;
  readonly tenant: string;
  readonly at: number;
  readonly user?: string | undefined;
  readonly sid?: string | undefined;
  readonly tokenId?: string | undefined;
  /** When the personal token ends that it was made with, if that has an end. */
  readonly until?: number | undefined;
  /** Says which API key the ticket was made with, if it was made with one. */
  readonly key?: string | undefined;
}

export class Tickets {
  readonly #options: TicketsOptions;
  /** The first signs, all verify. */
  readonly #keys: readonly Uint8Array[];
  /** Of the API key by each secret, as far as there is one. */
  readonly #keyMarks: readonly string[];
  readonly #used: Collection<typeof ticketsSpec>;
  readonly #sweep: NodeJS.Timeout;

  /** The store has to be opened with `gatewayCollections` among its collections. */
  constructor(options: TicketsOptions) {
    this.#options = options;
    const { apiKey } = options;
    const secrets = jwtSecretsOf(options.secret);
    this.#keys = secrets.map((secret) => new TextEncoder().encode(secret));
    this.#keyMarks =
      apiKey === undefined
        ? []
        : secrets.map((secret) =>
            createHmac('sha256', secret).update(`api key ${apiKey}`).digest('base64url').slice(0, 16),
          );
    this.#used = options.store.collection(ticketsSpec);
    this.#sweep = setInterval(() => void this.#forgetOld().catch(() => {}), SWEEP_MS);
    this.#sweep.unref();
  }

  close(): void {
    clearInterval(this.#sweep);
  }

  /** For a run that the caller may see; `tenant` is the run's, or the repository of it where another lets the caller in (`reachOf`). */
  async make(caller: Caller, runId: string, tenant: string): Promise<string> {
    const { user, tokenId, kind, endsAt } = caller;
    const claims: Claims = {
      run: runId,
      tenant,
      at: this.#options.now(),
      ...(user === undefined ? {} : { user: user.id }),
      ...(user?.sessionId === undefined ? {} : { sid: user.sessionId }),
      ...(tokenId === undefined ? {} : { tokenId }),
      ...(endsAt === undefined ? {} : { until: endsAt }),
      ...(kind === 'api-key' ? { key: this.#keyMarks[0] } : {}),
    };
    return await new SignJWT({ ...claims })
      .setProtectedHeader(HEADER)
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setJti(randomUUID())
      .sign(this.#keys[0] ?? new Uint8Array());
  }

  isTicket(token: string): boolean {
    return token.startsWith(BEGINNING);
  }

  /** Throws `Unauthenticated` for one that is not genuine, of another run, or revoked; `Unavailable` where that cannot be said. */
  async read(token: string, runId: string): Promise<Ticket> {
    const { id, claims } = await this.#verified(token);
    if (claims.run !== runId) throw new Unauthenticated();
    const credential: Ticket['credential'] = {
      ...(claims.user === undefined
        ? {}
        : { user: { id: claims.user, ...(claims.sid === undefined ? {} : { sessionId: claims.sid }) } }),
      ...(claims.tokenId === undefined ? {} : { tokenId: claims.tokenId }),
      ...(claims.until === undefined ? {} : { endsAt: claims.until }),
      issuedAt: claims.at,
      isGranted: repositoryOfReach(claims.tenant) !== null,
    };
    if (!(await this.#isValid(claims, credential))) throw new Unauthenticated();
    return { id, tenants: [claims.tenant], credential, issuedAt: claims.at };
  }

  /** TICKET-2. `endedAt`: when the run ended, in milliseconds since 1970; null while it has not. Throws `Unauthenticated`, `Unavailable`. */
  async use(ticket: Ticket, endedAt: number | null): Promise<void> {
    const now = this.#options.now();
    try {
      if (now <= ticket.issuedAt + FIRST_USE_MS_MAX) {
        await this.#used.insert({ id: ticket.id, usedAt: now });
        return;
      }
      const use = now <= ticket.issuedAt + LIFE_MS_MAX ? await this.#used.get(ticket.id) : null;
      // A run that had ended before is shown once more: its 5 minutes begin with the use.
      const over = use === null || (endedAt !== null && now > Math.max(endedAt, use.usedAt) + AFTER_END_MS_MAX);
      if (over) throw new Unauthenticated();
    } catch (error) {
      throw unavailableStore(error);
    }
  }

  async #verified(token: string): Promise<{ readonly id: string; readonly claims: Claims }> {
    for (const key of this.#keys) {
      const payload = await payloadOf(token, key);
      if (payload !== null) return { id: payload.jti ?? '', claims: payload as unknown as Claims };
    }
    throw new Unauthenticated();
  }

  /** TICKET-3 */
  async #isValid(claims: Claims, credential: Revocable): Promise<boolean> {
    const { revocations, now, bus, isSessionActive } = this.#options;
    const { user, sid, tokenId } = claims;
    if (user !== undefined && credential.isGranted === true) {
      const reaches = (await this.#options.grantsOf(user)).map(reachOf);
      if (!reaches.includes(claims.tenant)) return false;
    }
    if (user === undefined) return claims.key !== undefined && this.#keyMarks.includes(claims.key);
    if (revocations.isRevoked(credential) || (claims.until ?? Infinity) <= now()) return false;
    if (revocations.certain && now() - claims.at <= REVOCATIONS_KNOWN_MS) return true;
    if (sid !== undefined) return await isSessionActive(sid);
    const { tokens } = await callAuth(bus, 'tokens.list', { userId: user });
    if (!tokens.some(({ id }) => id === tokenId)) return false;
    return !(await callAuth(bus, 'user.is-suspended', { userId: user })).suspended;
  }

  async #forgetOld(): Promise<void> {
    const before = this.#options.now() - LIFE_MS_MAX;
    await this.#used.deleteWhere({
      where: { usedAt: { lt: before } },
      orderBy: { field: 'usedAt', direction: 'asc' },
      limit: SWEEP_MAX,
    });
  }
}

/** Null: not signed with this key, or no ticket. */
async function payloadOf(token: string, key: Uint8Array): Promise<JWTPayload | null> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [HEADER.alg],
      typ: HEADER.typ,
      issuer: ISSUER,
      audience: AUDIENCE,
      requiredClaims: ['jti', 'run', 'tenant', 'at'],
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
