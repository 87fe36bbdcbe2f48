/** How the installation stands, looked at again every few seconds; and what operators do about it. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { ask } from '../api/graphql.ts';
import type { Operations } from '../api/operations.ts';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Fact } from '../parts/fact.tsx';
import { First } from '../parts/long-list.tsx';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { durationOf } from '../parts/duration.ts';
import { Ago } from '../parts/time.tsx';

type Status = Operations['AdminStatus']['data']['adminStatus'];
type Pause = Status['pauses'][number];

/** Nothing tells of its changes; every scheduler is asked each time. */
const LOOK_MS = 5_000;

export function StatusPart(): JSX.Element {
  const asked = useAsked('AdminStatus', {});
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') asked.again();
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <WhenAsked asked={asked} what="the status">
      {({ adminStatus: status, serverConfig }) => (
        <>
          <dl class="facts">
            <Fact title="Version">{serverConfig.version}</Fact>
            <Fact title="Mode">{serverConfig.mode}</Fact>
          </dl>
          {status.isCut ? <p class="hint">There are more runners or queues than are shown here.</p> : null}
          <Pauses pauses={status.pauses} onDone={asked.again} />
          <Queues queues={status.queues} onDone={asked.again} />
          <Runners runners={status.runners} onDone={asked.again} />
          <Schedulers schedulers={status.schedulers} />
        </>
      )}
    </WhenAsked>
  );
}

