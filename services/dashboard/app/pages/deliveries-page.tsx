/** What git hosts have delivered, and why a run came of it or none; and the repositories that are connected. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { attemptSignedIn } from '../parts/notices.tsx';
import { Empty } from '../parts/states.tsx';
import { Ago } from '../parts/time.tsx';
import { hrefOf } from '../router.ts';
import { isSignedIn } from '../session/session.ts';
import { CloneSecret } from './clone-secret.tsx';
import { RepositoryAccess, SharedRepositories } from './repository-access.tsx';
import { shortRef } from '../runs/runs-page.tsx';
import { setTitle } from '../parts/title.ts';

type Delivery = Operations['Deliveries']['data']['webhookDeliveries'][number];

export function DeliveriesPage(): JSX.Element {
  const deliveries = useAsked('Deliveries', {});
  const repositories = useAsked('Repositories', {});
  setTitle('Deliveries');
  return (
    <>
      <h1>Deliveries</h1>
      <WhenAsked asked={deliveries} what="the deliveries">
        {({ webhookDeliveries }) =>
          webhookDeliveries.length === 0 ? (
            <Empty title="Nothing was delivered in the last seven days">
              <p>
                A git host delivers pushes and pull requests to <code>/webhook</code> of this server, once its webhook
                is set up there.
              </p>
            </Empty>
          ) : (
            <ul class="cards">
              {webhookDeliveries.map((delivery) => (
                <DeliveryCard key={delivery.id} delivery={delivery} onDone={deliveries.again} />
              ))}
            </ul>
          )
        }
      </WhenAsked>
      {repositories.data.value === null || repositories.data.value.repositories.length === 0 ? null : (
        <section aria-label="Connected repositories">
          <h2>Connected repositories</h2>
          <ul class="cards">
            {repositories.data.value.repositories.map(({ id, repository, proved, proof, webhookUrl, cloneSecret }) => (
              <li key={id}>
                <strong>
                  <Name text={repository} />
                </strong>{' '}
                <span class="faint">delivers to {webhookUrl}</span>
                {proved ? null : (
                  <p>
                    Not proved, so its deliveries are ignored: push the ref <code>{proof.ref}</code>, then{' '}
                    <code>verifyRepository</code>.
                  </p>
                )}
                <CloneSecret connection={id} name={cloneSecret} onDone={repositories.again} />
                <RepositoryAccess name={id} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {isSignedIn.value ? <SharedRepositories /> : null}
    </>
  );
}

function DeliveryCard({ delivery, onDone }: { readonly delivery: Delivery; onDone(): void }): JSX.Element {
  const { id, repository, ref, commit, event, receivedAt, outcome, runId, error, trace, verified } = delivery;
  const tried = useSignal<Delivery['trace'] | null>(null);
  const replay = (dryRun: boolean): void => {
    const done = dryRun ? 'This is what would come of it now; nothing was started.' : 'Decided anew.';
    void attemptSignedIn(done, async () => {
      const { replayWebhookDelivery } = await ask('ReplayDelivery', { id, dryRun });
      tried.value = replayWebhookDelivery.trace;
      if (!dryRun) onDone();
    });
  };
  return (
    <li>
      <p class="row">
        <span class={`tag outcome-${outcome.toLowerCase()}`}>{outcome}</span>
        <strong>
          <Name text={repository} />
        </strong>
        <Name text={shortRef(ref)} /> <code>{commit.slice(0, 8)}</code>
        <span class="faint">
          {event}, <Ago at={receivedAt} />, {verified === 'none' ? 'not signed' : 'signed'}
        </span>
        {runId === null ? null : <a href={hrefOf(`/runs/${runId}`)}>its run</a>}
        <button type="button" class="quiet" onClick={() => replay(true)}>
          What would come of it now
        </button>
        <button type="button" class="quiet" onClick={() => replay(false)}>
          Decide anew
        </button>
      </p>
      {error === null ? null : (
        <p class="reason">
          <Name text={error.message} />
        </p>
      )}
      <details>
        <summary>Why</summary>
        <Trace trace={trace} />
      </details>
      {tried.value === null ? null : <Trace trace={tried.value} />}
    </li>
  );
}

function Trace({ trace }: { readonly trace: Delivery['trace'] }): JSX.Element {
  return (
    <ol class="trace">
      {trace.map(({ step, passed, detail }, index) => (
        <li key={index}>
          <span class={passed ? 'good' : 'bad-word'} role="img" aria-label={passed ? 'passed' : 'stopped here'}>
            {passed ? '✓' : '✗'}
          </span>{' '}
          <strong>{step}</strong> <Name text={detail} />
        </li>
      ))}
    </ol>
  );
}
