/** Whether a page is up to date. */
import type { JSX } from 'preact';
import type { StreamState } from '../api/sse.ts';

const WORDS: Readonly<Record<StreamState, string>> = {
  connecting: 'connecting …',
  open: 'live',
  broken: 'not live: trying again',
  refused: 'not live: sign in to see what happens',
  ended: 'complete',
};

export function Live({ state }: { readonly state: StreamState }): JSX.Element {
  return (
    <span class={`live is-${state}`} role="status">
      {WORDS[state]}
    </span>
  );
}