function Pauses({ pauses, onDone }: { readonly pauses: Status['pauses']; onDone(): void }): JSX.Element {
  const kind = useSignal<'all' | 'key' | 'label'>('all');
  const name = useSignal('');
  const reason = useSignal('');
  const pause = (): void => {
    const what = kind.value === 'all' ? {} : { [kind.value]: name.value };
    void attempt('Paused: what runs goes on, nothing new is handed out.', () =>
      ask('Pause', { ...what, reason: reason.value === '' ? null : reason.value }),
    ).then(onDone);
  };
  return (
    <section aria-label="Held up">
      <h2>Held up</h2>
      {pauses.length === 0 ? (
        <p class="faint">Nothing is: stages go to runners as they come.</p>
      ) : (
        <ul class="cards">
          {pauses.map((each) => (
            <PauseCard key={`${each.kind} ${each.name}`} pause={each} onDone={onDone} />
          ))}
        </ul>
      )}
      <form
        class="row form"
        onSubmit={(event) => {
          event.preventDefault();
          pause();
        }}
      >
        <label>
          Pause{' '}
          <select value={kind.value} onChange={(event) => (kind.value = kindOf(event.currentTarget.value))}>
            <option value="all">everything</option>
            <option value="key">an owner’s stages</option>
            <option value="label">stages that ask for a label</option>
          </select>
        </label>
        {kind.value === 'all' ? null : (
          <label>
            {kind.value === 'key' ? 'Owner' : 'Label'}{' '}
            <input required value={name.value} onInput={(event) => (name.value = event.currentTarget.value.trim())} />
          </label>
        )}
        <label class="grow">
          Why{' '}
          <input
            value={reason.value}
            maxLength={200}
            placeholder="for those who wonder"
            onInput={(event) => (reason.value = event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="bad">
          Pause
        </button>
      </form>
    </section>
  );
}

function kindOf(value: string): 'all' | 'key' | 'label' {
  return value === 'key' || value === 'label' ? value : 'all';
}

function PauseCard({ pause, onDone }: { readonly pause: Pause; onDone(): void }): JSX.Element {
  const { kind, name, since, by, reason } = pause;
  const undo = async (): Promise<unknown> => {
    if (kind === 'runner') return await ask('Drain', { runner: name, undo: true });
    return await ask('Resume', kind === 'all' ? {} : { [kind]: name });
  };
  return (
    <li class="row">
      <strong>
        {kind === 'all' ? 'everything' : kind === 'runner' ? 'drained: ' : `${kind} `}
        <Name text={name ?? ''} />
      </strong>
      <span class="grow">
        <Name text={reason ?? ''} />
      </span>
      <span class="faint">
        <Ago at={since} /> by <Name text={by} />
      </span>
      <button type="button" onClick={() => void attempt('It goes on.', undo).then(onDone)}>
        Resume
      </button>
    </li>
  );
}

function Queues({ queues, onDone }: { readonly queues: Status['queues']; onDone(): void }): JSX.Element {
  if (queues.length === 0)
    return (
      <section aria-label="Queue">
        <h2>Queue</h2>
        <p class="faint">No stage waits for a runner.</p>
      </section>
    );
  return (
    <section aria-label="Queue">
      <h2>Queue</h2>
      <First rows={queues}>
        {(shown) => (
          <div class="table-frame tall" tabIndex={0} role="group" aria-label="Queues">
            <table>
              <thead>
                <tr>
                  <th scope="col">Owner</th>
                  <th scope="col">Labels</th>
                  <th scope="col">Stages</th>
                  <th scope="col">First since</th>
                  <th scope="col">
                    <span class="unsaid">What to do</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {shown.map(({ labels, key, stages, since, isPaused }) => (
                  <tr key={`${key} ${labels.join(' ')}`}>
                    <td>
                      <Name text={key} />
                    </td>
                    <td>{labels.length === 0 ? 'any' : <Name text={labels.join(', ')} />}</td>
                    <td>{stages.toLocaleString()}</td>
                    <td>{since === null ? '' : <Ago at={since} />}</td>
                    <td>
                      {isPaused ? (
                        <span class="tag">paused</span>
                      ) : (
                        <button
                          type="button"
                          class="quiet"
                          onClick={() => void attempt('Paused.', () => ask('Pause', { key })).then(onDone)}
                        >
                          Pause
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </First>
    </section>
  );
}

function Runners({ runners, onDone }: { readonly runners: Status['runners']; onDone(): void }): JSX.Element {
  return (
    <section aria-label="Runners">
      <h2>Runners</h2>
      {runners.length === 0 ? (
        <p class="problem">There is none: nothing can run. A machine becomes one with a token of the next page.</p>
      ) : (
        <First rows={runners}>
          {(shown) => (
            <ul class="cards">
              {shown.map(({ id, labels, slots, busy, isDrained, tenant }) => (
                <li key={id} class="row">
                  <strong>
                    <Name text={id} />
                  </strong>
                  <span class="grow faint">
                    <Name text={labels.join(', ')} />
                  </span>
                  <span>
                    {busy} of {slots} slots
                  </span>
                  <meter min={0} max={Math.max(1, slots)} value={busy} aria-label={`Slots of ${id} in use`} />
                  {isDrained ? <span class="tag">drained</span> : null}
                  {tenant === null ? null : <span class="tag">for {tenant} alone</span>}
                  <button
                    type="button"
                    class="quiet"
                    onClick={() =>
                      void attempt(isDrained ? 'It gets stages again.' : 'It gets nothing new.', () =>
                        ask('Drain', { runner: id, undo: isDrained }),
                      ).then(onDone)
                    }
                  >
                    {isDrained ? 'Take it back' : 'Drain'}
                  </button>
                </li>
              ))}
            </ul>
          )}
        </First>
      )}
    </section>
  );
}

function Schedulers({ schedulers }: { readonly schedulers: Status['schedulers'] }): JSX.Element {
  return (
    <section aria-label="Schedulers">
      <h2>Schedulers</h2>
      <ul class="cards">
        {schedulers.map(({ id, answers, trouble, journalUsed, knowsPauses, partitions }) => (
          <li key={id}>
            <p class="row">
              <strong class="grow">
                <Name text={id} />
              </strong>
              {answers ? (
                <span>journal {Math.round(journalUsed * 100)} % full</span>
              ) : (
                <span class="bad-word">silent</span>
              )}
              {answers && !knowsPauses ? <span class="bad-word">waits to hear what is paused</span> : null}
            </p>
            {trouble === null ? null : (
              <p class="reason">
                <Name text={trouble} />
              </p>
            )}
            <Partitions partitions={partitions} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Partitions({ partitions }: { readonly partitions: Status['schedulers'][number]['partitions'] }): JSX.Element {
  return (
    <ul class="partitions" aria-label="Partitions">
      {partitions.map(({ number, isOpen, runs, parked, lagSecs }) => (
        <li key={number} class={isOpen ? '' : 'is-opening'}>
          <strong>{number}</strong> {isOpen ? '' : 'is taken over, '}
          {runs.toLocaleString()} {runs === 1 ? 'run' : 'runs'}
          {parked === 0 ? '' : `, ${parked.toLocaleString()} parked`}
          {lagSecs < 1 ? '' : `, the store ${durationOf(lagSecs * 1_000)} behind`}
        </li>
      ))}
    </ul>
  );
}
