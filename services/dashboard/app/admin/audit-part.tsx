/** Who did what, and what was refused. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { exact } from '../parts/time.tsx';

const SHOWN = [100, 1_000] as const;

export function AuditPart(): JSX.Element {
  const limit = useSignal<number>(SHOWN[0]);
  const filter = useSignal('');
  const asked = useAsked('AuditLog', { limit: limit.value });
  return (
    <section aria-label="Audit log">
      <h2>Audit log</h2>
      <form class="row form" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">
          Only what has{' '}
          <input
            type="search"
            value={filter.value}
            placeholder="an actor, an action, a target, an address"
            onInput={(event) => (filter.value = event.currentTarget.value.toLowerCase())}
          />
        </label>
        <button type="button" class="quiet" onClick={asked.again}>
          Look again
        </button>
      </form>
      <WhenAsked asked={asked} what="the audit log">
        {({ auditLog }) => {
          const fitting = auditLog.filter((each) =>
            Object.values(each).some((value) => value?.toLowerCase().includes(filter.value)),
          );
          return (
            <>
              <p class="faint">
                {fitting.length.toLocaleString()} of the newest {auditLog.length.toLocaleString()}.
              </p>
              <div class="table-frame tall" tabIndex={0} role="group" aria-label="Entries">
                <table class="audit">
                  <thead>
                    <tr>
                      <th scope="col">When</th>
                      <th scope="col">Who</th>
                      <th scope="col">What</th>
                      <th scope="col">Of what</th>
                      <th scope="col">Outcome</th>
                      <th scope="col">From</th>
                    </tr>
                  </thead>
                  <tbody>
                    {fitting.map(({ at, actor, action, target, outcome, ip }, index) => (
                      <tr key={index}>
                        <td>
                          <time dateTime={at}>{exact(at)}</time>
                        </td>
                        <td>
                          <Name text={actor} />
                        </td>
                        <td>
                          <code>{action}</code>
                        </td>
                        <td>
                          <Name text={target} />
                        </td>
                        <td class={outcome === 'ok' ? '' : 'bad-word'}>{outcome}</td>
                        <td>
                          <Name text={ip ?? ''} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              {auditLog.length < limit.value || limit.value === SHOWN[1] ? null : (
                <p>
                  <button type="button" class="quiet" onClick={() => (limit.value = SHOWN[1])}>
                    Show {SHOWN[1].toLocaleString()}
                  </button>
                </p>
              )}
            </>
          );
        }}
      </WhenAsked>
    </section>
  );
}
