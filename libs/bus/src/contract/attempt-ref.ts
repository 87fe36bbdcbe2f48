import type { AttemptRef } from './messages.ts';

/** P12: what does not match all of it is about something else. */
export function isSameAttempt(one: AttemptRef, other: AttemptRef): boolean {
  return (
    one.runId === other.runId &&
    one.stage === other.stage &&
    one.attempt === other.attempt &&
    one.session === other.session &&
    one.credit === other.credit
  );
}
