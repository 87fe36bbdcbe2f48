/** The page of a run: what it is and why, its stages, and the log of one of them. */
import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { LogPane } from '../log/log-pane.tsx';
import { RunLog } from '../log/run-log.ts';
import { useKeys } from '../parts/keys.ts';
import { Name } from '../parts/name.tsx';
import { Empty, Loading, ProblemNote } from '../parts/states.tsx';
import { go, hrefOf, place, withQuery } from '../router.ts';
import { isSignedIn, session } from '../session/session.ts';
import { RunExtras } from './run-extras.tsx';
import { RunHead } from './run-head.tsx';
import { Scrubber } from './scrubber.tsx';
import { RunView } from './run-view.ts';
import type { Run } from './stage-groups.ts';
import { StageDetails } from './stage-details.tsx';
import { StageGraph } from './stage-graph.tsx';
import { StageTable } from './stage-table.tsx';
import { Waterfall } from './waterfall.tsx';
import { setTitle } from '../parts/title.ts';

/** More stages than this are a table at first: a picture of them says nothing. */
const GRAPH_STAGES_MAX = 150;
const VIEWS = { graph: 'Graph', table: 'Table', time: 'Time' } as const;
type View = keyof typeof VIEWS;

interface Opened {
  readonly view: RunView;
  readonly log: RunLog;
}

export function RunPage({ id }: { readonly id: string }): JSX.Element {
  const opened = useSignal<Opened | null>(null);
  useSignalEffect(() => {
    // Whoever signs in may see what nobody else does.
    void isSignedIn.value;
    const view = new RunView(id);
    const log = new RunLog(id, () => view.changed());
    opened.value = { view, log };
    return () => {
      view.close();
      log.close();
    };
  });
  const run = opened.value?.view.run.value ?? null;
  if (run === null) setTitle('Run');
  if (opened.value === null) return <Loading what="the run" />;
  const { view, log } = opened.value;
  const problem = view.problem.value;
  if (view.isMissing.value)
    return (
      <Empty title="There is no such run here">
        <p>
          It may be somebody else’s, or be gone{session.value === null ? ': sign in to see your own' : ''}.{' '}
          <a href={hrefOf('/runs')}>Go to the runs</a>
        </p>
      </Empty>
    );
  if (run === null) return problem === null ? <Loading what="the run" /> : <ProblemNote problem={problem} />;
  return (
    <>
      {problem === null ? null : <ProblemNote problem={problem} />}
      <Shown run={run} log={log} onDone={() => view.changed({ now: true })} />
    </>
  );
}

function Shown({ run, log, onDone }: { readonly run: Run; readonly log: RunLog; onDone(): void }): JSX.Element {
  const { query } = place.value;
  const asked = query.get('stage');
  const chosen = run.stages.find(({ name }) => name === asked) ?? null;
  const view = viewOf(query.get('view'), run);
  const at = versionOf(query.get('at'), run);
  const line = Number.parseInt(query.get('line') ?? '', 10);
  setTitle(run.pipelineName);
  // What is shown first is what one has come for: the failure, else what runs.
  const stage = useMemo(() => chosen ?? firstOf(run), [run, chosen]);
  const select = (name: string): void => go(withQuery({ stage: name, line: null }), { replace: chosen !== null });
  useKeys([
    {
      key: 'f',
      says: 'Next failed stage',
      run: () => select(nextFailed(run, stage?.name ?? null) ?? stage?.name ?? ''),
    },
    { key: 'n', says: 'Next stage', run: () => select(beside(run, stage?.name, 1)) },
    { key: 'p', says: 'Stage before', run: () => select(beside(run, stage?.name, -1)) },
    { key: 'v', says: 'Next view of the stages', run: () => go(withQuery({ view: after(view) }), { replace: true }) },
  ]);
  return (
    <>
      <RunHead run={run} log={log} onDone={onDone} />
      <section aria-label="Stages" class="stages">
        <div class="views" role="group" aria-label="Views of the stages">
          {(Object.keys(VIEWS) as View[]).map((each) => (
            <button
              type="button"
              key={each}
              class="quiet"
              aria-pressed={view === each}
              onClick={() => go(withQuery({ view: each }), { replace: true })}
            >
              {VIEWS[each]}
            </button>
          ))}
          <button
            type="button"
            class="quiet"
            aria-pressed={at !== null}
            onClick={() => go(withQuery({ at: at === null ? String(run.version) : null }), { replace: true })}
          >
            Back in time
          </button>
        </div>
        {at === null ? (
          <Stages view={view} run={run} chosen={stage?.name ?? null} onChoose={select} />
        ) : (
          <Scrubber run={run} at={at}>
            {(past) => <Stages view={view} run={past} chosen={stage?.name ?? null} onChoose={select} />}
          </Scrubber>
        )}
      </section>
      {stage === null ? null : (
        <section class="stage" aria-label="Stage">
          <h2>
            <Name text={stage.name} />
          </h2>
          <StageDetails key={stage.name} run={run} stage={stage} onDone={onDone} />
          <LogPane
            key={stage.name}
            log={log}
            stage={stage.name}
            line={Number.isSafeInteger(line) && line > 0 ? line : null}
            status={stage.status}
          />
        </section>
      )}
      <RunExtras run={run} />
    </>
  );
}

interface StagesProps {
  readonly view: View;
  readonly run: Pick<Run, 'stages' | 'startedAt' | 'finishedAt'>;
  readonly chosen: string | null;
  onChoose(stage: string): void;
}

function Stages({ view, ...shown }: StagesProps): JSX.Element {
  if (view === 'graph') return <StageGraph {...shown} />;
  return view === 'table' ? <StageTable {...shown} /> : <Waterfall {...shown} />;
}

/** Which of its versions is looked at; null: as it stands. */
function versionOf(asked: string | null, { version }: Run): number | null {
  const at = Number.parseInt(asked ?? '', 10);
  return Number.isSafeInteger(at) ? Math.max(1, Math.min(at, version)) : null;
}

function viewOf(asked: string | null, { stages }: Run): View {
  if (asked !== null && Object.hasOwn(VIEWS, asked)) return asked as View;
  return stages.length > GRAPH_STAGES_MAX ? 'table' : 'graph';
}

function after(view: View): View {
  const views = Object.keys(VIEWS) as View[];
  return views[(views.indexOf(view) + 1) % views.length] ?? 'graph';
}

function firstOf({ stages }: Run): Run['stages'][number] | null {
  return (
    stages.find(({ status }) => status === 'FAILED') ??
    stages.find(({ gate, waitingOn }) => gate !== null && waitingOn.some(({ kind }) => kind === 'approval')) ??
    stages.find(({ status }) => status === 'RUNNING') ??
    stages.find(({ startedAt }) => startedAt !== null) ??
    stages[0] ??
    null
  );
}

function nextFailed({ stages }: Run, from: string | null): string | null {
  const at = stages.findIndex(({ name }) => name === from);
  return [...stages.slice(at + 1), ...stages.slice(0, at + 1)].find(({ status }) => status === 'FAILED')?.name ?? null;
}

function beside({ stages }: Run, from: string | undefined, by: number): string {
  const at = stages.findIndex(({ name }) => name === from);
  return stages[(at + by + stages.length) % stages.length]?.name ?? '';
}
