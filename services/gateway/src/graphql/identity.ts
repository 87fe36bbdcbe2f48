/** What a user is and has: profile, usage, personal tokens; what only operators see: the configuration, the audit log. */
import { UNLIMITED, type TierLimits, type Tiers } from '@penstock/config';
import {
  callAuth,
  requireAdministrator,
  requireCredential,
  requireOperator,
  requireReader,
  requireUser,
  tenantOfUser,
  TOKEN_SCOPES,
  type Revocations,
  revocationKeys,
} from '@penstock/identity';
import { BadUserInput, NotFound } from '@penstock/errors';
import { unavailableStore, type RunReads } from '@penstock/run-client';
import type { UsageAnswer, UsageRequest } from '@penstock/artifacts';
import type { Bus } from '@penstock/bus';
import { callService } from '@penstock/service';
import type { AuditReader } from '@penstock/store';
import { readersOf } from '../people/granted-run.ts';
import type { People } from '../people/people.ts';
import { monthOf, type Month } from './month.ts';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';
import type { Tickets } from '../sse/tickets.ts';

export interface IdentityModuleOptions {
  readonly bus: Bus;
  readonly version: string;
  readonly tiers: Tiers;
  readonly reads: RunReads;
  readonly people: People;
  readonly tickets: Tickets;
  readonly revocations: Pick<Revocations, 'note' | 'accessChanged'>;
  readonly audit: AuditReader;
  /** Resolves when auth knows when each personal token was used here. */
  reportUses(): Promise<void>;
  /** What `serverConfig` shows. */
  readonly server: { readonly mode: string; readonly logLevel: string; readonly apiAuthenticated: boolean };
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const BYTES_A_MEGABYTE = 1_000_000;

const SDL = /* GraphQL */ `
  type UserProfile {
    id: String!
    email: String!
    tier: String!
    isAdmin: Boolean!
    "Runs a calendar month in UTC; 2147483647 where there is no limit."
    pipelineRunLimit: Int!
    "Runs at a time; further ones wait as QUEUED. 2147483647 where there is no limit."
    maxConcurrent: Int!
    canUsePrivateExtensions: Boolean!
    canPublishExtensions: Boolean!
  }

  type UsageSummary {
    "pipeline_runs, concurrent_runs, stage_minutes or artifact_storage_mb"
    metric: String!
    total: Int!
    "2147483647 where there is no limit."
    limit: Int!
    percentage: Float!
    "ok below 80 %, warning from 80 %, exceeded from 100 %."
    status: String!
    "The calendar month in UTC, ISO 8601; it ends where the next one begins."
    periodStart: String!
    periodEnd: String!
  }

  type ApiTokenInfo {
    id: String!
    name: String!
    scopes: [String!]!
    createdAt: String!
    lastUsedAt: String
    "Null: it has no end (additional)."
    expiresAt: String
  }

  type CreateApiTokenResult {
    id: String!
    name: String!
    "Shown this once."
    token: String!
    scopes: [String!]!
    createdAt: String!
    "Null: it has no end (additional)."
    expiresAt: String
  }

  type ServerConfig {
    version: String!
    "development or production"
    mode: String!
    logLevel: String!
    "Whether an API key is configured."
    apiAuthenticated: Boolean!
  }

  "What was done, or refused (additional)."
  type AuditEntry {
    at: String!
    actor: String!
    action: String!
    target: String!
    "ok, or the code of the refusal; UNAVAILABLE where a change of a run may have been made all the same"
    outcome: String!
    ip: String
  }

  extend type Query {
    "With an access token."
    me: UserProfile!
    "Of this month, with an access token."
    usage: [UsageSummary!]!
    "The oldest first, with an access token."
    apiTokens: [ApiTokenInfo!]!
    "For the API key and for admins."
    serverConfig: ServerConfig!
    "The newest first, none from before 'since' (ISO 8601); 'limit' is 20 where it is absent, at most 1000. For those of adminStatus (additional)."
    auditLog(limit: Int, since: String): [AuditEntry!]!
    "The same as auditLog (additional)."
    adminAudit(limit: Int, since: String): [AuditEntry!]!
  }

  extend type Mutation {
    "Scopes: read, trigger, publish, secrets. 'expires' is a duration such as 90d (additional); without it the token has no end."
    createApiToken(name: String, scopes: [String], expires: String): CreateApiTokenResult!
    "True where it was the caller's and is deleted; else an error."
    revokeApiToken(id: String): Boolean!
    "All of the caller's; answers how many there were (additional)."
    revokeAllTokens: Int!
    "For the token parameter of the run's log stream: to be used within 60 s, then good for that run until 5 minutes after its end (additional)."
    createStreamTicket(runId: String, run_id: String): String!
  }
`;

const AUDIT_LIMIT = { default: 20, max: 1_000 } as const;
/** Above these percentages the status is one further. */
const WARNING_PERCENT = 80;
const EXCEEDED_PERCENT = 100;
const SECONDS_A_MINUTE = 60;
/** Each of a hundred tokens is told to the broker. */
const REVOKE_ALL_MS = 20_000;

export function identityModule(options: IdentityModuleOptions): GraphqlModule {
  const { bus, tiers, now } = options;
  const audited = async (
    _: unknown,
    args: { limit?: Maybe<number>; since?: Maybe<string> },
    { caller }: GraphqlContext,
  ) => {
    requireAdministrator(caller);
    const since = sinceOf(args.since);
    const entries = await options.audit.newest(limitOf(args.limit, AUDIT_LIMIT), since).catch((error: unknown) => {
      throw unavailableStore(error);
    });
    return entries.map(({ at, ...entry }) => ({ at: new Date(at).toISOString(), ...entry }));
  };
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        me: (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          const { id, email, tier, isAdmin } = requireUser(caller);
          const limits = tiers.limitsOf(tier);
          return {
            id,
            email,
            tier,
            isAdmin,
            pipelineRunLimit: limits.pipelineRunLimit,
            maxConcurrent: limits.maxConcurrent,
            canUsePrivateExtensions: isAdmin || limits.canUsePrivateExtensions,
            canPublishExtensions: isAdmin || limits.canPublishExtensions,
          };
        },
        usage: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          const user = requireUser(caller);
          const month = monthOf(now());
          const counted = await options.reads.usage({ tenant: tenantOfUser(user.id), month: month.name });
          const { bytes } = await callService<UsageRequest, UsageAnswer>(bus, 'registry', 'artifact.usage', {
            key: tenantOfUser(user.id),
          });
          const used = { ...counted, artifactBytes: bytes };
          return usageSummaries(used, tiers.limitsOf(user.tier), month);
        },
        apiTokens: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          const { id: userId } = requireUser(caller);
          await options.reportUses();
          return (await callAuth(bus, 'tokens.list', { userId })).tokens;
        },
        serverConfig: (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          requireOperator(caller);
          return { version: options.version, ...options.server };
        },
        auditLog: audited,
        adminAudit: audited,
      },
      Mutation: {
        createApiToken: async (
          _: unknown,
          args: { name?: Maybe<string>; scopes?: Maybe<readonly Maybe<string>[]>; expires?: Maybe<string> },
          { caller, address }: GraphqlContext,
        ) => {
          const { id: userId } = requireUser(caller);
          const name = given(args.name, 'name').trim();
          if (name === '') throw new BadUserInput("'name' is empty; it tells your tokens apart.");
          const scopes = scopesOf(args.scopes);
          const expires = args.expires ?? undefined;
          return await callAuth(bus, 'tokens.create', { userId, name, scopes, expires, ip: address });
        },
        revokeApiToken: async (_: unknown, args: { id?: Maybe<string> }, { caller, address }: GraphqlContext) => {
          const { id: userId } = requireUser(caller);
          const id = given(args.id, 'id');
          await callAuth(bus, 'tokens.revoke', { userId, id, ip: address });
          options.revocations.note(revocationKeys.token(id));
          return true;
        },
        revokeAllTokens: async (_: unknown, _args: unknown, { caller, address }: GraphqlContext) => {
          const { id: userId } = requireUser(caller);
          const { revoked } = await callAuth(bus, 'tokens.revoke-all', { userId, ip: address }, REVOKE_ALL_MS);
          for (const id of revoked) options.revocations.note(revocationKeys.token(id));
          return revoked.length;
        },
        createStreamTicket: async (
          _: unknown,
          args: { runId?: Maybe<string>; run_id?: Maybe<string> },
          { caller }: GraphqlContext,
        ) => {
          // As every mutation, it is refused to callers without credentials, also where they could read the run.
          requireCredential(caller);
          const tenants = requireReader(caller);
          const runId = given(args.runId ?? args.run_id, 'runId');
          const run = await options.reads.view(runId, tenants, () => options.people.namesOf(caller));
          if (run === null) throw new NotFound('There is no such run.');
          return await options.tickets.make(caller, run.id, readersOf(caller, run));
        },
      },
    },
  };
}

