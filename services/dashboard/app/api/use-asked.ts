/** What a page has asked for: its data, or what went wrong, and a way to ask again. */
import { useSignal, useSignalEffect, type ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { isSignedIn } from '../session/session.ts';
import { ask, type OperationName } from './graphql.ts';
import { problemFrom, type Problem } from './http.ts';
import type { Operations } from './operations.ts';

export interface Asked<Data> {
  readonly data: ReadonlySignal<Data | null>;
  readonly problem: ReadonlySignal<Problem | null>;
  again(): void;
}

/** Asks when it is first used, when who is signed in changes, and when `variables` are others. */
export function useAsked<Name extends OperationName>(
  name: Name,
  variables: Operations[Name]['variables'],
): Asked<Operations[Name]['data']> {
  const data = useSignal<Operations[Name]['data'] | null>(null);
  const problem = useSignal<Problem | null>(null);
  const times = useSignal(0);
  const text = useSignal('');
  text.value = JSON.stringify(variables);
  const latest = useRef(variables);
  latest.current = variables;
  const askedAs = useRef(isSignedIn.peek());
  useSignalEffect(() => {
    void [times.value, text.value];
    // What one user has been told is not the next one's to see, nor anybody's who is not signed in.
    if (isSignedIn.value !== askedAs.current) data.value = null;
    askedAs.current = isSignedIn.value;
    const stop = new AbortController();
    void ask(name, latest.current, stop.signal).then(
      (answer) => {
        if (stop.signal.aborted) return;
        data.value = answer;
        problem.value = null;
      },
      (error: unknown) => {
        if (!stop.signal.aborted) problem.value = problemFrom(error);
      },
    );
    return () => stop.abort();
  });
  return { data, problem, again: () => (times.value += 1) };
}
