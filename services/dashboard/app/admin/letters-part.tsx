/** What hooks were not told of, because nobody took it for three days: of everybody, with a way to send it again. */
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { Ago } from '../parts/time.tsx';

const SHOWN = 500;

export function LettersPart(): JSX.Element {
  const asked = useAsked('DeadLetters', { limit: SHOWN });
  const again = (id: string): void =>
    void attempt('It is sent again.', () => ask('RedriveLetter', { id })).then(asked.again);
  return (
    <section aria-label="Dead letters">
      <h2>Dead letters</h2>
      <WhenAsked asked={asked} what="the dead letters">
        {({ adminDeadLetters }) =>
          adminDeadLetters.length === 0 ? (
            <p class="faint">None: in the last seven days every hook has taken what it was sent.</p>
          ) : (
            <>
              {adminDeadLetters.length < SHOWN ? null : <p class="faint">The newest {SHOWN}.</p>}
              <div class="table-frame tall" tabIndex={0} role="group" aria-label="Deliveries that were given up">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Given up</th>
                      <th scope="col">Event</th>
                      <th scope="col">Of whom</th>
                      <th scope="col">Where to</th>
                      <th scope="col">Why</th>
                      <th scope="col">
                        <span class="unsaid">What to do</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {adminDeadLetters.map(({ id, tenant, url, event, attempts, endedAt, error }) => (
                      <tr key={id}>
                        <td>
                          <Ago at={endedAt} />
                        </td>
                        <td>{event}</td>
                        <td>
                          <Name text={tenant} />
                        </td>
                        <td>
                          <Name text={url} />
                        </td>
                        <td>
                          <Name text={error ?? ''} /> <span class="faint">{attempts} attempts</span>
                        </td>
                        <td>
                          <button type="button" class="quiet" onClick={() => again(id)}>
                            Send again
                          </button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </>
          )
        }
      </WhenAsked>
    </section>
  );
}
