/** The stages in time: since when each could have begun, and how long it ran. */
import type { JSX } from 'preact';
import { useContext } from 'preact/hooks';
import { rowsIn } from '../parts/drawn-part.ts';
import { Name } from '../parts/name.tsx';
import { durationOf } from '../parts/duration.ts';
import { AsOf } from '../parts/time.tsx';
import type { Run, Stage } from './stage-groups.ts';
import { useSeen } from '../parts/use-seen.ts';

interface Props {
  readonly run: Pick<Run, 'stages' | 'startedAt' | 'finishedAt'>;
  readonly chosen: string | null;
  onChoose(stage: string): void;
}

/** With what is between two; `.waterfall` in run.css has it. */
const ROW_HEIGHT = 26;

export function Waterfall({ run, chosen, onChoose }: Props): JSX.Element {
  const asOf = useContext(AsOf);
  const { box, seen, onScroll } = useSeen();
  const until = run.finishedAt ?? asOf;
  const began = Date.parse(run.startedAt);
  const ended = until === null ? Date.now() : Date.parse(until);
  const span = Math.max(1, ended - began);
  const ends = new Map(
    run.stages.map(({ name, finishedAt }) => [name, finishedAt === null ? null : Date.parse(finishedAt)]),
  );
  const shown = run.stages
    .filter(({ startedAt }) => startedAt !== null)
    .toSorted((a, b) => Date.parse(a.startedAt ?? '') - Date.parse(b.startedAt ?? ''));
  if (shown.length === 0) return <p class="faint">No stage has begun.</p>;
  const { from: first, to: last, above, below } = rowsIn(seen, shown.length, ROW_HEIGHT);
  return (
    <div ref={box} class="waterfall-frame" onScroll={onScroll}>
      <ol class="waterfall" aria-label="Stages in time" style={{ paddingBlock: `${above}px ${below}px` }}>
        {shown.slice(first, last).map((stage, index) => {
          const { ready, from, to } = times(stage, began, ended, ends);
          const percent = (ms: number): string => `${Math.max(0, Math.min(100, (ms / span) * 100))}%`;
          return (
            <li
              key={stage.name}
              class={stage.name === chosen ? 'chosen' : ''}
              aria-setsize={shown.length}
              aria-posinset={first + index + 1}
            >
              <button type="button" class="link" onClick={() => onChoose(stage.name)}>
                <Name text={stage.name} />
              </button>
              <span class="track" title={`waited ${durationOf(from - ready)}, ran ${durationOf(to - from)}`}>
                <span class="wait" style={{ left: percent(ready - began), width: percent(from - ready) }} />
                <span
                  class={`ran is-${stage.status.toLowerCase()}`}
                  style={{ left: percent(from - began), width: percent(Math.max(span / 400, to - from)) }}
                />
              </span>
              <span class="took">{durationOf(to - from)}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** A stage could have begun when the last of those before it had ended. */
function times(
  { after, startedAt, finishedAt }: Stage,
  began: number,
  ended: number,
  ends: ReadonlyMap<string, number | null>,
): { readonly ready: number; readonly from: number; readonly to: number } {
  const from = Date.parse(startedAt ?? '');
  const ready = Math.max(began, ...(after ?? []).map((name) => ends.get(name) ?? began));
  return { ready: Math.min(ready, from), from, to: finishedAt === null ? ended : Date.parse(finishedAt) };
}
