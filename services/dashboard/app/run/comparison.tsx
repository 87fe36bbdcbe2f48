/** Two runs side by side: what they were for, and what became of each stage. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { First } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { Empty } from '../parts/states.tsx';
import { StatusWord } from '../parts/status.tsx';
import { durationOf } from '../parts/duration.ts';
import { exact, Lasted } from '../parts/time.tsx';
import { hrefOf } from '../router.ts';
import { shortRef } from '../runs/runs-page.tsx';
import { setTitle } from '../parts/title.ts';

type Compared = Operations['CompareRuns']['data'];
type Side = NonNullable<Compared['one']>;
type Row = Compared['compareRuns'][number];

/** Less than this is the noise of any machine. */
const SLOWER_MS = 1_000;

export function ComparePage({ a, b }: { readonly a: string; readonly b: string }): JSX.Element {
  setTitle('Two runs');
  if (a === '' || b === '')
    return (
      <Empty title="Two runs are compared">
        <p>
          Open one of them, and choose the other below it. <a href={hrefOf('/runs')}>Go to the runs</a>
        </p>
      </Empty>
    );
  return (
    <>
      <div class="head">
        <h1>Two runs</h1>
        <a href={hrefOf(`/compare?${new URLSearchParams({ a: b, b: a }).toString()}`)}>The other way round</a>
      </div>
      <Comparison a={a} b={b} />
    </>
  );
}

export function Comparison({ a, b }: { readonly a: string; readonly b: string }): JSX.Element {
  const asked = useAsked('CompareRuns', { a, b });
  const isWhole = useSignal(false);
  return (
    <WhenAsked asked={asked} what="the comparison">
      {({ one, other, compareRuns }) => {
        if (one === null || other === null)
          return <p class="problem">One of them is not here: it may be somebody else’s, or be gone.</p>;
        const changed = compareRuns.filter((row) => row.change !== 'same' || Math.abs(slowerMs(row)) >= SLOWER_MS);
        return (
          <>
            <Sides one={one} other={other} />
            <p class="row">
              <span class="grow">
                {changed.length === 0
                  ? 'No stage went another way.'
                  : `${changed.length.toLocaleString()} of ${compareRuns.length.toLocaleString()} stages went another way, or took a second more or less.`}
              </span>
              <button
                type="button"
                class="quiet"
                aria-pressed={isWhole.value}
                onClick={() => (isWhole.value = !isWhole.value)}
              >
                All stages
              </button>
            </p>
            {isWhole.value || changed.length > 0 ? <Rows rows={isWhole.value ? compareRuns : changed} /> : null}
          </>
        );
      }}
    </WhenAsked>
  );
}

function Sides({ one, other }: { readonly one: Side; readonly other: Side }): JSX.Element {
  const rows: readonly (readonly [string, (side: Side) => string])[] = [
    ['Began', ({ startedAt }) => exact(startedAt)],
    ['By', ({ actor, trigger }) => actor ?? trigger],
    ['For', ({ repository, ref }) => [repository ?? '', ref === null ? '' : shortRef(ref)].join(' ').trim()],
    ['Commit', ({ commit }) => commit?.slice(0, 12) ?? ''],
    ['Inputs', ({ inputs }) => inputs.map(({ key, value }) => `${key}=${value}`).join(' ')],
  ];
  return (
    <div class="table-frame tall sides" tabIndex={0} role="group" aria-label="The two runs">
      <table>
        <thead>
          <tr>
            <th scope="col">
              <span class="unsaid">What</span>
            </th>
            {[one, other].map((side, index) => (
              <th scope="col" key={index}>
                <a href={hrefOf(`/runs/${side.id}`)}>
                  <Name text={side.pipelineName} />
                </a>{' '}
                <StatusWord status={side.status} /> <Lasted from={side.startedAt} to={side.finishedAt} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows
            .map(([title, textOf]) => [title, textOf(one), textOf(other)] as const)
            .filter(([, left, right]) => left !== '' || right !== '')
            .map(([title, left, right]) => (
              <tr key={title} class={left === right ? '' : 'differs'}>
                <th scope="row">{title}</th>
                <td>
                  <Name text={left} />
                </td>
                <td>
                  <Name text={right} />
                </td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  );
}

function Rows({ rows }: { readonly rows: readonly Row[] }): JSX.Element {
  return (
    <First rows={rows}>
      {(shown) => (
        <div class="table-frame tall" tabIndex={0} role="group" aria-label="Stages of both">
          <table class="stage-table">
            <thead>
              <tr>
                <th scope="col">Stage</th>
                <th scope="col">Change</th>
                <th scope="col">Before</th>
                <th scope="col">Now</th>
                <th scope="col">Took longer</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((row) => (
                <tr key={row.stage}>
                  <th scope="row">
                    <Name text={row.stage} />
                  </th>
                  <td class={row.change === 'broken' ? 'bad-word' : row.change === 'fixed' ? 'good' : ''}>
                    {row.change}
                  </td>
                  {[row.a, row.b].map((side, index) => (
                    <td key={index}>
                      {side === null ? null : (
                        <>
                          <StatusWord status={side.status} /> <Lasted from={side.startedAt} to={side.finishedAt} />
                        </>
                      )}
                    </td>
                  ))}
                  <td>{signed(slowerMs(row))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </First>
  );
}

/** How much longer the second one took; 0 where one of them did not end. */
function slowerMs({ a, b }: Row): number {
  const [before, now] = [tookMs(a), tookMs(b)];
  return before === null || now === null ? 0 : now - before;
}

function tookMs(side: Row['a']): number | null {
  if (side === null || side.startedAt === null || side.finishedAt === null) return null;
  return Date.parse(side.finishedAt) - Date.parse(side.startedAt);
}

function signed(ms: number): string {
  if (Math.abs(ms) < 100) return '';
  return `${ms > 0 ? '+' : '−'}${durationOf(Math.abs(ms))}`;
}
