/** Runs as the projector hands them over, small enough to read in a test. */
import { newRunId, type RunStatus, type RunView, type StageReason, type StageView } from '@penstock/run';
import type { RunDocument } from '../src/index.ts';

export const KEY = 'service/org/repository';

/** Ids of one key, in the order of their number. */
export function runId(number: number, key = KEY): string {
  return newRunId({ now: 1_763_730_000_000 + number, key, random: new Uint8Array(8).fill(number % 256) });
}

export interface SomeRun {
  readonly id: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly pipelineName?: string;
  readonly status?: RunStatus;
  readonly partition?: number;
  readonly open?: boolean;
  readonly incarnation?: number;
  readonly sequence?: number;
  readonly version?: number;
  readonly yaml?: string;
  readonly repository?: string;
  readonly ref?: string;
  readonly commit?: string;
  readonly fingerprint?: string;
  readonly trusted?: boolean;
  /** The run that it repeats. */
  readonly parent?: string;
  readonly stages?: readonly StageView[];
}

export function runDocument(some: SomeRun): RunDocument {
  const {
    id,
    tenant = 'service',
    key = KEY,
    pipelineName = 'build',
    status = 'SUCCESS',
    version = 3,
    yaml = 'pipeline: { name: build }',
  } = some;
  const createdAt = 1_763_730_000_000;
  const { repository, ref } = some;
  const from = {
    ...(repository === undefined ? {} : { repository }),
    ...(ref === undefined ? {} : { ref }),
    ...(some.commit === undefined ? {} : { commit: some.commit }),
  };
  const lineage =
    some.parent === undefined ? {} : { lineage: { parent: some.parent, version: 1, root: some.parent, actors: [] } };
  const print = some.fingerprint === undefined ? {} : { fingerprint: some.fingerprint };
  const trust = some.trusted === undefined ? {} : { trusted: some.trusted };
  const created = { tenant, key, pipelineName, yaml, priority: 0, origin: { kind: 'api', ...from }, ...print } as const;
  return {
    partition: some.partition ?? 0,
    open: some.open ?? false,
    incarnation: some.incarnation ?? 1,
    sequence: some.sequence ?? 1,
    state: {
      id,
      ...created,
      createdAt,
      version,
      eventBytes: 0,
      status,
      held: false,
      stages: [],
      openStages: 0,
      liveAttempts: 0,
      workspaces: {},
      ...lineage,
    },
    events: [{ type: 'run_created', at: createdAt, ...created }],
    view: runView({
      id,
      tenant,
      key,
      pipelineName,
      status,
      version,
      stages: some.stages ?? [],
      ...from,
      ...print,
      ...trust,
    }),
  };
}

export function runView(some: Partial<RunView> & { readonly id: string }): RunView {
  return {
    tenant: 'service',
    key: KEY,
    pipelineName: 'build',
    status: 'SUCCESS',
    startedAt: '2025-11-21T13:00:00.000Z',
    finishedAt: null,
    outcome: null,
    reason: null,
    version: 3,
    cancelledStages: null,
    stages: [],
    ...some,
  };
}

export function stageView(
  name: string,
  status: RunStatus,
  options: { readonly secs?: number; readonly reason?: StageReason; readonly failedAttempts?: number } = {},
): StageView {
  const start = Date.parse('2025-11-21T13:00:00.000Z');
  const { secs, reason, failedAttempts } = options;
  return {
    name,
    status,
    outputs: [],
    reason: reason ?? null,
    ...(failedAttempts === undefined ? {} : { failedAttempts }),
    exitCode: null,
    attempt: 1,
    startedAt: secs === undefined ? null : new Date(start).toISOString(),
    finishedAt: secs === undefined ? null : new Date(start + secs * 1000).toISOString(),
  };
}
