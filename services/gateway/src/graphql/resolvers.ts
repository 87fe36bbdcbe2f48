/** Resolves the fields of runs. Who may see what is decided by the caller's tenants, which every read is given. */
import { actorOf, requireOwnRuns, requireReader } from '@penstock/identity';
import { BadUserInput } from '@penstock/errors';
import type { AuditLog, RunsReader } from '@penstock/store';
import { isEnded, type RunView, type StageView } from '@penstock/run';
import type { GraphQLResolveInfo } from 'graphql';
import { approveRun } from '../runs/approve.ts';
import { cancelRun } from '../runs/cancel.ts';
import type { Owners, RunReads } from '@penstock/run-client';
import type { UsesResolver } from '../runs/extensions.ts';
import type { DispatchArguments, Trigger, TriggerArguments } from '../runs/trigger.ts';
import { validatePipeline, type ValidateArguments } from '../runs/validate.ts';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import { audited, targetOf } from './audited.ts';
import { pageOf, stagesPage, type RunsArguments, type StagesArguments } from './run-pages.ts';
import { runAtVersion, stagesOfRun } from './history.ts';
import { objectBytesMin, selectsField } from './selection.ts';
import { VERDICT_FIELDS } from './verdicts.ts';
import { artifactsOf } from '../artifacts/listing.ts';
import type { People } from '../people/people.ts';
import type { KeptFiles } from '../artifacts/kept-files.ts';
import type { Backups } from '../admin/backups.ts';
import type { RefusalAudit } from '../audit/refusal-audit.ts';
import type { IdentityModuleOptions } from './identity.ts';

export type { GraphqlContext } from './arguments.ts';

export interface GraphqlOptions {
  readonly version: string;
  readonly owners: Owners;
  readonly store: RunsReader;
  readonly reads: RunReads;
  readonly trigger: Trigger;
  readonly uses: UsesResolver;
  readonly identity: IdentityModuleOptions;
  readonly audit: AuditLog;
  readonly kept: KeptFiles;
  readonly people: People;
  readonly refusalAudit: RefusalAudit;
  readonly backups: Backups | undefined;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** Those who are asked for what their run knows are to know their run. */
function pageOfStages(run: RunView, args: StagesArguments, info: GraphQLResolveInfo): readonly StageView[] {
  const stages = stagesPage(run, args);
  if (selectsField(info, 'attempts') || selectsField(info, 'waitingOn')) stagesOfRun(run, stages);
  return stages;
}

const HEALTH_LIMIT = { default: 50, max: 500 } as const;

export function makeResolvers(options: GraphqlOptions) {
  const { version, owners, store, reads, trigger, uses, audit, kept, people, now } = options;
  return {
    Query: {
      health: () => 'ok',
      version: () => version,
      runs: (_: unknown, args: RunsArguments, { caller, work }: GraphqlContext, info: GraphQLResolveInfo) => {
        const tenants = requireReader(caller);
        work.isAboutChanges = true;
        const withStages = ['stages', ...VERDICT_FIELDS].some((field) => selectsField(info, field));
        const page = { ...pageOf(args), withStages, meter: withStages ? work.keep : work.look };
        return work.read(() => reads.newest(tenants, page));
      },
      run: async (
        _: unknown,
        args: { id?: Maybe<string>; atVersion?: Maybe<number> },
        { caller, work }: GraphqlContext,
      ) => {
        const run = await reads.view(given(args.id, 'id'), requireReader(caller), () => people.namesOf(caller));
        work.isAboutChanges ||= run === null || !isEnded(run.status);
        work.isOfAnother ||= run !== null && !caller.readTenants.includes(run.tenant);
        const version = args.atVersion;
        return run === null || version == null
          ? run
          : await work.read(() => runAtVersion({ owners, store }, run, version));
      },
      pipelineHealth: (
        _: unknown,
        args: { pipelineName?: Maybe<string>; limit?: Maybe<number> },
        { caller, work }: GraphqlContext,
      ) => {
        const name = given(args.pipelineName, 'pipelineName');
        const tenants = requireOwnRuns(caller);
        work.isAboutChanges = true;
        const window = { limit: limitOf(args.limit, HEALTH_LIMIT), meter: work.keep };
        return work.read(() => reads.health(name, tenants, window));
      },
      validatePipeline: (_: unknown, args: ValidateArguments, { caller }: GraphqlContext) =>
        validatePipeline(caller, args, uses, now),
      artifacts: async (
        _: unknown,
        args: { run_id?: Maybe<string>; runId?: Maybe<string>; stage?: Maybe<string> },
        { caller, work }: GraphqlContext,
      ) => {
        if (args.run_id != null && args.runId != null && args.run_id !== args.runId)
          throw new BadUserInput("'run_id' and 'runId' name different runs.");
        const runId = given(args.run_id ?? args.runId, 'run_id');
        const run = await reads.view(runId, requireReader(caller), () => people.namesOf(caller));
        return run === null ? [] : await work.read(() => artifactsOf(run, kept, args.stage ?? undefined));
      },
    },
    PipelineRun: {
      inputs: (run: RunView) => run.inputs ?? [],
      // Runs of releases before the fields: those from a repository were pushed.
      trigger: (run: RunView) => run.trigger ?? (run.repository === undefined ? 'api' : 'push'),
      trusted: (run: RunView) => run.trusted ?? true,
      stages: (run: RunView, args: StagesArguments, { work }: GraphqlContext, info: GraphQLResolveInfo) =>
        work.stages(pageOfStages(run, args, info), objectBytesMin(info)),
    },
    Mutation: {
      triggerPipeline: (_: unknown, args: TriggerArguments, { caller, clientGone }: GraphqlContext) =>
        trigger.trigger(caller, args, clientGone),
      dispatchPipeline: (_: unknown, args: DispatchArguments, { caller, clientGone }: GraphqlContext) =>
        trigger.dispatch(caller, args, clientGone),
      cancelPipeline: async (_: unknown, args: { id?: Maybe<string> }, { caller, address }: GraphqlContext) => {
        const [actor, target] = [actorOf(caller), targetOf(args.id)];
        return audited(cancelRun(owners, reads, caller, args.id), (outcome) =>
          audit.record({ at: now(), actor, action: 'run.cancel', target, outcome, ip: address }),
        );
      },
      approveRun: async (_: unknown, args: { id?: Maybe<string> }, { caller, address }: GraphqlContext) => {
        const [actor, target] = [actorOf(caller), targetOf(args.id)];
        return audited(approveRun(owners, reads, caller, args.id), (outcome) =>
          audit.record({ at: now(), actor, action: 'run.approve', target, outcome, ip: address }),
        );
      },
    },
  };
}
