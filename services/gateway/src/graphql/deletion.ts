/** `deleteRun`. */
import { actorOf } from '@penstock/identity';
import type { Owners, RunReads } from '@penstock/run-client';
import type { AuditLog } from '@penstock/store';
import { deleteRun } from '../runs/delete.ts';
import type { GraphqlContext, Maybe } from './arguments.ts';
import { audited, targetOf } from './audited.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface DeletionOptions {
  readonly owners: Owners;
  readonly reads: RunReads;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  extend type Mutation {
    """
    Deletes a run that has ended, with its logs, kept files and test reports; what another run has adopted of it stays with that one. Answers
    'true' once nobody can see it any more, and nothing makes it anew: neither its 'runId' nor its delivery. For whoever may cancel it;
    NOT_FOUND where it is deleted already, CONFLICT where it has not ended, or a run that repeats it still takes over from it (additional).
    """
    deleteRun(id: String): Boolean!
  }
`;

export function deletionModule({ owners, reads, audit, now }: DeletionOptions): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Mutation: {
        deleteRun: async (
          _: unknown,
          args: { id?: Maybe<string> },
          { caller, address, work }: GraphqlContext,
        ): Promise<boolean> => {
          // Also where it fails: it may be deleted all the same.
          work.removesRuns = true;
          const [actor, target] = [actorOf(caller), targetOf(args.id)];
          await audited(deleteRun(owners, reads, caller, args.id), (outcome) =>
            audit.record({ at: now(), actor, action: 'run.delete', target, outcome, ip: address }),
          );
          return true;
        },
      },
    },
  };
}
