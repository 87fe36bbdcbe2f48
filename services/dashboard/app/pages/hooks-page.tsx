/** Addresses that are told of runs: what each is told, what became of it, and a new one. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attempt, attemptSignedIn } from '../parts/notices.tsx';
import { ShownOnce } from '../parts/once.tsx';
import { Empty } from '../parts/states.tsx';
import { Ago } from '../parts/time.tsx';
import { useAlone } from '../parts/use-alone.ts';
import { hrefOf } from '../router.ts';
import { setTitle } from '../parts/title.ts';

type Hook = Operations['Hooks']['data']['hooks'][number];
type Delivery = Operations['HookDeliveries']['data']['hookDeliveries'][number];

const EVENTS = ['run.started', 'run.completed', 'stage.completed', 'approval.requested'] as const;

export function HooksPage(): JSX.Element {
  const asked = useAsked('Hooks', {});
  setTitle('Hooks');
  return (
    <>
      <h1>Hooks</h1>
      <WhenAsked asked={asked} what="the hooks">
        {({ hooks }) => (
          <>
            {hooks.length === 0 ? (
              <Empty title="Nobody is told of runs">
                <p>A hook sends what happens to runs to an address of yours, signed.</p>
              </Empty>
            ) : (
              <ul class="cards">
                {hooks.map((hook) => (
                  <HookCard key={hook.id} hook={hook} onDone={asked.again} />
                ))}
              </ul>
            )}
            <NewHook onDone={asked.again} />
          </>
        )}
      </WhenAsked>
    </>
  );
}

function HookCard({ hook, onDone }: { readonly hook: Hook; onDone(): void }): JSX.Element {
  const { id, url, events, repository, createdAt, active, failingSince, lastError } = hook;
  const isOpen = useSignal(false);
  return (
    <li>
      <p class="row">
        <strong class="grow">
          <Name text={url} />
        </strong>
        {active ? null : <span class="tag bad-word">switched off</span>}
        <span class="faint">
          made <Ago at={createdAt} />
        </span>
        <button
          type="button"
          class="bad"
          onClick={() => void attempt('Deleted.', () => ask('DeleteHook', { id })).then(onDone)}
        >
          Delete
        </button>
      </p>
      <p class="faint">
        {events.join(', ')}; <Name text={repository ?? 'all runs'} />
      </p>
      {failingSince === null ? null : (
        <p class="reason">
          Nothing was taken since <Ago at={failingSince} />
          {lastError === null ? '' : ': '}
          <Name text={lastError ?? ''} />
        </p>
      )}
      <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>Deliveries</summary>
        {isOpen.value ? <Deliveries id={id} onDone={onDone} /> : null}
      </details>
    </li>
  );
}

function Deliveries({ id, onDone }: { readonly id: string; onDone(): void }): JSX.Element {
  const asked = useAsked('HookDeliveries', { id });
  const again = (delivery: Delivery): void => {
    void attempt('It is sent again.', () => ask('RedeliverHook', { id: delivery.id })).then(() => {
      asked.again();
      onDone();
    });
  };
  return (
    <>
      <button type="button" class="quiet" onClick={asked.again}>
        Look again
      </button>
      <WhenAsked asked={asked} what="its deliveries">
        {({ hookDeliveries }) =>
          hookDeliveries.length === 0 ? (
            <p class="faint">Nothing has happened yet that it is told of.</p>
          ) : (
            <div class="table-frame" tabIndex={0} role="group" aria-label="Deliveries">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Event</th>
                    <th scope="col">When</th>
                    <th scope="col">Status</th>
                    <th scope="col">Answer</th>
                    <th scope="col">
                      <span class="unsaid">What to do</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {hookDeliveries.map((each) => (
                    <tr key={each.id}>
                      <td>
                        {each.event} of <a href={hrefOf(`/runs/${each.runId}`)}>a run</a>
                      </td>
                      <td>
                        <Ago at={each.createdAt} />
                      </td>
                      <td>
                        {each.status.toLowerCase()}
                        {each.attempts > 1 ? `, ${each.attempts} attempts` : ''}
                        {each.nextAttemptAt === null ? null : (
                          <span class="faint">
                            , next <code>{each.nextAttemptAt.slice(11, 19)}</code> UTC
                          </span>
                        )}
                      </td>
                      <td>
                        {each.responseStatus ?? ''} {each.responseMs === null ? '' : `${each.responseMs} ms`}{' '}
                        {each.error === null ? null : <Name text={each.error} />}
                      </td>
                      <td>
                        <button type="button" class="quiet" onClick={() => again(each)}>
                          Send again
                        </button>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </WhenAsked>
    </>
  );
}

function NewHook({ onDone }: { onDone(): void }): JSX.Element {
  const url = useSignal('');
  const repository = useSignal('');
  const events = useSignal<readonly string[]>(['run.completed']);
  const secret = useSignal<string | null>(null);
  const alone = useAlone();
  const make = (): void => {
    alone(() =>
      attemptSignedIn('Made.', async () => {
        const { createHook } = await ask('CreateHook', {
          url: url.value,
          events: events.value,
          repository: repository.value === '' ? null : repository.value,
        });
        secret.value = createHook.secret;
        url.value = '';
      }).then(onDone),
    );
  };
  return (
    <section aria-label="A new hook">
      <h2>A new hook</h2>
      <ShownOnce secret={secret} />
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          make();
        }}
      >
        <label class="grow">
          Address{' '}
          <input
            type="url"
            required
            value={url.value}
            placeholder="https://example.org/ci"
            onInput={(event) => (url.value = event.currentTarget.value)}
          />
        </label>
        <label>
          Repository{' '}
          <input
            value={repository.value}
            placeholder="all runs"
            onInput={(event) => (repository.value = event.currentTarget.value.trim())}
          />
        </label>
        {EVENTS.map((each) => (
          <label key={each}>
            <input
              type="checkbox"
              checked={events.value.includes(each)}
              onChange={(event) => {
                const others = events.value.filter((one) => one !== each);
                events.value = event.currentTarget.checked ? [...others, each] : others;
              }}
            />{' '}
            {each}
          </label>
        ))}
        <button type="submit" disabled={events.value.length === 0}>
          Make a hook
        </button>
      </form>
    </section>
  );
}
