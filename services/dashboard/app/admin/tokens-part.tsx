/** Tokens that make machines runners: who is let in by each, a new one, and the end of one. An administrator's are all there are, a user's its own. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { ShownOnce } from '../parts/once.tsx';
import { Ago, exact } from '../parts/time.tsx';
import { useAlone } from '../parts/use-alone.ts';

type Token = Operations['RunnerTokens']['data']['runnerTokens'][number];

export function TokensPart(): JSX.Element {
  const asked = useAsked('RunnerTokens', {});
  return (
    <section aria-label="Runner tokens">
      <h2>Runner tokens</h2>
      <WhenAsked asked={asked} what="the tokens">
        {({ runnerTokens }) => (
          <>
            {runnerTokens.length === 0 ? (
              <p class="faint">
                None. With one a machine becomes a runner: <code>penstock runner --server … --token-file …</code>
              </p>
            ) : (
              <ul class="cards">
                {runnerTokens.map((token) => (
                  <TokenCard key={token.id} token={token} onDone={asked.again} />
                ))}
              </ul>
            )}
            <NewToken onDone={asked.again} />
          </>
        )}
      </WhenAsked>
    </section>
  );
}

function TokenCard({ token, onDone }: { readonly token: Token; onDone(): void }): JSX.Element {
  const { id, name, labels, untrusted, tenant, createdAt, expiresAt, runners } = token;
  return (
    <li>
      <p class="row">
        <strong class="grow">{name === '' ? <code>{id}</code> : <Name text={name} />}</strong>
        {labels.length === 0 ? null : <Name text={labels.join(', ')} />}
        {tenant === null ? null : (
          <span class="tag">
            for runs of <Name text={tenant} /> alone
          </span>
        )}
        {untrusted ? <span class="tag">for runs that are not trusted too</span> : null}
        <span class="faint">
          made <Ago at={createdAt} />, {expiresAt === null ? 'without an end' : `until ${exact(expiresAt)}`}
        </span>
        <button
          type="button"
          class="bad"
          onClick={() =>
            void attempt('Revoked: its runners are cut off.', () => ask('RevokeRunnerToken', { id })).then(onDone)
          }
        >
          Revoke
        </button>
      </p>
      <p class="faint">
        {runners.length === 0
          ? 'No machine is let in by it.'
          : runners.map((each) => (
              <span key={each.id}>
                <Name text={each.name === '' ? each.id : each.name} />, let in until {exact(each.admittedUntil)}
                <br />
              </span>
            ))}
      </p>
    </li>
  );
}

function NewToken({ onDone }: { onDone(): void }): JSX.Element {
  const name = useSignal('');
  const labels = useSignal('');
  const expires = useSignal('90d');
  const untrusted = useSignal(false);
  const secret = useSignal<string | null>(null);
  const alone = useAlone();
  const make = (): void => {
    alone(() =>
      attempt('Made.', async () => {
        const { createRunnerToken } = await ask('CreateRunnerToken', {
          name: name.value,
          labels: labels.value.split(/[\s,]+/u).filter((label) => label !== ''),
          expires: expires.value === '' ? null : expires.value,
          untrusted: untrusted.value,
        });
        secret.value = createRunnerToken.token;
        name.value = '';
      }).then(onDone),
    );
  };
  return (
    <>
      <h2>A new one</h2>
      <ShownOnce secret={secret} />
      <form
        class="row form"
        onSubmit={(event) => {
          event.preventDefault();
          make();
        }}
      >
        <label>
          Name <input value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <label>
          Labels{' '}
          <input
            value={labels.value}
            placeholder="none beside its own"
            onInput={(event) => (labels.value = event.currentTarget.value)}
          />
        </label>
        <label>
          Ends after{' '}
          <input
            value={expires.value}
            placeholder="never"
            onInput={(event) => (expires.value = event.currentTarget.value.trim())}
          />
        </label>
        <label>
          <input
            type="checkbox"
            checked={untrusted.value}
            onChange={(event) => (untrusted.value = event.currentTarget.checked)}
          />{' '}
          for runs that are not trusted too
        </label>
        <button type="submit">Make a token</button>
      </form>
    </>
  );
}
