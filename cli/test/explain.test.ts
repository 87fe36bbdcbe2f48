import { describe, expect, it } from 'vitest';
import { explanationOf } from '../src/output/explanation.ts';
import type { ExplainedRun, ExplainedWait } from '../src/output/explained-run.ts';
import { folder, penstock } from './command.ts';
import { fakeServer, RUN_ID, type GraphqlRequest } from './fake-server.ts';

const GREEN = '0192f0c1-0000-7abc-8def-0123456789ab';
const withKey = (url: string): Record<string, string> => ({ SERVICE_URL: url, SERVICE_API_KEY: 'secret-key' });
const SINCE = '2026-01-01T00:00:00.000Z';

function wait(kind: string, message: string, more: Partial<ExplainedWait> = {}): ExplainedWait {
  return { kind, holder: null, position: null, since: null, etaSecs: null, message, ...more };
}

function runOf(more: Partial<ExplainedRun>): ExplainedRun {
  return {
    id: RUN_ID,
    pipelineName: 'ship',
    status: 'QUEUED',
    startedAt: SINCE,
    finishedAt: null,
    reason: null,
    verdict: null,
    verdictEvidence: [],
    waitingOn: [],
    stages: [],
    running: [],
    failed: [],
    ...more,
  };
}

const stageOf = (name: string, status: string, waitingOn: readonly ExplainedWait[]) => ({
  name,
  status,
  reason: null,
  attempt: 0,
  exitCode: null,
  waitingOn,
});

describe('an explanation', () => {
  it('of a held run names the run before it, and says the same of all its stages once', () => {
    const more = { holder: GREEN, position: 2, since: SINCE, etaSecs: 90 };
    const turn = wait(
      'quota',
      "No more than 3 of its owner's runs go at a time; it is number 2 of those that wait.",
      more,
    );
    const run = runOf({ waitingOn: [turn], stages: ['a', 'b'].map((name) => stageOf(name, 'PENDING', [turn])) });
    expect(explanationOf(run, Date.parse(SINCE) + 30_000)).toEqual([
      `The run ${RUN_ID} of 'ship' is QUEUED, and nothing of it is executed now.`,
      `No more than 3 of its owner's runs go at a time; it is number 2 of those that wait. The run ${GREEN} goes on before it. It has waited for 30 s. As earlier runs tell, it waits for about 1 min 30 s more.`,
      'All 2 of its stages that have not begun wait with it.',
    ]);
  });

  it('of a run whose one gate is open names it: whoever approves has to', () => {
    const gate = wait('approval', 'It waits for the approval of whoever may cancel the run.');
    const run = runOf({ waitingOn: [gate], stages: [stageOf('promote', 'QUEUED', [gate])] });
    expect(explanationOf(run, Date.parse(SINCE))[1]).toContain("'promote' is QUEUED.");
  });

  it('of a run that goes on says of each stage what it waits for', () => {
    const stages = [
      stageOf('test', 'PENDING', [wait('dependency', "It comes after 'build'.", { holder: 'build' })]),
      stageOf('gpu', 'QUEUED', [
        wait('store', 'The journal is full.'),
        wait('no_runner', "No runner has the label 'gpu'."),
      ]),
    ];
    expect(explanationOf(runOf({ status: 'RUNNING', running: ['build'], stages }), 0)).toEqual([
      `The run ${RUN_ID} of 'ship' is RUNNING: 'build' is executed now.`,
      "'test' is PENDING. It comes after 'build'.",
      "'gpu' is QUEUED. The journal is full.",
      "  No runner has the label 'gpu'.",
    ]);
  });

  it('lets no control characters of strangers through', () => {
    const run = runOf({ pipelineName: 'a\u001B[31m', waitingOn: [wait('runner', 'b\u001B]0;c')] });
    expect(explanationOf(run, 0).join('')).not.toContain('\u001B');
    const held = runOf({ waitingOn: [wait('quota', 'd', { holder: '\u001B[2J' })] });
    expect(explanationOf(held, 0).join('\n')).toContain('The run \\u{1b}[2J goes on before it.');
    const green = { run: 'e\u001B[2J', startedAt: 'f\u001B[2J', commit: null, file: null, isFileKnown: true };
    const failed = runOf({ status: 'FAILED', sinceGreen: { ...green, extensions: [], inputs: [], stages: [] } });
    const unheard = runOf({ status: 'g\u001B[2J', stages: [stageOf('h', 'i\u001B[2J', [])] });
    for (const each of [failed, unheard]) expect(explanationOf(each, 0).join('')).not.toContain('\u001B');
  });
});

