/** The master keys of secrets, for operators: a new one was put in front, and the old one is to go. */
import type { Bus } from '@penstock/bus';
import { actorOf, callAuth, requireAdministrator, type MasterKeysView } from '@penstock/identity';
import type { GraphqlContext } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

const SDL = /* GraphQL */ `
  "A key of SERVICE_MASTER_KEY (additional)."
  type AdminMasterKey {
    "The first 16 hex digits of the SHA-256 of its 32 bytes."
    id: String!
    "FIRST seals what is new, OTHER is there to read, MISSING is held by no process of auth: no stage gets what is kept under it."
    state: String!
    "Secrets and signing keys that are still kept under it, counted up to 10,000 of each; 0 of the first, where they are not counted."
    sealed: Int!
    "Processes of auth that seal under it."
    usedBy: Int!
    "Whether it can be taken off SERVICE_MASTER_KEY: nothing is kept under it, and all processes seal under the first."
    mayGo: Boolean!
  }

  "The keys that secrets are kept under (additional)."
  type AdminMasterKeys {
    keys: [AdminMasterKey!]!
    "Of auth: those that live, and those that were killed in the last two hours."
    processes: Int!
    "Whether all of them seal under the same key."
    agree: Boolean!
  }

  extend type Query {
    "For administrators (additional)."
    adminMasterKeys: AdminMasterKeys!
  }

  extend type Mutation {
    "Has everything sealed anew under the first key of SERVICE_MASTER_KEY, at once instead of within ten minutes; it goes on after the answer. For administrators (additional)."
    adminRotateKey: AdminMasterKeys!
  }
`;

export function adminKeysModule({ bus }: { readonly bus: Bus }): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        adminMasterKeys: async (_: unknown, _args: unknown, { caller }: GraphqlContext): Promise<MasterKeysView> => {
          requireAdministrator(caller);
          return await callAuth(bus, 'keys.state', {});
        },
      },
      Mutation: {
        adminRotateKey: async (
          _: unknown,
          _args: unknown,
          { caller, address }: GraphqlContext,
        ): Promise<MasterKeysView> => {
          requireAdministrator(caller);
          return await callAuth(bus, 'keys.rotate', { actor: actorOf(caller), ip: address });
        },
      },
    },
  };
}
