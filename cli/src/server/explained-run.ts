/** What the server knows about why a run waits or has failed, in a few requests. */
import { endsEventStream } from '@penstock/run/public-events';
import type { ExplainedRun, ExplainedStage, ExplainedWait, FailedStage, SinceGreen } from '../output/explained-run.ts';
import { fieldAnswered, hasEnded, notOurs } from './graphql.ts';
import type { ServerClient } from './http-client.ts';
import { fieldOf, listOf, parseJson } from './json.ts';
import { isPublicEvent } from './public-event.ts';
import { readLogStream } from './log-stream.ts';
import { noSuchRun } from './run-id.ts';

/** Failed stages whose logs are shown, and lines of each. */
const FAILED_MAX = 3;
const LINES_MAX = 10;
/** A server that says nothing of the log for so long cannot read it now: it is explained without its lines. */
const LOG_SILENT_MS_MAX = 20_000;
/** What is compared of two pipeline files. */
const FILE_LINES_MAX = 100_000;

const WAIT_FIELDS = 'kind holder position since etaSecs message';
const QUERY = `query ($id: String!) { run(id: $id) {
  id pipelineName status startedAt finishedAt reason verdict verdictEvidence repository commit inputs { key value }
  waitingOn { ${WAIT_FIELDS} }
  stages { name status reason attempt exitCode waitingOn { ${WAIT_FIELDS} } }
} }`;
const GREEN_QUERY = `query ($name: String!, $before: String!, $repository: String) {
  runs(limit: 1, pipelineName: $name, status: SUCCESS, before: $before, repository: $repository) { id startedAt commit inputs { key value } }
}`;
const COMPARE_QUERY = `query ($a: String!, $b: String!) { compareRuns(a: $a, b: $b) { stage change } }`;
const CREATED_QUERY = 'query ($id: String!) { runEvents(id: $id, limit: 1) { data } }';

export async function explainedRun(
  client: ServerClient,
  id: string,
  signal: AbortSignal,
  logSilentMsMax = LOG_SILENT_MS_MAX,
): Promise<ExplainedRun> {
  const run = await fieldAnswered(client, QUERY, { id }, 'run');
  if (run === null) throw noSuchRun(id, client.server);
  const [pipelineName, status, startedAt] = ['pipelineName', 'status', 'startedAt'].map((name) => textOf(run, name));
  const stages = listOf(run, 'stages').map((stage) => stageOf(stage) ?? notOurs(client));
  if (pipelineName == null || status == null || startedAt == null) return notOurs(client);
  const failed = stages.filter((stage) => stage.status === 'FAILED');
  return {
    id,
    pipelineName,
    status,
    startedAt,
    finishedAt: textOf(run, 'finishedAt'),
    reason: textOf(run, 'reason'),
    verdict: textOf(run, 'verdict'),
    verdictEvidence: listOf(run, 'verdictEvidence').filter((text) => typeof text === 'string'),
    waitingOn: listOf(run, 'waitingOn').map(waitOf),
    stages: stages.filter(({ waitingOn }) => waitingOn.length > 0),
    running: stages.filter((stage) => stage.status === 'RUNNING').map(({ name }) => name),
    failed: hasEnded(status)
      ? await withLastLines(client, id, failed, { signal, silentMsMax: logSilentMsMax })
      : failed.map((stage) => failedStage(stage, [])),
    ...(status === 'FAILED' ? { sinceGreen: await sinceGreen(client, run, { id, pipelineName }) } : {}),
  };
}

/** The last of the logs of the first ones, from the events that end them. */
async function withLastLines(
  client: ServerClient,
  runId: string,
  failed: readonly ExplainedStage[],
  { signal, silentMsMax }: { readonly signal: AbortSignal; readonly silentMsMax: number },
): Promise<FailedStage[]> {
  const wanted = new Set(
    failed
      .slice(0, FAILED_MAX)
      .filter(({ attempt }) => attempt > 0)
      .map(({ name }) => name),
  );
  const lines = new Map<string, readonly string[]>();
  if (wanted.size === 0) return failed.map((stage) => failedStage(stage, []));
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), silentMsMax);
  try {
    await readLogStream({
      client,
      runId,
      // It has ended: everything comes, however slowly.
      follow: true,
      signal: AbortSignal.any([signal, silent.signal]),
      onMessage: ({ data }) => {
        timer.refresh();
        const event = parseJson(data);
        if (!isPublicEvent(event)) return { isLast: false, atMs: Number.NaN };
        if (event.type === 'stage_completed' && wanted.delete(event.stage))
          lines.set(event.stage, lastLinesOf(event.logs ?? ''));
        return { isLast: wanted.size === 0 || endsEventStream(event), atMs: Date.parse(event.timestamp) };
      },
      room: () => {},
      note: () => {},
    });
  } finally {
    clearTimeout(timer);
  }
  return failed.map((stage) => failedStage(stage, lines.get(stage.name) ?? []));
}

