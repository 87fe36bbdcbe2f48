/** What else there is of a run, each asked for when it is opened: kept files and outputs, tests, its history, and the run before. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { First, Pages } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { StatusSign } from '../parts/status.tsx';
import { Ago, exact, Lasted } from '../parts/time.tsx';
import { visibleLines } from '../parts/unseen.ts';
import { hrefOf } from '../router.ts';
import { shortRef } from '../runs/runs-page.tsx';
import { session } from '../session/session.ts';
import { Comparison } from './comparison.tsx';
import type { Run } from './stage-groups.ts';

/** Pages of `documents.ts`. */
const CASES = 100;
const EVENTS = 200;

type Artifact = Operations['Artifacts']['data']['artifacts'][number];

export function RunExtras({ run }: { readonly run: Run }): JSX.Element {
  // What has ended since is asked for anew.
  const version = `${run.status} ${run.stages.filter(({ finishedAt }) => finishedAt !== null).length}`;
  return (
    <div class="extras">
      <Opened title="Files and outputs">{() => <Artifacts key={version} id={run.id} />}</Opened>
      <Opened title="Tests">{() => <Tests key={version} id={run.id} />}</Opened>
      <Opened title="History">{() => <History key={version} id={run.id} />}</Opened>
      {run.parentRunId === null ? null : (
        <Opened title="Compared with the run before">
          {() => <Comparison key={version} a={run.parentRunId ?? ''} b={run.id} />}
        </Opened>
      )}
      <Opened title="Compare with another run">{() => <Others run={run} />}</Opened>
    </div>
  );
}

function Opened({ title, children }: { readonly title: string; children(): ComponentChildren }): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen.value ? children() : null}
    </details>
  );
}

