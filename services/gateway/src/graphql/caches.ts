/** What runs have left for later ones: listed and deleted; all of it is asked of who keeps the archives. */
import type { DeleteCacheAnswer, DeleteCacheRequest, ListCachesAnswer, ListCachesRequest } from '@penstock/artifacts';
import type { Bus } from '@penstock/bus';
import { requireCredential, requireOwnRuns, requireWriter } from '@penstock/identity';
import { isoTime } from '@penstock/run';
import { callService } from '@penstock/service';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

const SDL = /* GraphQL */ `
  "Files that a stage has left for later runs under a key (additional)."
  type CacheEntry {
    id: String!
    "As <provider>/<path>; null: of runs that came from no repository."
    repository: String
    "Of whose runs it is, where they came from no repository; else null."
    pipeline: String
    "Of the run that has left it; null where it had none."
    ref: String
    key: String!
    "Bytes, packed."
    sizeBytes: String!
    createdAt: String!
    lastUsedAt: String!
  }

  extend type Query {
    "Those of the caller's tenant, at most 1,000, the last used first; with 'repository' those of it alone (additional)."
    caches(repository: String): [CacheEntry!]!
  }

  extend type Mutation {
    "True where the caller's tenant had one with this id (additional)."
    deleteCache(id: String): Boolean!
  }
`;

export function cachesModule({ bus }: { readonly bus: Bus }): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        caches: async (
          _: unknown,
          { repository }: { readonly repository?: Maybe<string> },
          { caller }: GraphqlContext,
        ) => {
          requireCredential(caller);
          const [tenant = ''] = requireOwnRuns(caller);
          const request = { tenant, repository: repository ?? undefined };
          const answer = await callService<ListCachesRequest, ListCachesAnswer>(bus, 'registry', 'cache.list', request);
          return answer.caches.map(({ sizeBytes, createdAt, usedAt, ref, repository: of, pipeline, ...cache }) => ({
            ...cache,
            repository: of === '' ? null : of,
            pipeline: pipeline === '' ? null : pipeline,
            ref: ref === '' ? null : ref,
            sizeBytes: String(sizeBytes),
            createdAt: isoTime(createdAt),
            lastUsedAt: isoTime(usedAt),
          }));
        },
      },
      Mutation: {
        deleteCache: async (_: unknown, args: { readonly id?: Maybe<string> }, { caller }: GraphqlContext) => {
          const tenant = requireWriter(caller);
          const request = { tenant, id: given(args.id, 'id') };
          return (await callService<DeleteCacheRequest, DeleteCacheAnswer>(bus, 'registry', 'cache.delete', request))
            .deleted;
        },
      },
    },
  };
}
