/** What the command asks a server of its runs: lists, one run whole, and its end before its time. */
import { ask, notOurs, refusal } from './graphql.ts';
import type { ServerClient } from './http-client.ts';
import { fieldOf } from './json.ts';
import { noSuchRun } from './run-id.ts';
import type { ListedRun, ShownRun, ShownStage } from '../output/shown-run.ts';

export type RunFilters = Readonly<Partial<Record<'pipelineName' | 'status' | 'repository' | 'ref' | 'before', string>>>;

const LISTED_FIELDS = 'id pipelineName status startedAt finishedAt repository ref commit';
const STAGE_FIELDS = 'name status startedAt finishedAt reason attempt exitCode after';
const FILTER_TYPES = {
  pipelineName: 'String',
  status: 'RunStatus',
  repository: 'String',
  ref: 'String',
  before: 'String',
};
/** A server gives no more at a time. */
const PAGE_RUNS_MAX = 100;

/** The newest first, at most `limit`. */
export async function listRuns(client: ServerClient, filters: RunFilters, limit: number): Promise<ListedRun[]> {
  const runs: ListedRun[] = [];
  for (let before = filters.before; runs.length < limit;) {
    const count = Math.min(PAGE_RUNS_MAX, limit - runs.length);
    const page = await runsPage(client, { ...filters, ...(before === undefined ? {} : { before }) }, count);
    runs.push(...page);
    before = page.at(-1)?.id;
    if (page.length < count) break;
  }
  return runs;
}

async function runsPage(client: ServerClient, filters: RunFilters, limit: number): Promise<ListedRun[]> {
  const given = Object.entries(FILTER_TYPES).filter(([name]) => Object.hasOwn(filters, name));
  const declared = given.map(([name, type]) => `, $${name}: ${type}`).join('');
  const passed = given.map(([name]) => `, ${name}: $${name}`).join('');
  const query = `query ($limit: Int${declared}) { runs(limit: $limit${passed}) { ${LISTED_FIELDS} } }`;
  const { data, errors } = await ask(client, query, { limit, ...filters });
  if (errors[0] !== undefined) throw refusal(client, errors[0]);
  const runs = fieldOf(data, 'runs');
  return Array.isArray(runs) ? runs.map((run) => listedRun(run) ?? notOurs(client)) : notOurs(client);
}

export async function showRun(client: ServerClient, id: string): Promise<ShownRun> {
  const query = `query ($id: String!) { run(id: $id) { ${LISTED_FIELDS} outcome reason stages { ${STAGE_FIELDS} } } }`;
  const { data, errors } = await ask(client, query, { id });
  if (errors[0] !== undefined) throw refusal(client, errors[0]);
  const run = fieldOf(data, 'run');
  if (run === null) throw noSuchRun(id, client.server);
  const listed = listedRun(run);
  const stages = fieldOf(run, 'stages');
  if (listed === undefined || !Array.isArray(stages)) return notOurs(client);
  return {
    ...listed,
    outcome: textOf(run, 'outcome'),
    reason: textOf(run, 'reason'),
    stages: stages.map((stage) => shownStage(stage) ?? notOurs(client)),
  };
}

export interface CancelledRun {
  readonly id: string;
  readonly status: string;
  readonly cancelledStages: number;
}

export async function cancelRun(client: ServerClient, id: string): Promise<CancelledRun> {
  const query = 'mutation ($id: String!) { cancelPipeline(id: $id) { run { id status } cancelledStages } }';
  const { data, errors } = await ask(client, query, { id });
  const [error] = errors;
  if (error?.code === 'NOT_FOUND') throw noSuchRun(id, client.server);
  if (error !== undefined) throw refusal(client, error);
  const result = fieldOf(data, 'cancelPipeline');
  const [status, count] = [statusOf(fieldOf(result, 'run')), fieldOf(result, 'cancelledStages')];
  return status === null || typeof count !== 'number' ? notOurs(client) : { id, status, cancelledStages: count };
}

function listedRun(run: unknown): ListedRun | undefined {
  const [id, pipelineName, startedAt] = ['id', 'pipelineName', 'startedAt'].map((name) => textOf(run, name));
  const status = statusOf(run);
  if (!id || !/^[\w-]+$/.test(id) || typeof pipelineName !== 'string' || !status || !startedAt) return undefined;
  const [finishedAt = null, repository = null, ref = null, commit = null] = [
    'finishedAt',
    'repository',
    'ref',
    'commit',
  ].map((name) => textOf(run, name));
  return { id, pipelineName, status, startedAt, finishedAt, repository, ref, commit };
}

function shownStage(stage: unknown): ShownStage | undefined {
  const [name, attempt, exitCode] = ['name', 'attempt', 'exitCode'].map((each) => fieldOf(stage, each));
  const status = statusOf(stage);
  if (typeof name !== 'string' || status === null) return undefined;
  const after = fieldOf(stage, 'after');
  return {
    name,
    status,
    startedAt: textOf(stage, 'startedAt'),
    finishedAt: textOf(stage, 'finishedAt'),
    reason: textOf(stage, 'reason'),
    attempt: typeof attempt === 'number' ? attempt : 0,
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    after: Array.isArray(after) ? after.filter((each) => typeof each === 'string') : [],
  };
}

/** One word, which is shown as it stands. */
function statusOf(of: unknown): string | null {
  const status = textOf(of, 'status');
  return status !== null && /^\w+$/.test(status) ? status : null;
}

function textOf(value: unknown, name: string): string | null {
  const text = fieldOf(value, name);
  return typeof text === 'string' ? text : null;
}
