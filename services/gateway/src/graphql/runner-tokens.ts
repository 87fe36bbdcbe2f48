/** Tokens by which machines become runners of the fleet: made, listed, revoked; all of it is asked of auth (P37). */
import type { Bus } from '@penstock/bus';
import { Forbidden } from '@penstock/errors';
import { actorOf, callAuth, requireAdministrator, requireUser, tenantOfUser, type Caller } from '@penstock/identity';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

const SDL = /* GraphQL */ `
  "A machine that was let in by a runner token (additional)."
  type FleetRunner {
    id: String!
    "As the machine calls itself; may be empty."
    name: String!
    "It renews this by itself for as long as its token lives."
    admittedUntil: String!
  }

  "A token that makes machines runners; its text is never given back (additional)."
  type RunnerTokenInfo {
    id: String!
    "May be empty."
    name: String!
    "What its runners may offer beside what their machines are (linux, x64 and the like)."
    labels: [String!]!
    "Whether its runners may be given stages of runs that are not trusted."
    untrusted: Boolean!
    "Whose runs alone its runners are given stages of; null: everybody's."
    tenant: String
    createdAt: String!
    "Null: never."
    expiresAt: String
    "Who is let in by it at present."
    runners: [FleetRunner!]!
  }

  "A new runner token (additional)."
  type RunnerToken {
    id: String!
    name: String!
    "Shown this once; begins with rt_."
    token: String!
    labels: [String!]!
    untrusted: Boolean!
    "Whose runs alone its runners are given stages of; null: everybody's."
    tenant: String
    createdAt: String!
    "Null: never."
    expiresAt: String
  }

  extend type Query {
    "The oldest first: all of them for administrators, else those for the caller's own runs. JWT required, or an administrator's key (additional)."
    runnerTokens: [RunnerTokenInfo!]!
  }

  extend type Mutation {
    """
    'expires' is a duration such as 90d; without it the token has no end. An administrator's is for everybody's runs, or for those of 'tenant' alone ('user/' with a
    user's id, or 'service'); a user's is for that user's own runs. JWT required, or an administrator's key (additional).
    """
    createRunnerToken(
      labels: [String]
      expires: String
      tenant: String
      untrusted: Boolean = false
      name: String
    ): RunnerToken!
    "True when its runners are cut off; else an error. One that is not among 'runnerTokens' does not exist. JWT required, or an administrator's key (additional)."
    revokeRunnerToken(id: String): Boolean!
  }
`;

export function runnerTokensModule({ bus }: { readonly bus: Bus }): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        runnerTokens: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          const tenant = reachOf(caller);
          return (await callAuth(bus, 'runner-tokens.list', { tenant })).tokens;
        },
      },
      Mutation: {
        createRunnerToken: async (
          _: unknown,
          args: {
            readonly labels?: Maybe<readonly Maybe<string>[]>;
            readonly expires?: Maybe<string>;
            readonly tenant?: Maybe<string>;
            readonly untrusted?: Maybe<boolean>;
            readonly name?: Maybe<string>;
          },
          { caller, address }: GraphqlContext,
        ) => {
          const own = reachOf(caller);
          const tenant = args.tenant ?? own;
          if (own !== undefined && tenant !== own)
            throw new Forbidden('Only administrators make runner tokens for anybody but themselves.');
          return await callAuth(bus, 'runner-tokens.create', {
            name: args.name ?? '',
            labels: (args.labels ?? []).map((label) => label ?? ''),
            untrusted: args.untrusted ?? false,
            tenant,
            expires: args.expires ?? undefined,
            actor: actorOf(caller),
            ip: address,
          });
        },
        revokeRunnerToken: async (
          _: unknown,
          args: { readonly id?: Maybe<string> },
          { caller, address }: GraphqlContext,
        ) => {
          const tenant = reachOf(caller);
          const id = given(args.id, 'id');
          await callAuth(bus, 'runner-tokens.revoke', { id, tenant, actor: actorOf(caller), ip: address }, REVOKE_MS);
          return true;
        },
      },
    },
  };
}

/** The broker reads its configuration again meanwhile. */
const REVOKE_MS = 30_000;

/** Whose tokens the caller has a say in; undefined: everybody's. Throws as `requireAdministrator` for who is not logged in. */
function reachOf(caller: Caller): string | undefined {
  if (caller.kind === 'user' && caller.administers !== true) {
    const user = requireUser(caller);
    if (!user.isAdmin) return tenantOfUser(user.id);
  }
  requireAdministrator(caller);
  return undefined;
}