function failedStage({ waitingOn: _, ...stage }: ExplainedStage, lastLines: readonly string[]): FailedStage {
  return { ...stage, lastLines };
}

function lastLinesOf(logs: string): string[] {
  const lines = logs.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.slice(-LINES_MAX);
}

async function sinceGreen(
  client: ServerClient,
  run: unknown,
  { id, pipelineName }: { readonly id: string; readonly pipelineName: string },
): Promise<SinceGreen | null> {
  const repository = textOf(run, 'repository');
  const variables = { name: pipelineName, before: id, ...(repository === null ? {} : { repository }) };
  const found = await fieldAnswered(client, GREEN_QUERY, variables, 'runs');
  const green: unknown = Array.isArray(found) ? found[0] : undefined;
  const greenId = textOf(green, 'id');
  if (greenId === null) return null;
  const compared = await fieldAnswered(client, COMPARE_QUERY, { a: greenId, b: id }, 'compareRuns');
  const [before, now] = [await createdOf(client, greenId), await createdOf(client, id)];
  const [yamlBefore, yamlNow] = [textOf(before, 'yaml'), textOf(now, 'yaml')];
  const commit = { before: textOf(green, 'commit'), now: textOf(run, 'commit') };
  const changedStages = (Array.isArray(compared) ? compared : []).map((each: unknown) => ({
    stage: textOf(each, 'stage') ?? '',
    change: textOf(each, 'change') ?? '',
  }));
  return {
    run: greenId,
    startedAt: textOf(green, 'startedAt') ?? '',
    commit: commit.before === commit.now ? null : commit,
    file: yamlBefore === null || yamlNow === null ? null : linesChanged(yamlBefore, yamlNow),
    isFileKnown: yamlBefore !== null && yamlNow !== null,
    extensions: changedValues(
      valuesOf(before, 'extensions', ['uses', 'version']),
      valuesOf(now, 'extensions', ['uses', 'version']),
    ).map(({ name, ...version }) => ({ uses: name, ...version })),
    inputs: changedValues(valuesOf(green, 'inputs', ['key', 'value']), valuesOf(run, 'inputs', ['key', 'value'])).map(
      ({ name, ...value }) => ({ key: name, ...value }),
    ),
    stages: changedStages.filter(({ change }) => change === 'added' || change === 'removed'),
  };
}

/** The run's first event: its file, for those whose run it is, and its lock. */
async function createdOf(client: ServerClient, id: string): Promise<unknown> {
  const events = await fieldAnswered(client, CREATED_QUERY, { id }, 'runEvents');
  const data = Array.isArray(events) ? fieldOf(events[0], 'data') : undefined;
  return typeof data === 'string' ? parseJson(data) : undefined;
}

/** How many lines are in the one and not in the other, wherever they stand; null: none. */
function linesChanged(before: string, now: string): { readonly added: number; readonly removed: number } | null {
  if (before === now) return null;
  const counts = new Map<string, number>();
  for (const line of before.split('\n', FILE_LINES_MAX)) counts.set(line, (counts.get(line) ?? 0) + 1);
  let added = 0;
  for (const line of now.split('\n', FILE_LINES_MAX)) {
    const left = counts.get(line) ?? 0;
    if (left > 0) counts.set(line, left - 1);
    else added += 1;
  }
  let removed = 0;
  for (const left of counts.values()) removed += left;
  return { added, removed };
}

function valuesOf(of: unknown, list: string, [name, value]: readonly [string, string]): ReadonlyMap<string, string> {
  return new Map(listOf(of, list).map((each) => [textOf(each, name) ?? '', textOf(each, value) ?? '']));
}

function changedValues(before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>) {
  const names = [...new Set([...now.keys(), ...before.keys()])];
  return names
    .map((name) => ({ name, before: before.get(name) ?? null, now: now.get(name) ?? null }))
    .filter((each) => each.before !== each.now);
}

function stageOf(stage: unknown): ExplainedStage | undefined {
  const [name, status, reason] = ['name', 'status', 'reason'].map((field) => textOf(stage, field));
  const [attempt, exitCode] = [fieldOf(stage, 'attempt'), fieldOf(stage, 'exitCode')];
  if (name == null || status == null) return undefined;
  return {
    name,
    status,
    reason: reason ?? null,
    attempt: typeof attempt === 'number' ? attempt : 0,
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    waitingOn: listOf(stage, 'waitingOn').map(waitOf),
  };
}

function waitOf(wait: unknown): ExplainedWait {
  const [position, etaSecs] = [fieldOf(wait, 'position'), fieldOf(wait, 'etaSecs')];
  return {
    kind: textOf(wait, 'kind') ?? '',
    holder: textOf(wait, 'holder'),
    position: typeof position === 'number' ? position : null,
    since: textOf(wait, 'since'),
    etaSecs: typeof etaSecs === 'number' ? etaSecs : null,
    message: textOf(wait, 'message') ?? '',
  };
}

function textOf(value: unknown, name: string): string | null {
  const text = fieldOf(value, name);
  return typeof text === 'string' ? text : null;
}
