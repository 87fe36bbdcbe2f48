/** Everything that a process needs to tell who asks it, put together: for `serve`, a gateway or a registry. */
import type { Bus } from '@penstock/bus';
import { callAuth } from './auth-client.ts';
import type { Grant } from './access-messages.ts';
import { Callers, type Authenticator } from './callers.ts';
import { Grants } from './grants.ts';
import { jwtAuthenticator } from './jwt-authenticator.ts';
import { personalTokenAuthenticator } from './personal-token-authenticator.ts';
import { Revocations } from './revocations.ts';
import { UsedTokens } from './used-tokens.ts';

export interface IdentityOptions {
  readonly bus: Bus;
  /** `SERVICE_API_KEY` */
  readonly apiKey?: string | undefined;
  /** `SERVICE_ADMIN_KEY` */
  readonly adminKey?: string | undefined;
  /** Default false. */
  readonly apiKeyAdministers?: boolean | undefined;
  /** `JWT_SECRET` */
  readonly jwtSecret: string;
  /** `SERVICE_PUBLIC_READ` */
  readonly publicRead: boolean;
  /** Whether a session is active, where this process cannot hear of revocations; default: asks auth. */
  readonly isSessionActive?: ((sessionId: string) => Promise<boolean>) | undefined;
  /** Whether users may have what others let them do; default false. */
  readonly withGrants?: boolean | undefined;
  /** Further ways of authentication, asked last. */
  readonly authenticators?: readonly Authenticator[] | undefined;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}

export interface Identity {
  readonly callers: Callers;
  readonly revocations: Revocations;
  /** Whether the session is active, asked of auth or of what the process was given; throws `Unavailable` where nobody answers. */
  isSessionActive(sessionId: string): Promise<boolean>;
  /** What others let a user do. */
  grantsOf(userId: string): Promise<readonly Grant[]>;
  /** Resolves when auth has been told of every use of a personal token so far, or does not answer. */
  reportUses(): Promise<void>;
  close(): Promise<void>;
}

/** A request waits for this, so it is shorter than a client's patience. */
const ASK_MS_MAX = 3_000;

/** Callers can be resolved from the start; until the revocations are known (`revocations.ready`) each token is asked after. */
export function openIdentity(options: IdentityOptions): Identity {
  const { bus, publicRead, now } = options;
  const revocations = new Revocations({ bus });
  const used = new UsedTokens(bus);
  const isSessionActive =
    options.isSessionActive ?? (async (sid: string) => (await callAuth(bus, 'session', { sid }, ASK_MS_MAX)).live);
  const grants = new Grants({
    revocations,
    now,
    grantsOf: async (userId) => (await callAuth(bus, 'access.of', { userId }, ASK_MS_MAX)).grants,
  });
  const callers = new Callers({
    grantsOf: options.withGrants === true ? (userId) => grants.of(userId) : undefined,
    apiKey: options.apiKey,
    adminKey: options.adminKey,
    apiKeyAdministers: options.apiKeyAdministers,
    publicRead,
    authenticators: [
      personalTokenAuthenticator({
        publicRead,
        revocations,
        now,
        identityOf: (hash) => callAuth(bus, 'token', { hash }, ASK_MS_MAX),
        used: (tokenId, at) => used.note(tokenId, at),
      }),
      jwtAuthenticator({ secret: options.jwtSecret, publicRead, revocations, isSessionActive, now }),
      ...(options.authenticators ?? []),
    ],
  });
  return {
    callers,
    revocations,
    isSessionActive,
    grantsOf: async (userId) => await grants.of(userId),
    reportUses: () => used.flush(),
    async close() {
      revocations.close();
      await used.close();
    },
  };
}
