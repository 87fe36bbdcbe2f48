/**
 * How an attempt ended, for whoever reports it: the runner and `penstock run` judge alike. Remarks for the stage's log are
 * handed to the caller, since only it knows where that log goes.
 */
import { BadOutputs, TooLargeOutputs } from '../contract/errors.ts';
import type { StageExit } from '../contract/port.ts';
import { readOutputs } from '../output/outputs.ts';

export type VerdictReason =
  | 'exit'
  | 'signal'
  | 'oom'
  | 'timeout'
  | 'cancelled'
  | 'checkout'
  | 'image'
  | 'service'
  | 'artifacts'
  | 'quota'
  | 'evicted'
  | 'secret'
  | 'pipeline_file'
  | 'runner_lost';

export interface AttemptVerdict {
  readonly status: 'success' | 'failed';
  /** Of a failure. `runner_lost`: the machinery failed, not the stage. */
  readonly reason?: VerdictReason | undefined;
  readonly exitCode?: number | undefined;
  /** Absent where the attempt published none. */
  readonly outputs?: Readonly<Record<string, string>> | undefined;
}

export interface JudgedAttempt {
  /** Of the stage, as its author wrote it; a remark names it. */
  readonly timeoutMs: number;
  readonly outputFile: string;
  /** The outputs that the stage declares. */
  readonly declared: readonly string[];
  /** Called where there is no such file. */
  readonly onNoFile?: (() => void) | undefined;
  /** Takes a line for the stage's log, without its line feed. */
  readonly remark: (text: string) => void;
}

/** The verdict on an attempt whose processes are gone, with the outputs that it has published. */
export function judgeAttempt(exit: StageExit, attempt: JudgedAttempt): AttemptVerdict {
  return withOutputs(verdictOf(exit, attempt), attempt);
}

/** The verdict on an ending alone: for an attempt that has come to no process, and so has no outputs. */
export function verdictOf(
  exit: StageExit,
  { timeoutMs, remark }: Pick<JudgedAttempt, 'timeoutMs' | 'remark'>,
): AttemptVerdict {
  switch (exit.kind) {
    case 'exit':
      return exit.code === 0 ? { status: 'success', exitCode: 0 } : failedBecause('exit', exit.code);
    case 'signal':
      if (exit.oom) remark('the stage was killed: it ran out of memory');
      return failedBecause(exit.oom ? 'oom' : 'signal', exit.code);
    case 'timeout':
      remark(`the stage was stopped: it did not end within ${timeoutMs / 1000} s`);
      return failedBecause('timeout');
    case 'stopped':
      return failedBecause(exit.reason);
    case 'unplaced':
      remark(exit.message);
      return failedBecause(exit.reason);
    case 'lost':
      remark(`the stage was lost: ${exit.cause}`);
      return failedBecause('runner_lost');
  }
}

export function failedBecause(reason: VerdictReason, exitCode?: number): AttemptVerdict {
  return { status: 'failed', reason, ...(exitCode === undefined ? {} : { exitCode }) };
}

/** Outputs that cannot be understood fail a stage: the stages after it would work with nothing. */
function withOutputs(
  verdict: AttemptVerdict,
  { outputFile, declared, onNoFile, remark }: JudgedAttempt,
): AttemptVerdict {
  try {
    const { outputs, warnings, isThere } = readOutputs(outputFile, declared);
    if (!isThere) onNoFile?.();
    for (const warning of warnings) remark(warning);
    return Object.keys(outputs).length === 0 ? verdict : { ...verdict, outputs };
  } catch (error) {
    if (!(error instanceof BadOutputs)) throw error;
    remark(error.message);
    if (verdict.status !== 'success') return verdict;
    return error instanceof TooLargeOutputs ? failedBecause('quota') : failedBecause('exit', 0);
  }
}
