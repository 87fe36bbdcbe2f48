/** Attempts of stages: how they are named, and the processes that they are. */
import type { AttemptRef } from '@penstock/bus';

export interface Process {
  readonly ref: AttemptRef;
  readonly runner: string;
}

export function refOf({ runId, stage, attempt, session, credit }: AttemptRef): AttemptRef {
  return { runId, stage, attempt, session, credit };
}

export function keyOf({ runId, stage, attempt, session, credit }: AttemptRef): string {
  return `${runId}/${stage}/${attempt}/${session}/${credit}`;
}

/** For a line that somebody reads. */
export function short(ref: AttemptRef): string {
  return `${ref.runId.slice(-4)}/${ref.stage}#${ref.attempt} (${ref.session}/${ref.credit})`;
}
