/** Runs that repeat others (P30): `rerunPipeline`, and what a run and its stages say about it. */
import { Unavailable } from '@penstock/errors';
import { actorOf } from '@penstock/identity';
import { isReached, runIdTime, type RunId, type RunView, type StageView } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';
import type { AuditLog } from '@penstock/store';
import type { RerunArguments } from '../runs/rerun.ts';
import type { Trigger, TriggerResult } from '../runs/trigger.ts';
import type { GraphqlContext } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { toldUntil } from './history.ts';

export interface RerunsOptions {
  readonly trigger: Pick<Trigger, 'rerun'>;
  readonly reads: RunReads;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const SDL = /* GraphQL */ `
  extend type PipelineRun {
    "The run that this one repeats; null where it repeats none (additional)."
    parentRunId: String
    "The first run of the lineage; null where it repeats none (additional)."
    rootRunId: String
    "The runs that repeat this one, the oldest first, 100 at most (additional)."
    children: [String!]!
  }

  extend type StageRun {
    "It succeeded in the run that this one repeats and did not run in this one: its outputs and kept files are that run's (additional)."
    adopted: Boolean!
  }

  extend type Mutation {
    """
    Makes a new run of an earlier one, at its commit and with its extensions; the earlier one may go on, and is not changed. All stages run
    again; or, with 'onlyFailed', those that did not succeed and all that come after them; or, with 'from', those named and all that
    come after them (the name of a matrix, of an extension or of a stage that has added others means all of it). The other stages that
    succeeded are adopted, every gate before a stage that runs is decided anew. 'inputs' take the place of the earlier run's values,
    'yaml' that of its file: then a stage is adopted only where it and all
    before it are the same, and no secret of the repository is given. CONFLICT where there is nothing to run. The rest as in triggerPipeline;
    a repeat with the same 'runId' and another 'from' or 'onlyFailed' is answered with the first one's run (additional).
    """
    rerunPipeline(
      id: String
      from: [String!]
      onlyFailed: Boolean
      inputs: [KeyValueInput!]
      yaml: String
      waitSeconds: Int
      runId: String
    ): TriggerResult!
  }
`;

export function rerunsModule({ trigger, reads, audit, now }: RerunsOptions): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Mutation: {
        rerunPipeline: async (
          _: unknown,
          args: RerunArguments,
          { caller, address, clientGone }: GraphqlContext,
        ): Promise<TriggerResult> => {
          const record = (runId: unknown, outcome: string): void => {
            const target = `${args.id ?? ''} ${String(runId)}`;
            audit.record({ at: now(), actor: actorOf(caller), action: 'run.rerun', target, outcome, ip: address });
          };
          try {
            const result = await trigger.rerun(caller, args, clientGone);
            record(result.run.id, 'ok');
            return result;
          } catch (error) {
            // It names a run that may come all the same: nobody waited for its delivery to be decided, or an owner did not answer.
            if (error instanceof Unavailable && 'runId' in error.extensions)
              record(error.extensions['runId'], error.code);
            throw error;
          }
        },
      },
      PipelineRun: {
        parentRunId: ({ lineage }: RunView) => lineage?.parent ?? null,
        rootRunId: ({ lineage }: RunView) => lineage?.root ?? null,
        // Whoever may see the run for a gate of it alone is not told of others.
        children: async (run: RunView, _: unknown, { caller, work }: GraphqlContext) => {
          if (!isReached(caller.readTenants, run)) return [];
          const children = await work.read(() => reads.children(run));
          if (children.length === 0) return [];
          const until = await work.read(() => toldUntil(run));
          return until === undefined ? children : children.filter((id) => runIdTime(id as RunId) <= until);
        },
      },
      StageRun: { adopted: ({ adopted }: StageView) => adopted === true },
    },
  };
}
