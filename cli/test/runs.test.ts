/** `runs`, `status` and `cancel`, and one stage of `logs`, against a server whose answers are scripted. */
import { describe, expect, it } from 'vitest';
import { folder, jsonLines, penstock, start } from './command.ts';
import {
  CAUGHT_UP,
  fakeServer,
  frame,
  openStream,
  resumable,
  RUN_ID,
  sentEvents,
  type GraphqlAnswer,
} from './fake-server.ts';

const withKey = (url: string): Record<string, string> => ({ SERVICE_URL: url, SERVICE_API_KEY: 'secret-key' });

const listed = (index: number, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: `0192f0c1-2b3c-7abc-8def-${String(index).padStart(12, '0')}`,
  pipelineName: 'hello',
  status: 'SUCCESS',
  startedAt: '2026-01-01T00:00:00.000Z',
  finishedAt: '2026-01-01T00:00:02.000Z',
  repository: null,
  ref: 'refs/heads/main',
  commit: null,
  ...more,
});

const refused = (code: string, message: string): GraphqlAnswer => ({
  body: { data: null, errors: [{ message, extensions: { code } }] },
});

describe('penstock runs', () => {
  it('asks the server for what was asked of it, page by page, and prints one row a run', async () => {
    const { url, graphql } = await fakeServer({
      graphql: ({ variables }) => ({
        body: {
          data: {
            runs: Array.from({ length: Number(variables['limit']) }, (_, index) =>
              listed(variables['before'] === undefined ? index : 100 + index),
            ),
          },
        },
      }),
    });
    const { code, stdout } = await penstock(
      ['runs', '--pipeline', 'hello', '--status', 'success', '--ref', 'main', '-n', '130'],
      { cwd: folder(), env: withKey(url) },
    );
    expect(code).toBe(0);
    expect(graphql.map(({ variables }) => variables)).toEqual([
      { limit: 100, pipelineName: 'hello', status: 'SUCCESS', ref: 'main' },
      { limit: 30, pipelineName: 'hello', status: 'SUCCESS', ref: 'main', before: listed(99)['id'] },
    ]);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBe(131);
    expect(lines[0]).toMatch(/^RUN +STATUS +STARTED +TIME +PIPELINE +REF$/);
    expect(lines[130]).toBe(`${String(listed(129)['id'])}  SUCCESS  2026-01-01 00:00:00Z  2.0 s  hello     main`);
  });

  it('keeps to a terminal of 40 columns, where a run has two lines', async () => {
    const { url } = await fakeServer({ graphql: () => ({ body: { data: { runs: [listed(1)] } } }) });
    const { stdout } = await penstock(['runs'], { cwd: folder(), env: { ...withKey(url), COLUMNS: '40' } });
    expect(stdout).toBe(`${String(listed(1)['id'])}\n  SUCCESS 2.0 s, hello\n`);
  });

  it('says it where there is none, and names what a status can be', async () => {
    const { url } = await fakeServer({ graphql: () => ({ body: { data: { runs: [] } } }) });
    const options = { cwd: folder(), env: withKey(url) };
    expect(await penstock(['runs'], options)).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining("'penstock trigger' starts one") as unknown,
    });
    expect(await penstock(['runs', '--status', 'runing'], options)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no status 'runing'; did you mean RUNNING?") as unknown,
    });
  });
});

const shownRun = (status: string, stage: string): GraphqlAnswer => ({
  body: {
    data: {
      run: listed(1, {
        id: RUN_ID,
        status,
        finishedAt: status === 'RUNNING' ? null : '2026-01-01T00:00:02.000Z',
        outcome: null,
        reason: null,
        stages: [
          {
            name: 'build',
            status: stage,
            startedAt: '2026-01-01T00:00:00.000Z',
            finishedAt: stage === 'RUNNING' ? null : '2026-01-01T00:00:01.000Z',
            reason: stage === 'FAILED' ? 'exit' : null,
            attempt: 1,
            exitCode: stage === 'FAILED' ? 3 : null,
            after: [],
          },
          {
            name: 'test',
            status: 'PENDING',
            startedAt: null,
            finishedAt: null,
            reason: null,
            attempt: 0,
            after: ['build'],
          },
        ],
      }),
    },
  },
});

