/** What a run or a stage waits for, in the server's sentences. */
import type { JSX } from 'preact';
import { Name } from '../parts/name.tsx';
import { durationOf } from '../parts/duration.ts';
import type { Run } from './stage-groups.ts';

const SHOWN_MAX = 5;

export function WaitingList({ waiting }: { readonly waiting: Run['waitingOn'] }): JSX.Element | null {
  if (waiting.length === 0) return null;
  return (
    <ul class="waiting" aria-label="What it waits for">
      {waiting.slice(0, SHOWN_MAX).map(({ kind, message, etaSecs }) => (
        <li key={`${kind} ${message}`}>
          <Name text={message} />
          {etaSecs === null ? '' : ` About ${durationOf(etaSecs * 1000)} more.`}
        </li>
      ))}
      {waiting.length > SHOWN_MAX ? <li>… and {waiting.length - SHOWN_MAX} more.</li> : null}
    </ul>
  );
}
