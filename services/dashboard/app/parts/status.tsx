/** A status by a sign, a colour and a word, for no one of them is seen by everybody. */
import type { JSX } from 'preact';
import type { RunStatus } from '../api/operations.ts';

const SIGNS: Readonly<Record<RunStatus, readonly [string, string]>> = {
  PENDING: ['○', 'waits'],
  QUEUED: ['◔', 'queued'],
  RUNNING: ['◐', 'running'],
  SUCCESS: ['✓', 'passed'],
  FAILED: ['✗', 'failed'],
  SKIPPED: ['–', 'skipped'],
  CANCELLED: ['■', 'cancelled'],
};

export function wordOf(status: RunStatus): string {
  return SIGNS[status][1];
}

export function StatusSign({ status }: { readonly status: RunStatus }): JSX.Element {
  const [sign, word] = SIGNS[status];
  return (
    <span class={`sign is-${status.toLowerCase()}`} role="img" aria-label={word} title={word}>
      {sign}
    </span>
  );
}

export function StatusWord({ status }: { readonly status: RunStatus }): JSX.Element {
  const [sign, word] = SIGNS[status];
  return (
    <span class={`status is-${status.toLowerCase()}`}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
