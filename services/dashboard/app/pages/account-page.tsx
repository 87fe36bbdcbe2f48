/** Of who is signed in: what may be used and what was, personal tokens, the names of secrets, and runner tokens of one's own. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { TokensPart } from '../admin/tokens-part.tsx';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { First } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { ShownOnce } from '../parts/once.tsx';
import { Ago } from '../parts/time.tsx';
import { useAlone } from '../parts/use-alone.ts';
import { setTitle } from '../parts/title.ts';

type Account = Operations['Account']['data'];

/** What the API says where there is no limit. */
const UNLIMITED = 2_147_483_647;
const SCOPES = ['read', 'trigger', 'publish', 'secrets'] as const;

export function AccountPage(): JSX.Element {
  const asked = useAsked('Account', {});
  setTitle('Account');
  return (
    <>
      <h1>Account</h1>
      <WhenAsked asked={asked} what="the account">
        {(account) => (
          <>
            <p>
              <Name text={account.me.email} />, tier {account.me.tier}
              {account.me.isAdmin ? ', administrator' : ''}
            </p>
            <Usage usage={account.usage} />
            <Tokens tokens={account.apiTokens} onDone={asked.again} />
            <Secrets secrets={account.secrets} />
            {account.me.isAdmin ? null : <TokensPart />}
          </>
        )}
      </WhenAsked>
    </>
  );
}

function Usage({ usage }: { readonly usage: Account['usage'] }): JSX.Element {
  return (
    <section aria-label="Usage">
      <h2>This month</h2>
      <ul class="cards">
        {usage.map(({ metric, total, limit, status }) => (
          <li key={metric} class="row">
            <span class="grow">{metric.replaceAll('_', ' ')}</span>
            <span>
              {total.toLocaleString()}
              {limit === UNLIMITED ? ', no limit' : ` of ${limit.toLocaleString()}`}
            </span>
            {limit === UNLIMITED ? null : <meter min={0} max={limit} value={total} aria-label={metric} />}
            {status === 'ok' ? null : <span class="tag">{status}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tokens({ tokens, onDone }: { readonly tokens: Account['apiTokens']; onDone(): void }): JSX.Element {
  const name = useSignal('');
  const scopes = useSignal<readonly string[]>(['read']);
  const made = useSignal<string | null>(null);
  const alone = useAlone();
  const make = (): void => {
    alone(() =>
      attempt('Made.', async () => {
        const { createApiToken } = await ask('CreateToken', { name: name.value, scopes: scopes.value });
        made.value = createApiToken.token;
        name.value = '';
      }).then(onDone),
    );
  };
  return (
    <section aria-label="Personal tokens">
      <h2>Personal tokens</h2>
      <ShownOnce secret={made} />
      <First rows={tokens}>
        {(shown) => (
          <ul class="cards">
            {shown.map((token) => (
              <li key={token.id} class="row">
                <strong class="grow">
                  <Name text={token.name} />
                </strong>
                <span>{token.scopes.join(', ')}</span>
                <span class="faint">
                  made <Ago at={token.createdAt} />,{' '}
                  {token.lastUsedAt === null ? (
                    'never used'
                  ) : (
                    <>
                      used <Ago at={token.lastUsedAt} />
                    </>
                  )}
                </span>
                <button
                  type="button"
                  class="bad"
                  onClick={() => void attempt('Revoked.', () => ask('RevokeToken', { id: token.id })).then(onDone)}
                >
                  Revoke
                </button>
              </li>
            ))}
          </ul>
        )}
      </First>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          make();
        }}
      >
        <label>
          Name{' '}
          <input
            value={name.value}
            maxLength={100}
            required
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
        </label>
        {SCOPES.map((scope) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.value.includes(scope)}
              onChange={(event) => {
                const others = scopes.value.filter((each) => each !== scope);
                scopes.value = event.currentTarget.checked ? [...others, scope] : others;
              }}
            />{' '}
            {scope}
          </label>
        ))}
        <button type="submit">Make a token</button>
      </form>
    </section>
  );
}

function Secrets({ secrets }: { readonly secrets: Account['secrets'] }): JSX.Element {
  return (
    <section aria-label="Secrets">
      <h2>Secrets</h2>
      {secrets.length === 0 ? (
        <p class="faint">
          None. <code>penstock secret set NAME</code> keeps one; its value is never shown again.
        </p>
      ) : (
        <First rows={secrets}>
          {(shown) => (
            <ul class="cards">
              {shown.map(({ name, repository, pipeline, refs, updatedAt, lastUsedAt }) => (
                <li key={`${name} ${repository} ${pipeline}`} class="row">
                  <strong class="grow">
                    <code>{name}</code>
                  </strong>
                  <span>
                    <Name text={repository ?? pipeline ?? 'everywhere'} />{' '}
                    {refs === null ? '' : <Name text={refs.join(', ')} />}
                  </span>
                  <span class="faint">
                    set <Ago at={updatedAt} />,{' '}
                    {lastUsedAt === null ? (
                      'never used'
                    ) : (
                      <>
                        used <Ago at={lastUsedAt} />
                      </>
                    )}
                  </span>
                </li>
              ))}
            </ul>
          )}
        </First>
      )}
    </section>
  );
}
