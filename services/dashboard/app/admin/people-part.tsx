/** Who may use the installation at all: users whom an administrator has shut out. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { Ago } from '../parts/time.tsx';

export function PeoplePart(): JSX.Element {
  const asked = useAsked('Suspended', {});
  const login = useSignal('');
  const suspend = async (): Promise<void> => {
    const done = 'Shut out: no login, token or open stream of theirs counts any more. What runs goes on.';
    if (!(await attempt(done, () => ask('Suspend', { login: login.value })))) return;
    login.value = '';
    asked.again();
  };
  return (
    <section aria-label="People">
      <h2>Shut out</h2>
      <WhenAsked asked={asked} what="who is shut out">
        {({ suspendedUsers }) =>
          suspendedUsers.length === 0 ? (
            <p class="faint">Nobody is.</p>
          ) : (
            <ul class="cards">
              {suspendedUsers.map((user) => (
                <li key={user.id} class="row">
                  <strong>
                    <Name text={user.login} />
                  </strong>
                  <span class="faint grow">
                    by <Name text={user.suspendedBy} />, <Ago at={user.suspendedAt} />
                  </span>
                  <button
                    type="button"
                    class="quiet"
                    onClick={() =>
                      void attempt('Let in again.', () => ask('Unsuspend', { login: user.id })).then(asked.again)
                    }
                  >
                    Let in again
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </WhenAsked>
      <form
        class="row form"
        onSubmit={(event) => {
          event.preventDefault();
          void suspend();
        }}
      >
        <label>
          Login or id of a user{' '}
          <input required value={login.value} onInput={(event) => (login.value = event.currentTarget.value)} />
        </label>
        <button type="submit" class="bad">
          Shut out
        </button>
      </form>
    </section>
  );
}