function Artifacts({ id }: { readonly id: string }): JSX.Element {
  const asked = useAsked('Artifacts', { runId: id });
  return (
    <WhenAsked asked={asked} what="the files">
      {({ artifacts }) =>
        artifacts.length === 0 ? (
          <p class="faint">No stage has kept a file or set an output.</p>
        ) : (
          <First rows={artifacts}>
            {(shown) => (
              <table>
                <tbody>
                  {shown.map((each) => (
                    <tr key={`${each.stage} ${each.key}`}>
                      <td>
                        <Name text={each.stage} />
                      </td>
                      <td>
                        <Name text={each.key} />
                      </td>
                      <td>
                        {each.sizeBytes === null ? <Name text={each.value} /> : <Download id={id} artifact={each} />}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </First>
        )
      }
    </WhenAsked>
  );
}

function Download({ id, artifact }: { readonly id: string; readonly artifact: Artifact }): JSX.Element {
  const fetchIt = async (): Promise<void> => {
    const url = new URL(artifact.value, location.origin);
    // A link can send no header: a ticket, good for this run alone, stands in its address.
    if (session.peek() !== null)
      url.searchParams.set('token', (await ask('StreamTicket', { runId: id })).createStreamTicket);
    const link = document.createElement('a');
    link.href = `${url.pathname}${url.search}`;
    link.download = '';
    link.click();
  };
  return (
    <>
      <button type="button" class="link" onClick={() => void attempt('Its download has begun.', fetchIt)}>
        Download
      </button>{' '}
      <span class="faint">
        {Number(artifact.sizeBytes ?? 0).toLocaleString()} bytes
        {artifact.expiresAt === null ? '' : `, kept until ${exact(artifact.expiresAt)}`}
      </span>
    </>
  );
}

function Tests({ id }: { readonly id: string }): JSX.Element {
  const status = useSignal('failed');
  const asked = useAsked('TestReport', { runId: id, status: status.value });
  return (
    <WhenAsked asked={asked} what="the tests">
      {({ testReport }) =>
        testReport === null || testReport.total === 0 ? (
          <p class="faint">
            No stage has told of tests: <code>reports</code> of a stage does.
          </p>
        ) : (
          <>
            <p class="row">
              {testReport.total.toLocaleString()} tests in {testReport.durationSecs.toFixed(1)} s
              {(['failed', 'skipped', 'passed'] as const).map((each) => (
                <button
                  type="button"
                  key={each}
                  class="quiet"
                  aria-pressed={status.value === each}
                  onClick={() => (status.value = each)}
                >
                  {testReport[each].toLocaleString()} {each}
                </button>
              ))}
            </p>
            <Pages
              key={status.value}
              first={testReport.cases}
              size={CASES}
              next={async ({ cursor }) => {
                const page = await ask('TestReport', { runId: id, status: status.value, after: cursor });
                return page.testReport?.cases ?? [];
              }}
            >
              {(cases) => (
                <ul class="cards">
                  {cases.map((each) => (
                    <Case key={each.cursor} each={each} />
                  ))}
                </ul>
              )}
            </Pages>
          </>
        )
      }
    </WhenAsked>
  );
}

type TestCase = NonNullable<Operations['TestReport']['data']['testReport']>['cases'][number];

function Case({ each }: { readonly each: TestCase }): JSX.Element {
  return (
    <li>
      <strong>
        <Name text={each.name} />
      </strong>{' '}
      <span class="faint">
        <Name text={`${each.suite}, ${each.stage}`} />, {each.durationSecs.toFixed(2)} s
      </span>
      {each.message === null ? null : <pre tabIndex={0}>{visibleLines(each.message)}</pre>}
    </li>
  );
}

function History({ id }: { readonly id: string }): JSX.Element {
  const asked = useAsked('RunEvents', { id });
  return (
    <WhenAsked asked={asked} what="the history">
      {({ runEvents }) => (
        <Pages
          first={runEvents}
          size={EVENTS}
          next={async ({ version }) => (await ask('RunEvents', { id, after: version })).runEvents}
        >
          {(events) => (
            <div class="table-frame" tabIndex={0} role="group" aria-label="History">
              <table>
                <tbody>
                  {events.map(({ version, at, summary }) => (
                    <tr key={version}>
                      <td>{version}</td>
                      <td>
                        <time dateTime={at} title={exact(at)}>
                          {at.slice(11, 23)}
                        </time>
                      </td>
                      <td>
                        <Name text={summary} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </Pages>
      )}
    </WhenAsked>
  );
}

const OTHERS = 30;

/** The newest runs of its pipeline, each a way to the comparison with it. */
function Others({ run }: { readonly run: Run }): JSX.Element {
  const asked = useAsked('Runs', { pipelineName: run.pipelineName, limit: OTHERS });
  return (
    <WhenAsked asked={asked} what="the runs">
      {({ runs }) => {
        const others = runs.filter(({ id }) => id !== run.id);
        if (others.length === 0) return <p class="faint">This pipeline has no other run.</p>;
        return (
          <div class="table-frame" tabIndex={0} role="group" aria-label="Other runs">
            <table>
              <tbody>
                {others.map((each) => (
                  <tr key={each.id}>
                    <td>
                      <StatusSign status={each.status} />
                    </td>
                    <td>
                      {/* The older one stands at the left. */}
                      <a href={compared(each.id, run.id)}>
                        <Ago at={each.startedAt} />
                      </a>
                    </td>
                    <td>
                      {each.ref === null ? null : <Name text={shortRef(each.ref)} />}{' '}
                      {each.commit === null ? null : <code>{each.commit.slice(0, 8)}</code>}
                    </td>
                    <td>
                      <Lasted from={each.startedAt} to={each.finishedAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        );
      }}
    </WhenAsked>
  );
}

/** Ids of runs begin with their time. */
function compared(one: string, other: string): string {
  const [a, b] = one < other ? [one, other] : [other, one];
  return hrefOf(`/compare?${new URLSearchParams({ a, b }).toString()}`);
}
