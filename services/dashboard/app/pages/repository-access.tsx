/** Who else may work on a connected repository, and what others let oneself work on. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { Ago } from '../parts/time.tsx';

/** Each may what those before it may. */
const ROLES = [
  ['read', 'see its runs'],
  ['trigger', 'start and cancel them too'],
  ['approve', 'decide for its people too'],
  ['admin', 'let others in and delete runs too'],
] as const;

/** `name`: the id of the connection, or `<provider>/<path>`. */
export function RepositoryAccess({ name }: { readonly name: string }): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Who else may work on it</summary>
      {isOpen.value ? <AccessList name={name} /> : null}
    </details>
  );
}

function AccessList({ name }: { readonly name: string }): JSX.Element {
  const asked = useAsked('Access', { repository: name });
  const login = useSignal('');
  const role = useSignal<string>('read');
  const grant = async (): Promise<void> => {
    const given = { repository: name, login: login.value, role: role.value };
    if (!(await attempt('Let in.', () => ask('GrantAccess', given)))) return;
    login.value = '';
    asked.again();
  };
  return (
    <>
      <WhenAsked asked={asked} what="who has access">
        {({ access }) =>
          access.length === 0 ? (
            <p class="faint">Nobody but you.</p>
          ) : (
            <ul class="plain">
              {access.map((each) => (
                <li key={each.login} class="row">
                  <strong>
                    <Name text={each.login} />
                  </strong>
                  <span class="tag">{each.role}</span>
                  <span class="faint grow">
                    since <Ago at={each.grantedAt} />
                  </span>
                  <button
                    type="button"
                    class="quiet"
                    aria-label={`Take back the access of ${each.login}`}
                    onClick={() =>
                      void attempt('Taken back.', () =>
                        ask('RevokeAccess', { repository: name, login: each.login }),
                      ).then(asked.again)
                    }
                  >
                    Take back
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
          void grant();
        }}
      >
        <label>
          Login or verified email{' '}
          <input required value={login.value} onInput={(event) => (login.value = event.currentTarget.value)} />
        </label>
        <label>
          May{' '}
          <select value={role.value} onChange={(event) => (role.value = event.currentTarget.value)}>
            {ROLES.map(([value, says]) => (
              <option key={value} value={value}>
                {value}: {says}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">Let in</button>
      </form>
    </>
  );
}

export function SharedRepositories(): JSX.Element | null {
  const asked = useAsked('Shared', {});
  if (asked.data.value?.sharedRepositories.length === 0) return null;
  return (
    <section aria-label="Shared with you">
      <h2>Shared with you</h2>
      <WhenAsked asked={asked} what="what is shared with you">
        {({ sharedRepositories }) => (
          <ul class="cards">
            {sharedRepositories.map(({ provider, repository, role, tenant }) => {
              const name = `${provider}/${repository}`;
              return (
                <li key={`${tenant} ${name}`}>
                  <p class="row">
                    <strong class="grow">
                      <Name text={repository} />
                    </strong>
                    <span class="tag">{role}</span>
                    <button
                      type="button"
                      class="quiet"
                      onClick={() =>
                        void attempt('You have left it.', () => ask('LeaveRepository', { repository: name })).then(
                          asked.again,
                        )
                      }
                    >
                      Leave
                    </button>
                  </p>
                  {role === 'admin' ? <RepositoryAccess name={name} /> : null}
                </li>
              );
            })}
          </ul>
        )}
      </WhenAsked>
    </section>
  );
}
