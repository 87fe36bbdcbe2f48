/** How an attempt ended, from all that is known of it when it has (P36). */
import type { StageExit, StopReason } from '@penstock/executor';
import { constants } from 'node:os';
import type { PodState } from './pod-state.ts';

export interface KnownOfPod {
  /** It was told to begin: before that nothing of it ran. */
  readonly wasBegun: boolean;
  /** The session that held it is over. */
  readonly isAbandoned: boolean;
  readonly stopped: StopReason | null;
  /** What the guard said last. */
  readonly done: { readonly code: number; readonly cause: 'exit' | 'outside' } | null;
  readonly state: PodState | null;
  /** It is not in the cluster any more. */
  readonly isGone: boolean;
}

export function endingOf({ wasBegun, isAbandoned, stopped, done, state, isGone }: KnownOfPod): StageExit {
  const stage = state?.stage;
  const terminated = stage?.kind === 'terminated' ? stage : undefined;
  // The guard knows why, and nobody else has its words in their hands.
  const guard = state?.guard.kind === 'terminated' ? state.guard : undefined;
  const isOom = terminated?.reason === 'OOMKilled';
  if (isAbandoned && done?.cause !== 'exit') return { kind: 'lost', cause: 'the session of its runner is over' };
  if (stopped !== null) return stopped === 'timeout' ? { kind: 'timeout' } : { kind: 'stopped', reason: stopped };
  if (done !== null && done.cause === 'exit') return exitOf(done.code, isOom);
  // A Pod that was ended when its stage had run out of memory has two causes; its own comes first.
  if (isOom && done === null) return { kind: 'signal', signal: 'SIGKILL', code: 137, oom: true };
  if (state?.overuse !== undefined) return { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false };
  if (state?.takenAway !== undefined || (isGone && terminated === undefined))
    return {
      kind: 'unplaced',
      reason: 'evicted',
      message: `the stage was taken away: ${state?.takenAway ?? 'its Pod was deleted by somebody'}`,
    };
  if (state?.isPastDeadline === true) return { kind: 'lost', cause: 'its Pod has reached its last deadline' };
  if (done !== null) return exitOf(done.code, isOom);
  if (terminated !== undefined) {
    const { message, reason, code } = guard ?? terminated;
    return { kind: 'lost', cause: `its container ended: ${message === '' ? `${reason}, exit code ${code}` : message}` };
  }
  return {
    kind: 'lost',
    cause: wasBegun
      ? 'its Pod did not answer any more: its node is lost or cut off'
      : (state?.waitsFor ?? 'its Pod did not run'),
  };
}

/** Of two names of one number (SIGABRT, SIGIOT) the first is the usual one. */
const signalNames = new Map<number, string>(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** A status above 128 is how a shell reports a signal. */
function exitOf(code: number, isOom: boolean): StageExit {
  const signal = code > 128 ? signalNames.get(code - 128) : undefined;
  return signal === undefined
    ? { kind: 'exit', code }
    : { kind: 'signal', signal, code, oom: isOom && signal === 'SIGKILL' };
}