describe('penstock status', () => {
  it('shows the graph, and exits 1 for a run that failed', async () => {
    const { url } = await fakeServer({ graphql: () => shownRun('FAILED', 'FAILED') });
    const { code, stdout } = await penstock(['status', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(code).toBe(1);
    expect(stdout).toContain('build    FAILED     1.0 s  exit code 3\n└─ test  PENDING        -\n');
    expect(stdout).toContain('FAILED in 2.0 s: 1 failed, 1 waiting\n');
    expect(stdout).not.toContain('\u001b');
  });

  it('with --watch prints each change once and ends with the run', async () => {
    const answers = [shownRun('RUNNING', 'RUNNING'), shownRun('RUNNING', 'RUNNING'), shownRun('SUCCESS', 'SUCCESS')];
    let asked = 0;
    const { url } = await fakeServer({
      graphql: () => answers[Math.min((asked += 1), answers.length) - 1] ?? shownRun('SUCCESS', 'SUCCESS'),
    });
    const { code, stdout } = await penstock(['status', '--watch', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, asked]).toEqual([0, 3]);
    expect(stdout.split(`Run ${RUN_ID}`).length).toBe(3);
  });

  it('with --watch goes on where the server takes no more requests for a while', async () => {
    const answers = [
      shownRun('RUNNING', 'RUNNING'),
      { status: 429, body: { error: 'rate_limited', message: 'Too many requests.' } },
      shownRun('SUCCESS', 'SUCCESS'),
    ];
    let asked = 0;
    const { url } = await fakeServer({
      graphql: () => answers[Math.min((asked += 1), answers.length) - 1] ?? shownRun('SUCCESS', 'SUCCESS'),
    });
    const { code, stderr } = await penstock(['status', '--watch', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, asked, stderr]).toEqual([0, 3, expect.stringContaining('takes no more requests')]);
  });

  it('as JSON is one line with the run’s id', async () => {
    const { url } = await fakeServer({ graphql: () => shownRun('RUNNING', 'RUNNING') });
    const { code, stdout } = await penstock(['status', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      id: RUN_ID,
      status: 'RUNNING',
      stages: [{ name: 'build' }, { after: ['build'] }],
    });
  });

  it.each([
    ['its status', shownRun('RUNNING\u001B[2J', 'RUNNING')],
    ['a stage’s status', shownRun('RUNNING', 'RUNNING\u001B[2J')],
    ['its id', { body: { data: { run: { ...listed(1), id: '\u001B[2J', stages: [] } } } }],
  ])('shows nothing of a server that says what no server of ours does: %s', async (_what, answer) => {
    const { url } = await fakeServer({ graphql: () => answer });
    expect(await penstock(['status', RUN_ID], { cwd: folder(), env: withKey(url) })).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('answers not as a Penstock server does') as unknown,
    });
  });

  it('of a run that is not there is refused', async () => {
    const { url } = await fakeServer({ graphql: () => ({ body: { data: { run: null } } }) });
    expect(await penstock(['status', RUN_ID], { cwd: folder(), env: withKey(url) })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(`there is no run ${RUN_ID}`) as unknown,
    });
  });
});

describe('penstock cancel', () => {
  it('says how the run stands', async () => {
    const { url, graphql } = await fakeServer({
      graphql: () => ({
        body: { data: { cancelPipeline: { run: { id: RUN_ID, status: 'CANCELLED' }, cancelledStages: 2 } } },
      }),
    });
    const { code, stdout } = await penstock(['cancel', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, stdout]).toEqual([0, `Run ${RUN_ID} is CANCELLED, with 2 stages that had not ended.\n`]);
    expect(graphql[0]?.variables).toEqual({ id: RUN_ID });
  });

  it.each([
    [refused('CONFLICT', 'The run has ended (SUCCESS) and cannot be cancelled.'), 4, 'The run has ended (SUCCESS)'],
    [refused('NOT_FOUND', 'There is no run.'), 4, `there is no run ${RUN_ID}`],
    [
      refused('UNAVAILABLE', 'The run is being taken over by another scheduler; try again in a moment.'),
      3,
      'is not available now: The run is being taken over by another scheduler; try again in a moment.',
    ],
  ])('passes on what the server says', async (answer, exitCode, message) => {
    const { url } = await fakeServer({ graphql: () => answer });
    expect(await penstock(['cancel', RUN_ID], { cwd: folder(), env: withKey(url) })).toMatchObject({
      code: exitCode,
      stdout: '',
      stderr: expect.stringContaining(message) as unknown,
    });
  });
});

