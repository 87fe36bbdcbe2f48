/** What comes of a delivery. Once in the store it does not change, but for what its carrying out adds. */
import type { ResolvedExtension, ScheduleLine } from '@penstock/pipeline';
import type { StageReason } from '@penstock/run';
import type { DeliveryError } from './errors.ts';

/** One step on the way to a decision, for the person who asks why. */
export interface TraceStep {
  readonly step:
    | 'verified'
    | 'event'
    | 'address'
    | 'repository'
    | 'proved'
    | 'head'
    | 'message'
    | 'fetched'
    | 'file'
    | 'read'
    | 'matched'
    | 'schedule'
    | 'run';
  /** `no`: this step decided that nothing runs. */
  readonly passed: boolean;
  readonly detail: string;
}

/** What the file of a push wants a server to start by itself; no lines: nothing. */
export interface ScheduleFile {
  readonly lines: readonly ScheduleLine[];
  readonly source: string;
  readonly yaml: string;
  readonly extensions: readonly ResolvedExtension[];
}

interface Decided {
  /** The file's path in the repository, `server_template`, or `none`. */
  readonly source: string;
  readonly trace: readonly TraceStep[];
  /** Of a pull request: its head leaves the runs of older heads alone. */
  readonly keepsSuperseded?: boolean | undefined;
  /** Absent: the push says nothing of it. */
  readonly schedule?: ScheduleFile | undefined;
}

export type Decision =
  | (Decided & {
      readonly kind: 'run';
      readonly pipelineName: string;
      readonly yaml: string;
      readonly extensions: readonly ResolvedExtension[];
    })
  /** A run that ends as it begins. */
  | (Decided & {
      readonly kind: 'ended';
      readonly pipelineName: string;
      /** CANCELLED: the pull request has another head by now. */
      readonly status: 'SKIPPED' | 'FAILED' | 'CANCELLED';
      readonly reason?: StageReason | undefined;
      readonly error?: DeliveryError | undefined;
    })
  /** No run, unless its sender may have been promised one by now (`promised`). */
  | (Decided & {
      readonly kind: 'nothing';
      readonly status: 'Skipped' | 'Failed' | 'Ignored';
      readonly error?: DeliveryError | undefined;
    });

/** What stands for "nothing" where a run's id was answered before it was known: a run of that id that ends as it begins. */
export function promised(decision: Extract<Decision, { kind: 'nothing' }>, pipelineName: string): Decision {
  const { status, source, trace, error, schedule } = decision;
  return {
    kind: 'ended',
    pipelineName,
    source,
    trace,
    status: status === 'Failed' ? 'FAILED' : 'SKIPPED',
    ...(status === 'Failed' ? { reason: 'checkout' } : {}),
    ...(error === undefined ? {} : { error }),
    ...(schedule === undefined ? {} : { schedule }),
  };
}
