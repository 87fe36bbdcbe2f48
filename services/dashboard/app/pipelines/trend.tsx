/** How long runs took over time: of the last runs up to each, the middle one and the slow end. */
import type { JSX } from 'preact';
import { durationOf } from '../parts/duration.ts';
import { exact } from '../parts/time.tsx';
import { trendOf } from './durations.ts';
import type { RunRow } from '../runs/run-rows.ts';

const WINDOW = 20;
/** Of fewer a line says nothing that the bars do not. */
const POINTS_MIN = 5;
const FIELD = { width: 720, height: 150, margin: 6 } as const;

export function Trend({ runs }: { readonly runs: readonly RunRow[] }): JSX.Element {
  const points = trendOf(runs, WINDOW);
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || points.length < POINTS_MIN)
    return <p class="faint">There is a line here once five runs have succeeded or failed.</p>;
  const top = Math.max(1, ...points.map(({ p95Ms }) => p95Ms));
  const lineOf = (valueOf: (point: (typeof points)[number]) => number): string =>
    points
      .map((point, index) => {
        const x = FIELD.margin + (index / (points.length - 1)) * (FIELD.width - 2 * FIELD.margin);
        const y = FIELD.height - FIELD.margin - (valueOf(point) / top) * (FIELD.height - 2 * FIELD.margin);
        return `${index === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
      })
      .join('');
  const says = `p50 went from ${durationOf(first.p50Ms)} to ${durationOf(last.p50Ms)}, p95 from ${durationOf(first.p95Ms)} to ${durationOf(last.p95Ms)}`;
  return (
    <figure class="trend">
      <svg viewBox={`0 0 ${FIELD.width} ${FIELD.height}`} preserveAspectRatio="none" role="img" aria-label={says}>
        <path class="p95" d={lineOf(({ p95Ms }) => p95Ms)} />
        <path class="p50" d={lineOf(({ p50Ms }) => p50Ms)} />
      </svg>
      <figcaption>
        <span class="key p50">p50 {durationOf(last.p50Ms)}</span>
        <span class="key p95">p95 {durationOf(last.p95Ms)}</span>
        <span class="faint">
          of each {WINDOW} runs, {exact(first.at)} to {exact(last.at)}; the top is {durationOf(top)}
        </span>
      </figcaption>
    </figure>
  );
}
