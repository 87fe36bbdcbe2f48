/** A run as it stood after each of its events: a slider over its versions, and what happened at the one that is looked at. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { useKeys } from '../parts/keys.ts';
import { Name } from '../parts/name.tsx';
import { StatusWord } from '../parts/status.tsx';
import { AsOf, exact } from '../parts/time.tsx';
import { go, withQuery } from '../router.ts';
import type { Run } from './stage-groups.ts';

/** Of a slider that is drawn along only the places where it rests are asked for. */
const RESTS_MS = 120;

interface Props {
  readonly run: Run;
  /** The version that is looked at. */
  readonly at: number;
  children(past: Pick<Run, 'stages' | 'startedAt' | 'finishedAt'>): ComponentChildren;
}

export function Scrubber({ run, at, children }: Props): JSX.Element {
  const wanted = useSignal(at);
  const asked = useAsked('RunMoment', { id: run.id, atVersion: at, after: at - 1 });
  useEffect(() => {
    wanted.value = at;
  }, [at]);
  useEffect(() => {
    if (wanted.value === at) return;
    const timer = setTimeout(() => go(withQuery({ at: String(wanted.value) }), { replace: true }), RESTS_MS);
    return () => clearTimeout(timer);
  }, [wanted.value]);
  const step = (by: number): void => {
    wanted.value = Math.max(1, Math.min(run.version, wanted.peek() + by));
  };
  useKeys([
    { key: '[', says: 'One event back in time', run: () => step(-1) },
    { key: ']', says: 'One event on', run: () => step(1) },
  ]);
  return (
    <>
      <div class="scrubber row">
        <button type="button" class="quiet" aria-label="One event back" onClick={() => step(-1)}>
          ‹
        </button>
        <input
          class="grow"
          type="range"
          min={1}
          max={run.version}
          value={wanted.value}
          aria-label="Version of the run"
          onInput={(event) => (wanted.value = event.currentTarget.valueAsNumber)}
        />
        <button type="button" class="quiet" aria-label="One event on" onClick={() => step(1)}>
          ›
        </button>
        <span class="faint">
          {wanted.value.toLocaleString()} of {run.version.toLocaleString()}
        </span>
      </div>
      <WhenAsked asked={asked} what="the run as it stood">
        {({ run: past, runEvents: [event] }) =>
          past === null ? null : (
            <AsOf.Provider value={event?.at ?? null}>
              <p class="row moment" role="status">
                <StatusWord status={past.status} />
                {event === undefined ? null : (
                  <>
                    <span class="grow">
                      <Name text={event.summary} />
                    </span>
                    <time class="faint" dateTime={event.at}>
                      {exact(event.at)}
                    </time>
                  </>
                )}
              </p>
              {children({ ...past, startedAt: run.startedAt })}
            </AsOf.Provider>
          )
        }
      </WhenAsked>
    </>
  );
}
