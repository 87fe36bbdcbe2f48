/** What is known of one stage beside its log, and what may be done about it. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { Name } from '../parts/name.tsx';
import { attemptSignedIn } from '../parts/notices.tsx';
import { isOver } from '../parts/is-over.ts';
import { StatusWord } from '../parts/status.tsx';
import { Ago, Lasted } from '../parts/time.tsx';
import { useAlone } from '../parts/use-alone.ts';
import { go } from '../router.ts';
import type { Run, Stage } from './stage-groups.ts';
import { StageMore } from './stage-more.tsx';
import { WaitingList } from './waiting-list.tsx';

interface Props {
  readonly run: Run;
  readonly stage: Stage;
  onDone(): void;
}

export function StageDetails({ run, stage, onDone }: Props): JSX.Element {
  const { status, reason, exitCode, attempt, tests, adopted, startedAt, finishedAt, after } = stage;
  const hasMore = useSignal(false);
  const alone = useAlone();
  const again = async (): Promise<void> => {
    const { rerunPipeline } = await ask('Rerun', { id: run.id, from: [stage.name] });
    go(`/runs/${rerunPipeline.run.id}`);
  };
  return (
    <div class="stage-details">
      <p class="row">
        <StatusWord status={status} />
        {adopted ? <span class="tag">from the run before</span> : null}
        {reason === null ? null : <span>{reason}</span>}
        {exitCode === null || exitCode === 0 ? null : <span>exit code {exitCode}</span>}
        {attempt > 1 ? <span>attempt {attempt}</span> : null}
        <Lasted from={startedAt} to={finishedAt} />
        {tests === null ? null : (
          <span>
            {tests.passed} of {tests.total} tests passed{tests.failed === 0 ? '' : `, ${tests.failed} failed`}
          </span>
        )}
        {after === null || after.length === 0 ? null : (
          <span class="faint">
            after <Name text={after.slice(0, 5).join(', ')} />
            {after.length > 5 ? ` and ${after.length - 5} more` : ''}
          </span>
        )}
        {isOver(status) ? (
          <button type="button" class="quiet" onClick={() => alone(() => attemptSignedIn('Begun.', again))}>
            Run again from here
          </button>
        ) : null}
      </p>
      <WaitingList waiting={stage.waitingOn} />
      <Gate run={run} stage={stage} onDone={onDone} />
      {attempt === 0 ? null : (
        <details onToggle={(event) => (hasMore.value = event.currentTarget.open)}>
          <summary>Attempts and outputs</summary>
          {hasMore.value ? (
            <StageMore key={`${stage.name} ${attempt} ${status}`} id={run.id} before={nameBefore(run, stage)} />
          ) : null}
        </details>
      )}
    </div>
  );
}

function nameBefore({ stages }: Run, stage: Stage): string | null {
  return stages[stages.findIndex(({ name }) => name === stage.name) - 1]?.name ?? null;
}

function Gate({ run, stage, onDone }: Props): JSX.Element | null {
  const comment = useSignal('');
  const { gate, approvals } = stage;
  if (gate === null) return null;
  const decide = (operation: 'ApproveStage' | 'RejectStage', done: string): void => {
    const variables = { runId: run.id, stage: stage.name, comment: comment.value.trim() === '' ? null : comment.value };
    void attemptSignedIn(done, () => ask(operation, variables)).then((isDone) => {
      if (isDone) comment.value = '';
      onDone();
    });
  };
  const isOpen = stage.waitingOn.some(({ kind }) => kind === 'approval');
  return (
    <section class="gate" aria-label="Approval">
      {gate.message === null ? null : (
        <p>
          <Name text={gate.message} />
        </p>
      )}
      <p class="faint">
        {gate.quorum === 1 ? 'One approval' : `${gate.quorum} approvals`} of{' '}
        {gate.approvers === null ? 'whoever may cancel the run' : <Name text={gate.approvers.join(', ')} />}
        {gate.preventSelf ? ', not of who began it' : ''}.
        {gate.dueAt === null ? null : (
          <>
            {' '}
            Until <Ago at={gate.dueAt} />.
          </>
        )}
      </p>
      {approvals.length === 0 ? null : (
        <ul>
          {approvals.map(({ by, decision, comment: said, at }) => (
            <li key={`${by} ${at}`}>
              <Name text={by} /> {decision} <Ago at={at} />
              {said === null ? null : (
                <>
                  : <Name text={said} />
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {isOpen ? (
        <p class="row">
          <label class="grow">
            <span class="unsaid">Comment</span>
            <input
              type="text"
              maxLength={500}
              placeholder="Comment (optional)"
              value={comment.value}
              onInput={(event) => (comment.value = event.currentTarget.value)}
            />
          </label>
          <button type="button" onClick={() => decide('ApproveStage', 'Approved.')}>
            Approve
          </button>
          <button type="button" class="bad" onClick={() => decide('RejectStage', 'Rejected.')}>
            Reject
          </button>
        </p>
      ) : null}
    </section>
  );
}
