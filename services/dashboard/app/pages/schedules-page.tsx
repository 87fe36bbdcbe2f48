/** What starts by itself: the schedules of the repositories' files. */
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { First } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { attemptSignedIn } from '../parts/notices.tsx';
import { Empty } from '../parts/states.tsx';
import { exact } from '../parts/time.tsx';
import { hrefOf } from '../router.ts';
import { setTitle } from '../parts/title.ts';

export function SchedulesPage(): JSX.Element {
  const asked = useAsked('Schedules', {});
  setTitle('Schedules');
  const turn = (id: string, paused: boolean): void => {
    const done = paused ? 'Goes on from its next time.' : 'Paused: nothing is started by it.';
    void attemptSignedIn(done, () => ask(paused ? 'ResumeSchedule' : 'PauseSchedule', { id })).then(asked.again);
  };
  return (
    <>
      <h1>Schedules</h1>
      <WhenAsked asked={asked} what="the schedules">
        {({ schedules }) =>
          schedules.length === 0 ? (
            <Empty title="Nothing starts by itself">
              <p>
                A file of a connected repository that has <code>schedule</code> starts runs by the lines in it.
              </p>
            </Empty>
          ) : (
            <First rows={schedules}>
              {(shown) => (
                <div class="table-frame tall" tabIndex={0} role="group" aria-label="Schedules">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Repository</th>
                        <th scope="col">When (UTC)</th>
                        <th scope="col">Next</th>
                        <th scope="col">Last run</th>
                        <th scope="col">
                          <span class="unsaid">What to do</span>
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {shown.map(({ id, repository, cron, inputs, nextAt, lastRunId, paused }) => (
                        <tr key={id}>
                          <td>
                            <Name text={repository} />
                          </td>
                          <td>
                            <code>{cron}</code>{' '}
                            {inputs.map(({ key, value }) => (
                              <Name key={key} text={`${key}=${value} `} />
                            ))}
                          </td>
                          <td>{paused || nextAt === null ? 'paused' : exact(nextAt)}</td>
                          <td>
                            {lastRunId === null ? 'none yet' : <a href={hrefOf(`/runs/${lastRunId}`)}>the last</a>}
                          </td>
                          <td>
                            <button type="button" class="quiet" onClick={() => turn(id, paused)}>
                              {paused ? 'Resume' : 'Pause'}
                            </button>
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
            </First>
          )
        }
      </WhenAsked>
    </>
  );
}
