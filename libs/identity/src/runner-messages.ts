/** What the gateway asks of auth about the tokens of a fleet's runners, and what such a runner gets for its token (P37). */

/** Begins every runner token. */
export const RUNNER_TOKEN_PREFIX = 'rt_';

/** Where a runner trades its token for credentials of its own, and where it then reaches the broker. */
export const FLEET_PATHS = { attach: '/runners/attach', socket: '/runners/socket' } as const;

export interface RunnerTokenInfo {
  readonly id: string;
  /** What its owner calls it; may be empty. */
  readonly name: string;
  /** What its runners may offer beside what their machines are. */
  readonly labels: readonly string[];
  /** Whether its runners may be given stages of runs that are not trusted. */
  readonly untrusted: boolean;
  /** Whose stages alone its runners are given; null: everybody's. */
  readonly tenant: string | null;
  /** ISO 8601. */
  readonly createdAt: string;
  /** Null: never. */
  readonly expiresAt: string | null;
  /** Who is let in by it at present. */
  readonly runners: readonly FleetRunnerInfo[];
}

interface FleetRunnerInfo {
  readonly id: string;
  /** As it calls itself. */
  readonly name: string;
  /** When its credentials end, unless it renews them. */
  readonly admittedUntil: string;
}

export interface CreatedRunnerToken extends Omit<RunnerTokenInfo, 'runners'> {
  /** Shown this once, kept nowhere. */
  readonly token: string;
}

/** Who asks, for the audit log. */
interface Asker {
  readonly actor: string;
  readonly ip?: string | undefined;
}

export interface RunnerTokenCalls {
  /** BAD_USER_INPUT: a label, a name, a duration or a tenant that is none. CONFLICT: too many tokens. UNAVAILABLE: this server has no fleet. */
  readonly 'runner-tokens.create': {
    readonly request: Asker & {
      readonly name: string;
      readonly labels: readonly string[];
      readonly untrusted: boolean;
      /** Absent: for the whole installation. */
      readonly tenant?: string | undefined;
      /** Such as `90d`; absent: never. */
      readonly expires?: string | undefined;
    };
    readonly answer: CreatedRunnerToken;
  };
  readonly 'runner-tokens.list': {
    /** Absent: all there are. */
    readonly request: { readonly tenant?: string | undefined };
    readonly answer: { readonly tokens: readonly RunnerTokenInfo[] };
  };
  /** NOT_FOUND: there is none with this id, of the tenant where one is named. Answered when its runners are cut off. */
  readonly 'runner-tokens.revoke': {
    readonly request: Asker & { readonly id: string; readonly tenant?: string | undefined };
    readonly answer: { readonly revoked: true };
  };
}

/** `POST /runners/attach`, with the token as bearer. */
export interface AttachRequest {
  /** The public part of an Ed25519 key, in the broker's notation; its owner alone can use what is answered. */
  readonly public_key: string;
  /** For people. */
  readonly name?: string | undefined;
}

export interface AttachAnswer {
  readonly runner: string;
  readonly labels: readonly string[];
  readonly untrusted: boolean;
  /** Whose stages alone it is given; absent: everybody's. */
  readonly tenant?: string | undefined;
  /** Seconds; to be renewed at half of it, by attaching again. */
  readonly expires_in: number;
  /** Bearer for `FLEET_PATHS.socket`. */
  readonly ticket: string;
}
