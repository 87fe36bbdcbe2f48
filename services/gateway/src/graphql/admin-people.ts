/** Who may use the installation at all, for operators. */
import type { Bus } from '@penstock/bus';
import {
  actorOf,
  callAuth,
  requireAdministrator,
  revocationKeys,
  type Revocations,
  type SuspendedUser,
} from '@penstock/identity';
import { deleteUser, type DeletedUser } from '../people/delete-user.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AdminPeopleModuleOptions {
  readonly bus: Bus;
  readonly revocations: Pick<Revocations, 'note'>;
}

const SDL = /* GraphQL */ `
  "Somebody whom an administrator has shut out (additional)."
  type SuspendedUser {
    id: String!
    login: String!
    suspendedBy: String!
    suspendedAt: String!
  }

  "What was deleted with a user (additional)."
  type DeletedUser {
    id: String!
    "'' for one whose deletion was begun before."
    login: String!
    "Accounts at identity providers."
    identities: Int!
    sessions: Int!
    "Personal tokens."
    tokens: Int!
    secrets: Int!
    "Connected repositories, with their schedules."
    repositories: Int!
    "Outgoing webhooks."
    hooks: Int!
    "Public keys for extensions."
    extensionKeys: Int!
    "What others were let do in the user's repositories."
    grantsGiven: Int!
    "What others had let the user do."
    grantsReceived: Int!
  }

  extend type Query {
    "The latest first. For administrators (additional)."
    suspendedUsers: [SuspendedUser!]!
  }

  extend type Mutation {
    """
    Shuts a user out: no login, no session, no personal token and no open stream of theirs counts any more. Runs go on, and so do
    schedules and webhooks of their repositories: 'adminPause' with their key holds those. 'login' as for 'grantAccess', or the user's id.
    For administrators (additional).
    """
    suspendUser(login: String): SuspendedUser!
    "Lets the user in again, with the sessions and tokens of before. False where nobody had shut them out. For administrators (additional)."
    unsuspendUser(login: String): Boolean!
    """
    Deletes a user for good, and counts what goes along: shut out first, as by 'suspendUser', then secrets, tokens, sessions, connected repositories
    with their schedules, webhooks, keys, and access both ways. Runs stay, with their logs and files. UNAVAILABLE where not all is gone: what is left goes when
    it is done again, by the id. The same account may log in later, as somebody new. For administrators (additional).
    """
    deleteUser(login: String): DeletedUser!
  }
`;

interface Args {
  readonly login?: Maybe<string>;
}

export function adminPeopleModule({ bus, revocations }: AdminPeopleModuleOptions): GraphqlModule {
  const named = (args: Args, { caller, address }: GraphqlContext): { login: string; actor: string; ip: string } => {
    requireAdministrator(caller);
    return { login: given(args.login, 'login'), actor: actorOf(caller), ip: address };
  };
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        suspendedUsers: async (
          _: unknown,
          _args: unknown,
          { caller }: GraphqlContext,
        ): Promise<readonly SuspendedUser[]> => {
          requireAdministrator(caller);
          return (await callAuth(bus, 'users.suspended', {})).users;
        },
      },
      Mutation: {
        suspendUser: async (_: unknown, args: Args, context: GraphqlContext): Promise<SuspendedUser> => {
          const suspended = await callAuth(bus, 'user.suspend', named(args, context));
          revocations.note(revocationKeys.suspended(suspended.id));
          return suspended;
        },
        deleteUser: async (_: unknown, args: Args, context: GraphqlContext): Promise<DeletedUser> =>
          await deleteUser({ bus, revocations }, named(args, context)),
        unsuspendUser: async (_: unknown, args: Args, context: GraphqlContext): Promise<boolean> =>
          (await callAuth(bus, 'user.unsuspend', named(args, context))).lifted,
      },
    },
  };
}
