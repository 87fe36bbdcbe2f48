/** Tokens by which machines become runners of the fleet: made, listed, revoked; all of it is asked of auth (P37). */
import type { Bus } from '@penstock/bus';
import { actorOf, callAuth, requireAdministrator } from '@penstock/identity';
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
    createdAt: String!
    "Null: never."
    expiresAt: String
  }

  extend type Query {
    "The oldest first. For administrators (additional)."
    runnerTokens: [RunnerTokenInfo!]!
  }

  extend type Mutation {
    "'expires' is a duration such as 90d; without it the token has no end. For administrators (additional)."
    createRunnerToken(labels: [String], expires: String, untrusted: Boolean = false, name: String): RunnerToken!
    "True when its runners are cut off; else an error. For administrators (additional)."
    revokeRunnerToken(id: String): Boolean!
  }
`;

export function runnerTokensModule({ bus }: { readonly bus: Bus }): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        runnerTokens: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          requireAdministrator(caller);
          return (await callAuth(bus, 'runner-tokens.list', {})).tokens;
        },
      },
      Mutation: {
        createRunnerToken: async (
          _: unknown,
          args: {
            readonly labels?: Maybe<readonly Maybe<string>[]>;
            readonly expires?: Maybe<string>;
            readonly untrusted?: Maybe<boolean>;
            readonly name?: Maybe<string>;
          },
          { caller, address }: GraphqlContext,
        ) => {
          requireAdministrator(caller);
          return await callAuth(bus, 'runner-tokens.create', {
            name: args.name ?? '',
            labels: (args.labels ?? []).map((label) => label ?? ''),
            untrusted: args.untrusted ?? false,
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
          requireAdministrator(caller);
          const id = given(args.id, 'id');
          await callAuth(bus, 'runner-tokens.revoke', { id, actor: actorOf(caller), ip: address }, REVOKE_MS);
          return true;
        },
      },
    },
  };
}

/** The broker reads its configuration again meanwhile. */
const REVOKE_MS = 30_000;
