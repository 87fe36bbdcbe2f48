/** A runner's executors with what each is made with. */
import { join } from 'node:path';
import { defaultLimits, type StageLimits } from '@penstock/executor';
import { RUNNER_LEASE_MS } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { ExecutorParts, ExecutorSource, UidRange } from './executor-source.ts';
import { processSource } from './process-source.ts';

interface Owner {
  readonly executors?: readonly ExecutorSource[] | undefined;
  readonly runnerId: string;
  readonly dataDir: string;
  readonly leftoversFile?: string | undefined;
  readonly stageUids?: UidRange | undefined;
  readonly deniedHosts?: readonly string[] | undefined;
  readonly stagePaths?: readonly string[] | undefined;
  readonly stageLimits?: Partial<StageLimits> | undefined;
  readonly slots: number;
  readonly leaseMs?: number | undefined;
  readonly log: Log;
}

export interface ExecutorWithParts {
  readonly source: ExecutorSource;
  readonly parts: ExecutorParts;
}

export function executorsOf(owner: Owner): readonly ExecutorWithParts[] {
  const { executors = [processSource], runnerId, dataDir, slots, log, deniedHosts = [], stagePaths = [] } = owner;
  const { leaseMs = RUNNER_LEASE_MS } = owner;
  const leftoversFile = owner.leftoversFile ?? join(dataDir, 'runner', 'leftovers');
  const hasStageUsers = hasUsers(owner);
  const limits = { ...defaultLimits(dataDir, slots), ...owner.stageLimits };
  return executors.map((source) => ({
    source,
    parts: {
      runnerId,
      dataDir,
      leftoversFile: source.kind === 'process' ? leftoversFile : `${leftoversFile}-${source.kind}`,
      hasStageUsers,
      stageUsers: hasStageUsers ? owner.stageUids : undefined,
      deniedHosts,
      stagePaths,
      limits,
      limitsSet: owner.stageLimits ?? {},
      slots,
      leaseMs,
      log,
    },
  }));
}

/** Only root can give a stage a user of its own. */
export function hasUsers({ stageUids }: Pick<Owner, 'stageUids'>): boolean {
  return stageUids !== undefined && process.getuid?.() === 0;
}