const CREATED = { [GREEN]: 'a\nb\n', [RUN_ID]: 'a\nc\nd\n' };

function failedRun({ query, variables }: GraphqlRequest): { body: unknown } {
  const failing = { status: 'FAILED', reason: 'exit', attempt: 2, exitCode: 3, waitingOn: [] };
  const run = {
    ...{ id: RUN_ID, pipelineName: 'ship', status: 'FAILED', startedAt: SINCE, finishedAt: SINCE, reason: null },
    ...{ verdict: 'failed', verdictEvidence: [], repository: 'o/r', commit: 'bbbb', waitingOn: [] },
    inputs: [{ key: 'target', value: 'prod' }],
    stages: [{ name: 'test', ...failing }],
  };
  const green = { id: GREEN, startedAt: SINCE, commit: 'aaaa', inputs: [{ key: 'target', value: 'staging' }] };
  const id = String(variables['id']) as keyof typeof CREATED;
  if (query.includes('compareRuns')) return { body: { data: { compareRuns: [{ stage: 'lint', change: 'added' }] } } };
  if (query.includes('runEvents'))
    return { body: { data: { runEvents: [{ data: JSON.stringify({ yaml: CREATED[id] }) }] } } };
  if (query.includes('runs(')) return { body: { data: { runs: [green] } } };
  return { body: { data: { run } } };
}

const LOG = [
  { id: '1', event: 'stage_started', data: { type: 'stage_started', stage: 'test', status: 'Running', attempt: 1 } },
  {
    id: '2',
    event: 'stage_completed',
    data: {
      type: 'stage_completed',
      stage: 'test',
      status: 'Failed',
      attempt: 2,
      logs: `${'x\n'.repeat(20)}no such file\n`,
    },
  },
]
  .map(
    ({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify({ ...data, timestamp: SINCE })}\n\n`,
  )
  .join('');

describe('penstock explain', () => {
  it('says of a failed run which stage failed, its last lines, and what has changed since the last success', async () => {
    const { url } = await fakeServer({
      graphql: failedRun,
      logs: [(_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(LOG)],
    });
    const { code, stdout, stderr } = await penstock(['explain', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, stderr]).toEqual([1, '']);
    expect(stdout).toContain("'test' failed with exit code 3, in its attempt 2. Its last lines:\n");
    expect(stdout).toContain(`${'  | x\n'.repeat(9)}  | no such file\n`);
    expect(stdout).not.toContain('  | x\n'.repeat(10));
    expect(stdout).toContain(`the last run of the pipeline that ended SUCCESS, ${GREEN}`);
    expect(stdout).toContain('  the commit: aaaa before, bbbb now\n');
    expect(stdout).toContain('  the pipeline file: lines that are new: 2, lines that are gone: 1\n');
    expect(stdout).toContain("  the input 'target': 'staging' before, 'prod' now\n");
    expect(stdout).toContain("  the stage 'lint' is added\n");
  });

  it('with --json prints what it knows on one line; exits 0 where the run has not failed', async () => {
    const waitingOn = [wait('no_runner', 'No runner is connected.')];
    const run = { ...runOf({ waitingOn }), inputs: [], repository: null, commit: null };
    const { url } = await fakeServer({ graphql: () => ({ body: { data: { run } } }) });
    const { code, stdout } = await penstock(['explain', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      id: RUN_ID,
      waitingOn,
      sentences: [expect.any(String), 'No runner is connected.'],
    });
  });

  it('refuses what is no id with 2, and a run that there is not with 4', async () => {
    const { url } = await fakeServer({ graphql: () => ({ body: { data: { run: null } } }) });
    const options = { cwd: folder(), env: withKey(url) };
    expect((await penstock(['explain', 'x'], options)).code).toBe(2);
    expect((await penstock(['explain', RUN_ID], options)).code).toBe(4);
  });
});
