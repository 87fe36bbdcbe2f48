/** The pipelines that have run lately, and of one of them how it fares: its last runs, how long they take, and its stages. */
import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Fact } from '../parts/fact.tsx';
import { Live } from '../parts/live.tsx';
import { First } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { Empty, Loading, ProblemNote } from '../parts/states.tsx';
import { durationOf } from '../parts/duration.ts';
import { Ago } from '../parts/time.tsx';
import { hrefOf } from '../router.ts';
import { RunList } from '../runs/run-list.ts';
import type { RunRow } from '../runs/run-rows.ts';
import { isSignedIn } from '../session/session.ts';
import { summariesOf, type PipelineSummary } from './durations.ts';
import { RunBars } from './run-bars.tsx';
import { Trend } from './trend.tsx';
import { setTitle } from '../parts/title.ts';

/** Of all pipelines together, and of the one that is looked at. */
const RUNS = 300;
const BARS = { each: 20, one: 60 } as const;

type Health = Operations['Health']['data']['pipelineHealth'];

export function PipelinesPage({ name }: { readonly name: string | null }): JSX.Element {
  const list = useSignal<RunList | null>(null);
  useSignalEffect(() => {
    // Whoever signs in or out sees other runs.
    void isSignedIn.value;
    const opened = new RunList({ pipelineName: name ?? undefined });
    list.value = opened;
    return () => opened.close();
  });
  useSignalEffect(() => {
    if (list.value?.hasMore.value === true) void list.value.upTo(RUNS);
  });
  setTitle(name ?? 'Pipelines');
  const [rows, problem] = [list.value?.rows.value ?? null, list.value?.problem.value ?? null];
  return (
    <>
      <div class="head">
        <h1>{name === null ? 'Pipelines' : <Name text={name} />}</h1>
        {list.value === null ? null : <Live state={list.value.state.value} />}
        {name === null ? null : (
          <a href={hrefOf(`/runs?pipeline=${encodeURIComponent(name)}`)}>All its runs as a list</a>
        )}
      </div>
      {problem === null ? null : <ProblemNote problem={problem} />}
      {rows === null ? problem === null ? <Loading what="the runs" /> : null : <Shown name={name} rows={rows} />}
    </>
  );
}

function Shown({ name, rows }: { readonly name: string | null; readonly rows: readonly RunRow[] }): JSX.Element {
  if (rows.length === 0)
    return (
      <Empty title={name === null ? 'Nothing has run yet' : 'No run of this pipeline is here'}>
        <p>
          <a href={hrefOf('/trigger')}>Start a run</a>, or <a href={hrefOf('/pipelines')}>see all pipelines</a>.
        </p>
      </Empty>
    );
  if (name !== null) return <One name={name} rows={rows} />;
  return (
    <>
      <p class="faint">Of the newest {rows.length.toLocaleString()} runs.</p>
      <ul class="cards pipelines">
        {summariesOf(rows).map((summary) => (
          <Card key={summary.name} summary={summary} />
        ))}
      </ul>
    </>
  );
}

function Card({ summary }: { readonly summary: PipelineSummary }): JSX.Element {
  const { name, runs, passed, p50Ms } = summary;
  const [newest] = runs;
  return (
    <li>
      <div class="grow">
        <a class="run-link" href={hrefOf(`/pipelines?name=${encodeURIComponent(name)}`)}>
          <strong>
            <Name text={name} />
          </strong>
        </a>
        <p class="faint">
          {runs.length.toLocaleString()} {runs.length === 1 ? 'run' : 'runs'}
          {newest === undefined ? null : (
            <>
              , the last <Ago at={newest.startedAt} />
            </>
          )}
        </p>
      </div>
      <dl class="facts">
        <Fact title="Passed">{passed === null ? 'none ended' : percentOf(passed)}</Fact>
        <Fact title="p50">{p50Ms === null ? 'none ended' : durationOf(p50Ms)}</Fact>
      </dl>
      <RunBars runs={runs} max={BARS.each} />
    </li>
  );
}

function One({ name, rows }: { readonly name: string; readonly rows: readonly RunRow[] }): JSX.Element {
  // Counted anew by the server whenever a run has ended.
  const ended = rows.filter(({ finishedAt }) => finishedAt !== null).length;
  return (
    <>
      <section aria-label="Last runs" class="last-runs">
        <RunBars runs={rows} max={BARS.one} />
      </section>
      <section aria-label="How long runs take">
        <h2>How long runs take</h2>
        <Trend runs={rows} />
      </section>
      <HealthOf key={`${name} ${ended}`} name={name} />
    </>
  );
}

function HealthOf({ name }: { readonly name: string }): JSX.Element {
  const asked = useAsked('Health', { pipelineName: name });
  return (
    <WhenAsked asked={asked} what="its health">
      {({ pipelineHealth: health }) =>
        health.totalRuns === 0 ? (
          <p class="faint">How its stages fare is counted from runs of your own; these are none.</p>
        ) : (
          <>
            <section aria-label="The last 50 runs">
              <h2>The last {Math.min(50, health.totalRuns)} runs</h2>
              <dl class="facts">
                <Fact title="Passed">
                  {health.succeeded} of {health.succeeded + health.failed + health.interrupted} (
                  {percentOf(health.successRate)})
                </Fact>
                <Fact title="Flaky">{health.flaky}</Fact>
                <Fact title="Failed by the infrastructure">{health.infrastructure}</Fact>
                <Fact title="Interrupted">{health.interrupted}</Fact>
                <Fact title="p50">{durationOf(health.p50DurationSecs * 1_000)}</Fact>
                <Fact title="p95">{durationOf(health.p95DurationSecs * 1_000)}</Fact>
              </dl>
            </section>
            {health.stages.length === 0 ? null : <Stages stages={health.stages} />}
          </>
        )
      }
    </WhenAsked>
  );
}

function Stages({ stages }: { readonly stages: Health['stages'] }): JSX.Element {
  return (
    <section aria-label="Its stages">
      <h2>Its stages</h2>
      <First rows={stages}>
        {(shown) => (
          <div class="table-frame tall" tabIndex={0} role="group" aria-label="Stages">
            <table>
              <thead>
                <tr>
                  <th scope="col">Stage</th>
                  <th scope="col">Ran</th>
                  <th scope="col">Failed</th>
                  <th scope="col">Flaky</th>
                  <th scope="col">Mean</th>
                  <th scope="col">p95</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((stage) => (
                  <tr key={stage.name}>
                    <th scope="row">
                      <Name text={stage.name} />
                    </th>
                    <td>{stage.runs}</td>
                    <td>
                      {stage.failures === 0 ? '0' : `${stage.failures} (${percentOf(stage.failures / stage.runs)})`}
                    </td>
                    <td>{stage.flaky ? `in ${percentOf(stage.flakeRate)} of runs` : 'no'}</td>
                    <td>{durationOf(stage.avgDurationSecs * 1_000)}</td>
                    <td>{durationOf(stage.p95DurationSecs * 1_000)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </First>
    </section>
  );
}

function percentOf(part: number): string {
  return `${Math.round(part * 100)} %`;
}
