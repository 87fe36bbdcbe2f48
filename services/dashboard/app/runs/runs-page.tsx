/** The list of runs: filters in the address, rows that follow the stream of changes. */
import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RunStatus } from '../api/operations.ts';
import { Live } from '../parts/live.tsx';
import { Name } from '../parts/name.tsx';
import { Empty, Loading, ProblemNote } from '../parts/states.tsx';
import { StatusSign } from '../parts/status.tsx';
import { Ago, Lasted } from '../parts/time.tsx';
import { useKeys } from '../parts/keys.ts';
import { go, hrefOf, place, withQuery } from '../router.ts';
import { isSignedIn, session } from '../session/session.ts';
import { RunList } from './run-list.ts';
import type { RunRow } from './run-rows.ts';
import { setTitle } from '../parts/title.ts';

const STATUSES: readonly RunStatus[] = ['PENDING', 'QUEUED', 'RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED'];
/** By its name in the address: the field that people see. */
const FIELDS = { pipeline: 'Pipeline', repository: 'Repository', ref: 'Branch or tag' } as const;

export function RunsPage(): JSX.Element {
  const { query } = place.value;
  const status = STATUSES.find((each) => each === query.get('status'));
  const list = useSignal<RunList | null>(null);
  const filter = useMemo(
    () => ({
      pipelineName: query.get('pipeline') ?? undefined,
      status,
      repository: query.get('repository') ?? undefined,
      ref: query.get('ref') ?? undefined,
    }),
    [query.get('pipeline'), status, query.get('repository'), query.get('ref')],
  );
  const wanted = useSignal(filter);
  wanted.value = filter;
  useSignalEffect(() => {
    // Whoever signs in or out sees other runs.
    void isSignedIn.value;
    const opened = new RunList(wanted.value);
    list.value = opened;
    return () => opened.close();
  });
  useKeys([
    { key: '/', says: 'Search by pipeline', run: () => document.getElementById('filter-pipeline')?.focus() },
    { key: 'f', says: 'Only failed runs', run: () => go(withQuery({ status: status === 'FAILED' ? null : 'FAILED' })) },
    { key: 'j', says: 'Next run', run: () => step(1) },
    { key: 'k', says: 'Run before', run: () => step(-1) },
  ]);
  setTitle('Runs');
  return (
    <>
      <div class="head">
        <h1>Runs</h1>
        {list.value === null ? null : <Live state={list.value.state.value} />}
      </div>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Status
          <select
            value={status ?? ''}
            onChange={(event) => go(withQuery({ status: event.currentTarget.value }), { replace: true })}
          >
            <option value="">any</option>
            {STATUSES.map((each) => (
              <option key={each} value={each}>
                {each.toLowerCase()}
              </option>
            ))}
          </select>
        </label>
        {Object.entries(FIELDS).map(([name, title]) => (
          <label key={name}>
            {title}
            <input
              id={`filter-${name}`}
              type="search"
              value={query.get(name) ?? ''}
              placeholder="any"
              onChange={(event) => go(withQuery({ [name]: event.currentTarget.value.trim() }), { replace: true })}
            />
          </label>
        ))}
      </form>
      {list.value === null ? null : <Rows list={list.value} isFiltered={query.size > 0} />}
    </>
  );
}

function Rows({ list, isFiltered }: { readonly list: RunList; readonly isFiltered: boolean }): JSX.Element {
  const rows = list.rows.value;
  const problem = list.problem.value;
  if (rows === null) return problem === null ? <Loading what="the runs" /> : <ProblemNote problem={problem} />;
  return (
    <>
      {problem === null ? null : <ProblemNote problem={problem} />}
      {rows.length === 0 ? <NoRuns isFiltered={isFiltered} /> : null}
      {rows.length === 0 ? null : (
        <table class="runs">
          <thead>
            <tr>
              <th scope="col">
                <span class="unsaid">Status</span>
              </th>
              <th scope="col">Pipeline</th>
              <th scope="col">For</th>
              <th scope="col">By</th>
              <th scope="col">Began</th>
              <th scope="col">Took</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={row.id} row={row} />
            ))}
          </tbody>
        </table>
      )}
      {list.hasMore.value ? (
        <p>
          <button type="button" class="quiet" onClick={() => void list.more()}>
            Show older runs
          </button>
        </p>
      ) : null}
    </>
  );
}

function Row({ row }: { readonly row: RunRow }): JSX.Element {
  const { id, status, pipelineName, repository, ref, commit, actor, trigger, startedAt, finishedAt, verdict } = row;
  return (
    <tr>
      <td>
        <StatusSign status={status} />
      </td>
      <td>
        <a class="run-link" href={hrefOf(`/runs/${id}`)}>
          <Name text={pipelineName} />
        </a>
        {verdict === 'flaky' || verdict === 'infrastructure' || verdict === 'interrupted' ? (
          <span class="tag">{verdict}</span>
        ) : null}
      </td>
      <td class="for">
        {repository === null ? null : <Name text={repository} />} {ref === null ? null : <Name text={shortRef(ref)} />}{' '}
        {commit === null ? null : <code>{commit.slice(0, 8)}</code>}
      </td>
      <td>{actor === null ? trigger : <Name text={actor} />}</td>
      <td>
        <Ago at={startedAt} />
      </td>
      <td>
        <Lasted from={startedAt} to={finishedAt} />
      </td>
    </tr>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }): JSX.Element {
  if (isFiltered)
    return (
      <Empty title="No run fits">
        <p>
          <a href={hrefOf('/runs')}>Show all runs</a>
        </p>
      </Empty>
    );
  return (
    <Empty title="No runs yet">
      <p>
        {session.value === null
          ? 'Runs of a user are seen by that user: sign in to see yours. Or start one from a terminal:'
          : 'Start one from a terminal:'}
      </p>
      <pre tabIndex={0}>penstock trigger .pipeline.yaml</pre>
    </Empty>
  );
}

export function shortRef(ref: string): string {
  return ref.replace(/^refs\/(?:heads|tags)\//u, '');
}

function step(by: number): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('a.run-link')];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
}
