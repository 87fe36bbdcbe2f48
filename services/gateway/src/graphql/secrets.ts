/** The secrets of stages: set, deleted and listed; all of it is asked of auth, and no answer holds a value. */
import type { Bus } from '@penstock/bus';
import { actorOf, callAuth, requireSecretsTenant, type Caller, type SecretScope } from '@penstock/identity';
import { BadUserInput } from '@penstock/errors';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

const SDL = /* GraphQL */ `
  "A secret of stages; its value is never given back (additional)."
  type SecretInfo {
    name: String!
    "Null: of every repository, and of runs without one."
    repository: String
    "Null: of every pipeline."
    pipeline: String
    "Patterns of refs; null: of any ref, and of runs without one."
    refs: [String!]
    createdAt: String!
    updatedAt: String!
    "When a stage was last given it."
    lastUsedAt: String
  }

  extend type Query {
    "Those of the caller's tenant by name, with 'repository' those for it alone (additional)."
    secrets(repository: String): [SecretInfo!]!
  }

  extend type Mutation {
    "Keeps a value for stages that name it, in place of the one there was; with the API key 'repository' (<provider>/<path>) or 'pipeline' is required (additional)."
    setSecret(name: String, value: String, repository: String, pipeline: String, refs: [String]): SecretInfo!
    "True where there was one of this name, repository and pipeline (additional)."
    deleteSecret(name: String, repository: String, pipeline: String): Boolean!
  }
`;

interface ScopeArguments {
  readonly repository?: Maybe<string>;
  readonly pipeline?: Maybe<string>;
}

export function secretsModule({ bus }: { readonly bus: Bus }): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        secrets: async (_: unknown, { repository }: ScopeArguments, { caller }: GraphqlContext) => {
          const tenant = requireSecretsTenant(caller);
          const answer = await callAuth(bus, 'secrets.list', { tenant, repository: repository ?? undefined });
          return answer.secrets;
        },
      },
      Mutation: {
        setSecret: async (
          _: unknown,
          args: ScopeArguments & {
            readonly name?: Maybe<string>;
            readonly value?: Maybe<string>;
            readonly refs?: Maybe<readonly Maybe<string>[]>;
          },
          { caller, address }: GraphqlContext,
        ) => {
          const scope = scopeOf(caller, args);
          const name = given(args.name, 'name');
          const value = valueOf(args.value);
          const refs = args.refs?.map((ref) => ref ?? '');
          return await callAuth(bus, 'secrets.set', {
            ...scope,
            name,
            value,
            refs,
            actor: actorOf(caller),
            ip: address,
          });
        },
        deleteSecret: async (
          _: unknown,
          args: ScopeArguments & { readonly name?: Maybe<string> },
          { caller, address }: GraphqlContext,
        ) => {
          const scope = scopeOf(caller, args);
          const name = given(args.name, 'name');
          const request = { ...scope, name, actor: actorOf(caller), ip: address };
          return (await callAuth(bus, 'secrets.delete', request)).deleted;
        },
      },
    },
  };
}

function scopeOf(caller: Caller, { repository, pipeline }: ScopeArguments): SecretScope {
  return {
    tenant: requireSecretsTenant(caller),
    repository: repository ?? undefined,
    pipeline: pipeline ?? undefined,
  };
}

/** As it was given, blanks and empty lines included: what it holds is for auth to judge. */
function valueOf(value: Maybe<string>): string {
  if (value === null || value === undefined) throw new BadUserInput("'value' is missing.", { field: 'value' });
  return value;
}
