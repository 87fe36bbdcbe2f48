/** The last runs as bars: as high as they took long, in the colour of how they ended; each leads to its run. */
import type { JSX } from 'preact';
import { wordOf } from '../parts/status.tsx';
import { durationOf } from '../parts/duration.ts';
import { exact } from '../parts/time.tsx';
import { hrefOf } from '../router.ts';
import type { RunRow } from '../runs/run-rows.ts';

/** Below it a bar could be neither seen nor hit. */
const PERCENT_MIN = 14;

/** `runs` are the newest first, and drawn with the newest at the right. */
export function RunBars({ runs, max }: { readonly runs: readonly RunRow[]; readonly max: number }): JSX.Element {
  const shown = runs
    .slice(0, max)
    .toReversed()
    .map((run) => ({ run, ms: Math.max(0, Date.parse(run.finishedAt ?? run.startedAt) - Date.parse(run.startedAt)) }));
  const longest = Math.max(1, ...shown.map(({ ms }) => ms));
  return (
    <ol class="bars" aria-label="Last runs, the newest at the end">
      {shown.map(({ run, ms }) => {
        const says = `${wordOf(run.status)}${run.finishedAt === null ? '' : ` after ${durationOf(ms)}`}, ${exact(run.startedAt)}`;
        return (
          <li key={run.id}>
            <a href={hrefOf(`/runs/${run.id}`)} title={says} aria-label={says}>
              <span
                class={`bar-of is-${run.status.toLowerCase()}`}
                style={{ height: `${PERCENT_MIN + (100 - PERCENT_MIN) * (ms / longest)}%` }}
              />
            </a>
          </li>
        );
      })}
    </ol>
  );
}
