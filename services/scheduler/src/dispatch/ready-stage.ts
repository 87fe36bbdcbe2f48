/** A run's stage as the dispatch sees it: what it needs, and whether it still waits. */
import type { Credit, ReadyStage } from './dispatch.ts';
import type { LiveRun } from '../run/live-run.ts';

export interface ReadyStageHost {
  /** Whether the run is still this partition's to grant. */
  has(run: LiveRun): boolean;
  /** Tells the run; false where it did not take the credit. */
  grant(run: LiveRun, stage: string, credit: Credit): boolean;
}

export function readyStageOf(run: LiveRun, stage: string, host: ReadyStageHost): ReadyStage {
  const index = run.plan.indexOf.get(stage) ?? -1;
  const planned = run.plan.stages[index];
  return {
    key: run.state.key,
    priority: run.state.priority,
    labels: planned?.definition.runsOn ?? [],
    labelSet: planned?.labelSet ?? '',
    stage,
    waits: () => host.has(run) && run.state.stages[index]?.status === 'QUEUED',
    boundTo: () => (planned?.definition.workspace === 'shared' ? run.state.workspaces[planned.labelSet] : undefined),
    grant: (credit) => host.grant(run, stage, credit),
  };
}
