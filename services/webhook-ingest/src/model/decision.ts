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
  /** Its tenant has more in a day than is kept whole: of the trace there is the last step. */
  readonly shortened?: true | undefined;
}

export type Decision =
  | (Decided & {
      readonly kind: 'run';
      readonly pipelineName: string;
      /** Null: the run is there, and has it. */
      readonly yaml: string | null;
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

/** Bytes of the files that it holds, about; people are shown none of them. */
export function fileBytesOf(decision: Decision): number {
  const ofRun = decision.kind === 'run' ? (decision.yaml ?? '').length + sizeOf(decision.extensions) : 0;
  const { schedule } = decision;
  return ofRun + (schedule === undefined ? 0 : schedule.yaml.length + sizeOf(schedule.extensions));
}

/** What stays of a decision whose run and schedule are with their owners. */
export function withoutFiles(decision: Decision): Decision {
  const { schedule: _, ...rest } = decision;
  return rest.kind === 'run' ? { ...rest, yaml: null, extensions: [] } : rest;
}

/** What tells what has become of it, without how that came. */
export function shortened<D extends Decision>(decision: D): D {
  const { trace } = decision;
  return { ...decision, trace: trace.slice(-1), shortened: true };
}

function sizeOf(extensions: readonly ResolvedExtension[]): number {
  return extensions.length === 0 ? 0 : JSON.stringify(extensions).length;
}

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
