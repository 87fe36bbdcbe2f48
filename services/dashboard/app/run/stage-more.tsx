/** The attempts of a stage and its outputs, asked for where there are any. */
import type { JSX } from 'preact';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { StatusWord } from '../parts/status.tsx';
import { durationOf } from '../parts/duration.ts';
import { Lasted } from '../parts/time.tsx';

/** `before`: the name of the stage that stands before it in the file; the API pages by names. */
export function StageMore({ id, before }: { readonly id: string; readonly before: string | null }): JSX.Element {
  const asked = useAsked('StageMore', { id, after: before });
  return (
    <WhenAsked asked={asked} what="the attempts">
      {({ run }) => {
        const stage = run?.stages[0];
        if (stage === undefined) return null;
        return (
          <>
            {stage.outputs.length === 0 ? null : (
              <dl class="facts">
                {stage.outputs.map(({ key, value }) => (
                  <div key={key}>
                    <dt>{key}</dt>
                    <dd>
                      <Name text={value} />
                    </dd>
                  </div>
                ))}
              </dl>
            )}
            <table>
              <thead>
                <tr>
                  <th scope="col">Attempt</th>
                  <th scope="col">Status</th>
                  <th scope="col">Why</th>
                  <th scope="col">Runner</th>
                  <th scope="col">Waited</th>
                  <th scope="col">Ran</th>
                </tr>
              </thead>
              <tbody>
                {stage.attempts.map((each) => (
                  <tr key={each.number}>
                    <td>{each.number}</td>
                    <td>
                      <StatusWord status={each.status} />
                    </td>
                    <td>
                      {each.reason ?? ''} {each.exitCode === null ? '' : `(exit code ${each.exitCode})`}
                    </td>
                    <td>
                      <Name text={each.runner} />
                    </td>
                    <td>{durationOf(each.queuedMs)}</td>
                    <td>
                      <Lasted from={each.startedAt} to={each.finishedAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        );
      }}
    </WhenAsked>
  );
}