function sinceOf(since: Maybe<string>): number | undefined {
  if (since === null || since === undefined) return undefined;
  const at = /^\d{4}-\d\d-\d\d/u.test(since) ? Date.parse(since) : Number.NaN;
  if (Number.isNaN(at)) throw new BadUserInput("'since' is no time: write it as 2026-11-23T08:00:00Z.");
  return at;
}

function scopesOf(scopes: Maybe<readonly Maybe<string>[]>): string[] {
  if (scopes === null || scopes === undefined || scopes.length === 0)
    throw new BadUserInput(`'scopes' names none; there are ${TOKEN_SCOPES.join(', ')}.`);
  const named = [...new Set(scopes.map((scope) => scope ?? ''))];
  const unknown = named.find((scope) => !(TOKEN_SCOPES as readonly string[]).includes(scope));
  if (unknown !== undefined)
    throw new BadUserInput(
      `'${unknown.slice(0, 100).toWellFormed()}' is not a scope of a token; the scopes are ${TOKEN_SCOPES.join(', ')}.`,
    );
  return named;
}

/** What a tenant has used of a month, as the projection counts it. */
interface Used {
  readonly pipelineRuns: number;
  readonly concurrentRuns: number;
  readonly stageSeconds: number;
  readonly artifactBytes: number;
}