describe('penstock logs of a part', () => {
  const line = (stage: string, text: string): Record<string, unknown> => ({
    type: 'stage_log',
    stage,
    stream: 'stdout',
    line: text,
  });
  const events = sentEvents(
    { type: 'stage_started', stage: 'build', status: 'Running', attempt: 1 },
    line('build', 'one'),
    line('test', 'other'),
    line('build', 'two'),
    { type: 'stage_completed', stage: 'build', status: 'Failed', reason: 'exit', exitCode: 2, logs: '' },
    line('test', 'late'),
    { type: 'stage_completed', stage: 'test', status: 'Success', logs: '' },
    { type: 'pipeline_completed', status: 'FAILED' },
  );

  it('prints one stage’s lines and nothing else, and exits as it ended', async () => {
    const { url } = await fakeServer({ logs: [resumable(events, Infinity)] });
    const options = { cwd: folder(), env: withKey(url) };
    expect(await penstock(['logs', RUN_ID, 'build'], options)).toMatchObject({
      code: 1,
      stdout: 'one\ntwo\n',
      stderr: expect.stringContaining('build: FAILED in 0.04 s: exit code 2') as unknown,
    });
    expect(await penstock(['logs', RUN_ID, 'test'], options)).toMatchObject({ code: 0, stdout: 'other\nlate\n' });
  });

  it('names the nearest stage for one that the run does not have', async () => {
    const { url } = await fakeServer({});
    expect(await penstock(['logs', RUN_ID, 'biuld'], { cwd: folder(), env: withKey(url) })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the run has no stage 'biuld'; did you mean 'build'?") as unknown,
    });
  });

  it('shows the last lines of an ended run, with their times', async () => {
    const { url } = await fakeServer({ logs: [resumable(events, Infinity)] });
    const { stdout } = await penstock(['logs', '-t', '-n', '2', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(stdout.split('\n\n')[0]).toBe(
      [
        '2026-01-01T00:00:00.030Z build    | two',
        '2026-01-01T00:00:00.040Z build    > FAILED in 0.04 s: exit code 2',
        '2026-01-01T00:00:00.050Z test     | late',
        '2026-01-01T00:00:00.060Z test     > SUCCESS',
      ].join('\n'),
    );
  });

  it('shows the last lines of a run that goes on once its past is there, as the server says, and then what comes', async () => {
    const later = Promise.withResolvers<void>();
    const { url } = await fakeServer({
      logs: [
        (_, response) => {
          openStream(response);
          response.write(events.slice(0, 4).map(frame).join('') + CAUGHT_UP);
          void later.promise.then(() => response.end(events.slice(4).map(frame).join('')));
        },
      ],
    });
    const command = start(['logs', '-f', '-n', '1', RUN_ID], { cwd: folder(), env: withKey(url) });
    await command.until('stdout', 'two');
    later.resolve();
    const { stdout } = await command.ended;
    expect(stdout.split('\n').filter((text) => text.includes('|'))).toEqual(['build    | two', 'test     | late']);
  });

  it('as JSON begins with the run’s id and spells every status as the API does', async () => {
    const { url } = await fakeServer({ logs: [resumable(events, Infinity)] });
    const { stdout } = await penstock(['logs', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
    const lines = jsonLines(stdout);
    expect(lines[0]).toEqual({ type: 'run', id: RUN_ID, server: url });
    expect(lines.flatMap((event) => ('status' in event ? [event['status']] : []))).toEqual([
      'RUNNING',
      'FAILED',
      'SUCCESS',
      'FAILED',
    ]);
  });
});

it('takes the server from SERVICE_URL, and not from the address that a server has for itself', async () => {
  const { url } = await fakeServer({ graphql: () => ({ body: { data: { runs: [listed(1)] } } }) });
  const env = { SERVICE_API_KEY: 'k', SERVICE_BASE_URL: 'http://127.0.0.1:1' };
  expect((await penstock(['runs'], { cwd: folder(), env: { ...env, SERVICE_URL: url } })).code).toBe(0);
  expect((await penstock(['runs', '--server', url], { cwd: folder(), env })).code).toBe(0);
});

describe('penstock approve and penstock reject', () => {
  const decided = (field: string, stage: Record<string, unknown>): GraphqlAnswer => ({
    body: { data: { [field]: { name: 'gate', reason: null, gate: { quorum: 2 }, ...stage } } },
  });
  const alice = { by: 'alice', decision: 'approved' };

  it('tells the server, and says what is still missing', async () => {
    const answer = decided('approveStage', { status: 'QUEUED', approvals: [alice] });
    const { url, graphql } = await fakeServer({ graphql: () => answer });
    const args = ['approve', '-m', 'seen', RUN_ID, 'gate'];
    const { code, stdout } = await penstock(args, { cwd: folder(), env: withKey(url) });
    expect([code, stdout]).toEqual([0, "The stage 'gate' is QUEUED, 1 of 2 have approved it.\n"]);
    expect(graphql[0]?.variables).toEqual({ runId: RUN_ID, stage: 'gate', comment: 'seen' });
    expect(graphql[0]?.query).toContain('approveStage(');
  });

  it('prints the stage as JSON where that is asked for', async () => {
    const answer = decided('rejectStage', { status: 'FAILED', reason: 'rejected', approvals: [] });
    const { url } = await fakeServer({ graphql: () => answer });
    const { stdout } = await penstock(['reject', '--json', RUN_ID, 'gate'], { cwd: folder(), env: withKey(url) });
    expect(jsonLines(stdout)).toEqual([{ name: 'gate', status: 'FAILED', reason: 'rejected', approved: 0, quorum: 2 }]);
  });

  it.each([
    [refused('CONFLICT', "The stage 'gate' is decided: SUCCESS."), 4, "The stage 'gate' is decided"],
    [refused('FORBIDDEN', 'You are not among those who may approve it.'), 4, 'not among those'],
    [refused('NOT_FOUND', 'There is no such run.'), 4, RUN_ID],
  ])('a refusal is said: %#', async (answer, code, text) => {
    const { url } = await fakeServer({ graphql: () => answer });
    expect(await penstock(['approve', RUN_ID, 'gate'], { cwd: folder(), env: withKey(url) })).toMatchObject({
      code,
      stderr: expect.stringContaining(text) as unknown,
    });
  });

  it('both need the stage', async () => {
    expect(await penstock(['approve', RUN_ID], { cwd: folder() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Give the run and the stage') as unknown,
    });
  });
});
