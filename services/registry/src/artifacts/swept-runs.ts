/**
 * What the sweep learns of a run: its own document, or where it is deleted, what others have adopted of it (P30, P34). The store may
 * be behind the log, so of a run that has no document its owner is asked: what it still has in memory may name anything.
 */
import { subjects, type Bus, type OpenReply, type OpenRequest } from '@penstock/bus';
import { partitionOf, type RunId } from '@penstock/run';
import { isDamage, type DeletedRuns, type RunsRepository } from '@penstock/store';
import type { SweptRun } from './sweep.ts';

export interface SweptRunsParts {
  readonly runs: Pick<RunsRepository, 'getAsOwner'>;
  readonly deleted: Pick<DeletedRuns, 'heirsOf'>;
  /** Whether the owner of a run still has it. Rejects where nobody says so. */
  readonly isWithOwner: (runId: RunId) => Promise<boolean>;
}

/** Of one request: an owner that does not answer within it is away. */
const OWNER_MS_MAX = 5_000;
/** All of it stays. */
const UNKNOWN: SweptRun = { open: true, view: { stages: [] } };

export function sweptRuns({ runs, deleted, isWithOwner }: SweptRunsParts): (runId: string) => Promise<SweptRun | null> {
  return async (runId) => {
    const run = await documentOf(runs, runId);
    if (run !== null) return run;
    if (await isWithOwner(runId).catch(() => true)) return UNKNOWN;
    // An owner forgets a run once the store has it: it may have done so since.
    const closed = await documentOf(runs, runId);
    if (closed !== null) return closed;
    const heirs = await deleted.heirsOf(runId);
    // They cannot all be read, or one that may still name more than its document says.
    if (heirs === undefined || heirs.some(({ finishedAt }) => finishedAt === null)) return UNKNOWN;
    const stages = heirs.flatMap((heir) =>
      heir.stages.flatMap(({ artifacts }) => {
        if (artifacts?.run !== runId) return [];
        const { run: _, ...own } = artifacts;
        return [{ artifacts: own }];
      }),
    );
    return stages.length === 0 ? null : { open: false, view: { stages } };
  };
}

/** One that is damaged may name anything. */
async function documentOf(runs: SweptRunsParts['runs'], runId: string): Promise<SweptRun | null> {
  try {
    return await runs.getAsOwner(runId);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return UNKNOWN;
  }
}

/** Asks the owner of the run's partition, on the bus. */
export function askOwner(bus: Pick<Bus, 'requestRetrying'>, partitions: number): SweptRunsParts['isWithOwner'] {
  return async (runId) => {
    const subject = subjects.owner(partitionOf(runId, partitions), 'open');
    const request: OpenRequest = { runIds: [runId] };
    const reply = await bus.requestRetrying<OpenRequest, OpenReply>(subject, request, {
      deadlineMs: OWNER_MS_MAX,
      timeoutMs: OWNER_MS_MAX,
    });
    return !reply.ok || reply.open.includes(runId);
  };
}
