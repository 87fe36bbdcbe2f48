/** Who else may work on a repository that a user has connected: auth keeps it, the ingest knows what is connected. */
import type { Bus, ConnectionView, IngestCalls } from '@penstock/bus';
import { BadUserInput, Forbidden, NotFound } from '@penstock/errors';
import {
  actorOf,
  callAuth,
  requireUser,
  tenantOfUser,
  type AccessEntry,
  type Caller,
  type Grant,
  type OwnedRepository,
  type Revocations,
} from '@penstock/identity';
import { callService } from '@penstock/service';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AccessModuleOptions {
  readonly bus: Bus;
  readonly revocations: Pick<Revocations, 'accessChanged'>;
}

const SDL = /* GraphQL */ `
  "Somebody who may work on a repository that another has connected (additional)."
  type AccessEntry {
    "A login at the identity provider, or an email address that it has verified; in lower case."
    login: String!
    "read, trigger, approve or admin: each may what those before it may."
    role: String!
    "Who has given it last, as the audit log names people."
    grantedBy: String!
    grantedAt: String!
  }

  "A repository of somebody else's that the caller may work on (additional)."
  type SharedRepository {
    provider: String!
    repository: String!
    role: String!
    "Whose runs they are."
    tenant: String!
  }

  extend type Query {
    "Who else may work on a repository: its id, <provider>/<path> or its path; for who has connected it and for its admins (additional)."
    access(repository: String): [AccessEntry!]!
    "What others let the caller work on (additional)."
    sharedRepositories: [SharedRepository!]!
  }

  extend type Mutation {
    "Lets somebody see that repository's runs (read), start and cancel them (trigger), decide for its people (approve), or also let others in and delete runs (admin). A role given before is replaced (additional)."
    grantAccess(repository: String, login: String, role: String): AccessEntry!
    "From the answer on; false where there was no access (additional)."
    revokeAccess(repository: String, login: String): Boolean!
    "The caller gives up what others let it do there (additional)."
    leaveRepository(repository: String): Boolean!
  }
`;

type Named = Pick<OwnedRepository, 'provider' | 'repository'>;

export function accessModule({ bus, revocations }: AccessModuleOptions): GraphqlModule {
  const connectionsOf = async (userId: string): Promise<readonly ConnectionView[]> =>
    (
      await callService<IngestCalls['connections']['request'], IngestCalls['connections']['answer']>(
        bus,
        'webhook-ingest',
        'connections',
        { userId },
      )
    ).repositories;

  /** A repository whose people the caller may say. */
  const managed = async (caller: Caller, name: string): Promise<OwnedRepository | null> => {
    const { id: userId } = requireUser(caller);
    const own = (await connectionsOf(userId)).filter((one) => one.id === name || isNamed(one, name));
    const only = onlyOne(own, name);
    if (only !== null) return { tenant: tenantOfUser(userId), provider: only.provider, repository: only.repository };
    const grants = (caller.grants ?? []).filter((grant) => isNamed(grant, name));
    const admin = onlyOne(
      grants.filter(({ role }) => role === 'admin'),
      name,
    );
    if (admin !== null) return { tenant: admin.tenant, provider: admin.provider, repository: admin.repository };
    if (grants.length > 0)
      throw new Forbidden(
        `Your role at '${name.slice(0, 200)}' is ${grants[0]?.role}; to say who has access takes admin.`,
      );
    return null;
  };
  /** As `managed`, and one that the caller has disconnected: what is left of it can still be taken away. */
  const managedOrLeft = async (caller: Caller, name: string): Promise<OwnedRepository> => {
    const slash = name.indexOf('/');
    const found = await managed(caller, name);
    if (found !== null) return found;
    if (slash < 1 || !name.includes('/', slash + 1)) throw unknown(name);
    const tenant = tenantOfUser(requireUser(caller).id);
    return { tenant, provider: name.slice(0, slash), repository: name.slice(slash + 1) };
  };
  const asker = ({ caller, address }: GraphqlContext): { readonly actor: string; readonly ip: string } => ({
    actor: actorOf(caller),
    ip: address,
  });

  return {
    sdl: SDL,
    resolvers: {
      Query: {
        access: async (_: unknown, args: { repository?: Maybe<string> }, { caller }: GraphqlContext) => {
          requireUser(caller);
          const of = await managedOrLeft(caller, given(args.repository, 'repository'));
          return (await callAuth(bus, 'access.list', of)).access;
        },
        sharedRepositories: async (_: unknown, _args: unknown, { caller }: GraphqlContext): Promise<readonly Grant[]> =>
          (await callAuth(bus, 'access.of', { userId: requireUser(caller).id })).grants,
      },
      Mutation: {
        grantAccess: async (
          _: unknown,
          args: { repository?: Maybe<string>; login?: Maybe<string>; role?: Maybe<string> },
          context: GraphqlContext,
        ): Promise<AccessEntry> => {
          requireUser(context.caller);
          const name = given(args.repository, 'repository');
          const [login, role] = [given(args.login, 'login'), given(args.role, 'role')];
          const of = await managed(context.caller, name);
          if (of === null) throw unknown(name);
          return await callAuth(bus, 'access.grant', { ...of, login, role, ...asker(context) });
        },
        revokeAccess: async (
          _: unknown,
          args: { repository?: Maybe<string>; login?: Maybe<string> },
          context: GraphqlContext,
        ) => {
          requireUser(context.caller);
          const name = given(args.repository, 'repository');
          const login = given(args.login, 'login');
          const of = await managedOrLeft(context.caller, name);
          return (await callAuth(bus, 'access.revoke', { ...of, login, ...asker(context) })).revoked;
        },
        leaveRepository: async (_: unknown, args: { repository?: Maybe<string> }, context: GraphqlContext) => {
          const { id: userId } = requireUser(context.caller);
          const name = given(args.repository, 'repository');
          const { grants } = await callAuth(bus, 'access.of', { userId });
          const left = grants.filter((grant) => isNamed(grant, name));
          for (const { tenant, provider, repository } of left)
            await callAuth(bus, 'access.leave', { tenant, provider, repository, userId, ...asker(context) });
          revocations.accessChanged(userId);
          return left.length > 0;
        },
      },
    },
  };
}

/** By `<provider>/<path>`, or by the path alone. */
function isNamed({ provider, repository }: Named, name: string): boolean {
  return [`${provider}/${repository}`, repository].some((one) => one.toLowerCase() === name.toLowerCase());
}

function onlyOne<T extends Named>(found: readonly T[], name: string): T | null {
  if (found.length > 1)
    throw new BadUserInput(
      `'${name.slice(0, 200)}' means several repositories: write <provider>/<path>, or the id that 'repositories' shows.`,
      { field: 'repository' },
    );
  return found[0] ?? null;
}

function unknown(name: string): NotFound {
  return new NotFound(`You have connected no repository '${name.slice(0, 200)}'.`);
}