function usageSummaries(used: Used, limits: TierLimits, { start, end }: Month): object[] {
  const rows: readonly (readonly [metric: string, total: number, limit: number])[] = [
    ['pipeline_runs', used.pipelineRuns, limits.pipelineRunLimit],
    ['concurrent_runs', used.concurrentRuns, limits.maxConcurrent],
    // A minute that has begun counts; no tier bounds the minutes.
    ['stage_minutes', Math.ceil(used.stageSeconds / SECONDS_A_MINUTE), UNLIMITED],
    ['artifact_storage_mb', Math.ceil(used.artifactBytes / BYTES_A_MEGABYTE), limits.artifactStorageMb],
  ];
  return rows.map(([metric, total, limit]) => {
    const percentage = percentageOf(total, limit);
    const status = percentage >= EXCEEDED_PERCENT ? 'exceeded' : percentage >= WARNING_PERCENT ? 'warning' : 'ok';
    return { metric, total: Math.min(total, UNLIMITED), limit, percentage, status, periodStart: start, periodEnd: end };
  });
}

/** The percentage with two places; a limit of zero is used up from the start. */
function percentageOf(total: number, limit: number): number {
  if (limit >= UNLIMITED) return 0;
  return limit === 0 ? EXCEEDED_PERCENT : Math.floor((total / limit) * 10_000) / 100;
}
