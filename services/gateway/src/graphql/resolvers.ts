/** From arguments to answers. Who may see what is decided by the caller's tenants, which every read is given. */
import { requireReader, type Caller } from '@penstock/identity';
import { BadUserInput } from '@penstock/http';
import { cancelRun } from '../runs/cancel.ts';
import type { Owners, RunReads } from '@penstock/run-client';
import type { Trigger, TriggerInput } from '../runs/trigger.ts';

export interface GraphqlContext {
  readonly caller: Caller;
  /** Aborted when the client has left. */
  readonly left: AbortSignal;
}

export interface ResolverOptions {
  readonly version: string;
  readonly owners: Owners;
  readonly reads: RunReads;
  readonly trigger: Trigger;
}

const RUNS_LIMIT = { default: 20, max: 100 } as const;
const HEALTH_LIMIT = { default: 50, max: 500 } as const;

type Maybe<T> = T | null | undefined;

export function makeResolvers({ version, owners, reads, trigger }: ResolverOptions) {
  return {
    Query: {
      health: () => 'ok',
      version: () => version,
      runs: (_: unknown, args: { limit?: Maybe<number> }, { caller }: GraphqlContext) =>
        reads.newest(requireReader(caller), limitOf(args.limit, RUNS_LIMIT)),
      run: (_: unknown, args: { id?: Maybe<string> }, { caller }: GraphqlContext) =>
        reads.view(given(args.id, 'id'), requireReader(caller)),
      pipelineHealth: (_: unknown, args: { pipelineName?: Maybe<string>; limit?: Maybe<number> }, { caller }: GraphqlContext) =>
        reads.health(given(args.pipelineName, 'pipelineName'), requireReader(caller), limitOf(args.limit, HEALTH_LIMIT)),
      artifacts: async (_: unknown, args: { run_id?: Maybe<string>; runId?: Maybe<string> }, { caller }: GraphqlContext) => {
        if (args.run_id != null && args.runId != null && args.run_id !== args.runId) throw new BadUserInput("'run_id' and 'runId' name different runs.");
        const run = await reads.view(given(args.run_id ?? args.runId, 'run_id'), requireReader(caller));
        return (run?.stages ?? []).flatMap((stage) => stage.outputs.map(({ key, value }) => ({ stage: stage.name, key, value })));
      },
    },
    Mutation: {
      triggerPipeline: (_: unknown, args: TriggerInput, { caller, left }: GraphqlContext) => trigger.trigger(caller, args, left),
      cancelPipeline: (_: unknown, args: { id?: Maybe<string> }, { caller }: GraphqlContext) => cancelRun(owners, reads, caller, args.id),
    },
  };
}

function given(value: Maybe<string>, name: string): string {
  if (value === null || value === undefined) throw new BadUserInput(`The argument '${name}' is missing.`);
  // Half a surrogate pair is in no name and no id, and no store takes it.
  return value.toWellFormed();
}

function limitOf(limit: Maybe<number>, bounds: { readonly default: number; readonly max: number }): number {
  if (limit === null || limit === undefined) return bounds.default;
  if (limit < 1) throw new BadUserInput(`'limit' is ${limit}; it must be 1 or more.`);
  return Math.min(limit, bounds.max);
}
