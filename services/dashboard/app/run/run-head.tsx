/** What a run is, what has become of it and why, and what may be done about it. */
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import type { RunLog } from '../log/run-log.ts';
import { Fact } from '../parts/fact.tsx';
import { useKeptFocus } from '../parts/focus.ts';
import { Live } from '../parts/live.tsx';
import { Name } from '../parts/name.tsx';
import { attemptSignedIn } from '../parts/notices.tsx';
import { isOver } from '../parts/is-over.ts';
import { StatusWord } from '../parts/status.tsx';
import { Ago, Lasted } from '../parts/time.tsx';
import { useAlone } from '../parts/use-alone.ts';
import { go, hrefOf } from '../router.ts';
import { shortRef } from '../runs/runs-page.tsx';
import { WaitingList } from './waiting-list.tsx';
import type { Run } from './stage-groups.ts';

export function RunHead({
  run,
  log,
  onDone,
}: {
  readonly run: Run;
  readonly log: RunLog;
  onDone(): void;
}): JSX.Element {
  return (
    <header class="run-head">
      <div class="head">
        <h1>
          <a href={hrefOf(`/runs?pipeline=${encodeURIComponent(run.pipelineName)}`)}>
            <Name text={run.pipelineName} />
          </a>
        </h1>
        <StatusWord status={run.status} />
        {run.verdict === null ||
        run.verdict === 'passed' ||
        run.verdict === 'failed' ||
        run.verdict === 'cancelled' ? null : (
          <span class="tag">{run.verdict}</span>
        )}
        <Live state={log.state.value} />
        <Actions run={run} onDone={onDone} />
      </div>
      <Facts run={run} />
      {run.reason === null ? null : (
        <p class="reason">
          Reason: <Name text={run.reason} />
        </p>
      )}
      <WaitingList waiting={run.waitingOn} />
      {run.verdictEvidence.length === 0 ? null : (
        <ul class="evidence" aria-label="What the verdict rests on">
          {run.verdictEvidence.map((sentence) => (
            <li key={sentence}>
              <Name text={sentence} />
            </li>
          ))}
        </ul>
      )}
    </header>
  );
}

function Facts({ run }: { readonly run: Run }): JSX.Element {
  const { repository, ref, commit, actor, trigger, startedAt, finishedAt, parentRunId, children, tick, inputs } = run;
  return (
    <dl class="facts">
      {repository === null ? null : (
        <Fact title="For">
          <Name text={repository} /> {ref === null ? null : <Name text={shortRef(ref)} />}{' '}
          {commit === null ? null : <code title={commit}>{commit.slice(0, 8)}</code>}
        </Fact>
      )}
      <Fact title="By">
        {actor === null ? '' : <Name text={actor} />} ({trigger}
        {run.trusted ? '' : ', not trusted'})
      </Fact>
      <Fact title="Began">
        <Ago at={startedAt} />
      </Fact>
      <Fact title={finishedAt === null ? 'For' : 'Took'}>
        <Lasted from={startedAt} to={finishedAt} />
      </Fact>
      {tick === null ? null : (
        <Fact title="Schedule">
          <code>{tick.cron}</code>
          {tick.missed === 0 ? '' : `, ${tick.missed} missed before`}
        </Fact>
      )}
      {parentRunId === null ? null : (
        <Fact title="Repeats">
          <a href={hrefOf(`/runs/${parentRunId}`)}>an earlier run</a>
        </Fact>
      )}
      {children.length === 0 ? null : (
        <Fact title="Repeated by">
          {children.map((id, index) => (
            <a key={id} href={hrefOf(`/runs/${id}`)}>
              {index === children.length - 1 ? 'the latest' : `${index + 1}`}
            </a>
          ))}
        </Fact>
      )}
      {inputs.map(({ key, value }) => (
        <Fact key={key} title={key}>
          <Name text={value} />
        </Fact>
      ))}
    </dl>
  );
}

function Actions({ run, onDone }: { readonly run: Run; onDone(): void }): JSX.Element {
  const { id } = run;
  const waitsForPeople = !run.trusted && run.waitingOn.some(({ kind }) => kind === 'approval');
  const keepFocus = useKeptFocus(`${run.status} ${waitsForPeople}`);
  const change = async (done: string, operation: 'ApproveRun' | 'Cancel'): Promise<void> => {
    keepFocus();
    await attemptSignedIn(done, () => ask(operation, { id }));
    onDone();
  };
  const alone = useAlone();
  const rerun = async (onlyFailed: boolean): Promise<void> => {
    const { rerunPipeline } = await ask('Rerun', { id, onlyFailed });
    go(`/runs/${rerunPipeline.run.id}`);
  };
  return (
    <div class="actions">
      {waitsForPeople ? (
        <button type="button" onClick={() => void change('Approved.', 'ApproveRun')}>
          Approve this run
        </button>
      ) : null}
      {isOver(run.status) ? null : (
        <button type="button" class="bad" onClick={() => void change('Cancelled.', 'Cancel')}>
          Cancel
        </button>
      )}
      {run.status === 'FAILED' || run.status === 'CANCELLED' ? (
        <button type="button" onClick={() => alone(() => attemptSignedIn('Begun.', () => rerun(true)))}>
          Run again what failed
        </button>
      ) : null}
      <button type="button" class="quiet" onClick={() => alone(() => attemptSignedIn('Begun.', () => rerun(false)))}>
        Run again
      </button>
    </div>
  );
}
