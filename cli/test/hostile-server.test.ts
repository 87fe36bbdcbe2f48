/** What a server answers that no server of ours would: nothing of it reaches the terminal as it is, and none of it counts as done. */
import { describe, expect, it } from 'vitest';
import { folder, penstock, pipeline } from './command.ts';
import { answering, fakeServer, frame, openStream, RUN_ID, sentEvents, type SentEvent } from './fake-server.ts';

const ESCAPES = '\u001b]0;title\u0007\u202e';
const withKey = (url: string) => ({ SERVICE_API_KEY: 'secret-key', SERVICE_URL: url });

const logOf = (...events: readonly SentEvent[]) => ({
  logs: [
    (_: unknown, response: Parameters<typeof openStream>[0]) => {
      openStream(response);
      response.end(events.map(frame).join(''));
    },
  ],
});

describe('events of a run', () => {
  it('whose fields hold what no terminal is to see are shown without it', async () => {
    const events = sentEvents(
      { type: 'stage_retrying', stage: 'build', status: 'Failed', attempt: 1, reason: ESCAPES },
      { type: 'stage_approval', stage: 'build', by: ESCAPES, decision: ESCAPES, approved: 1, quorum: 2 },
      { type: 'pipeline_completed', status: 'FAILED' },
    );
    for (const stage of [[], ['build']]) {
      const { url } = await fakeServer(logOf(...events));
      const { stdout, stderr } = await penstock(['logs', RUN_ID, ...stage], { cwd: folder(), env: withKey(url) });
      expect(stdout + stderr).toContain(String.raw`\u{1b}]0;title\u{7}\u{202e}`);
      expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
    }
  });

  it('whose fields are not what they are in any event are passed over', async () => {
    const ended = { type: 'pipeline_completed', status: 'FAILED' };
    const events = sentEvents(
      { type: 'stage_retrying', stage: 'build', status: 'Failed', attempt: ESCAPES, reason: 'exit' },
      { type: 'stage_retrying', stage: 'build', status: 'Failed', attempt: 1, exitCode: ESCAPES },
      { type: 'stage_approval', stage: 'build', by: 'ada', decision: 'approved', approved: ESCAPES, quorum: 1 },
      { type: 'stages_added', stage: 'build', stages: 3 },
      { type: 'stage_completed', stage: 'build', status: 'Success', logs: '', tests: { passed: ESCAPES } },
      { type: 'stage_started', stage: 'build', status: 7, attempt: 1 },
      ended,
    );
    const untimed = {
      ...(events[0] as SentEvent),
      id: 'c0',
      data: '{"type":"stage_log","stage":"a","line":"x","timestamp":"now"}',
    };
    const { url } = await fakeServer(logOf(untimed, ...events));
    const shown = await penstock(['logs', '-t', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([shown.code, shown.stderr]).toEqual([1, '']);
    expect(shown.stdout).toMatch(/^\n.*build +PENDING.*\n/su);
    const json = await penstock(['logs', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(
      json.stdout
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { type: string }).type),
    ).toEqual(['run', 'pipeline_completed']);
  });
});

describe('kept files', () => {
  const kept = { key: 'a', value: '/x', sizeBytes: '1', sha256: '00', expiresAt: ESCAPES };
  const run = { id: RUN_ID, status: 'SUCCESS', stages: [{ name: 'build' }] };

  it('are listed without what no terminal is to see', async () => {
    const { env } = await answering({ run, artifacts: [{ stage: 'build', ...kept }] });
    const { code, stdout } = await penstock(['artifacts', RUN_ID], { cwd: folder(), env });
    expect(code).toBe(0);
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it('whose paths lead elsewhere are of no Penstock server', async () => {
    const { env } = await answering({ run, artifacts: [{ stage: 'build', ...kept, key: '../../x' }] });
    const { code, stderr } = await penstock(['artifacts', RUN_ID, '--download', 'out'], { cwd: folder(), env });
    expect([code, stderr]).toEqual([3, expect.stringContaining('lists files that no Penstock server would')]);
  });
});

describe('an answer', () => {
  it.each([
    ['token', ['runner-token', 'revoke', 't1']],
    ['hook', ['hook', 'create', 'https://a.example']],
    ['pause', ['admin', 'pause']],
    ['dead letter', ['admin', 'dead-letters', 'redrive', 'd1']],
  ])('without what was asked for is none: no %s is said to be changed', async (_, args) => {
    const { url } = await fakeServer({ graphql: () => ({ body: { data: null } }) });
    const { code, stdout, stderr } = await penstock(args, { cwd: folder(), env: withKey(url) });
    expect([code, stdout, stderr]).toEqual([3, '', expect.stringContaining('answers not as a Penstock server does')]);
  });

  it('with a message that is no text is one without a message', async () => {
    const message = { toString: 1, valueOf: 1 };
    const { url } = await fakeServer({
      graphql: () => ({ body: { errors: [{ message, extensions: { code: message } }] } }),
    });
    const { code, stderr } = await penstock(['runs'], { cwd: folder(), env: withKey(url) });
    expect([code, stderr]).toEqual([4, 'penstock: the server refused: no message (UNKNOWN)\n']);
  });
});

it.each([502, 504])(
  'where an ingress has not had the answer (%i) the run may have begun, and who triggers is told so',
  async (status) => {
    const { url } = await fakeServer({ graphql: () => ({ status, body: '<html>' }) });
    const cwd = folder(pipeline('  build: {run: make}'));
    const { code, stderr } = await penstock(['trigger'], { cwd, env: withKey(url) });
    expect([code, stderr]).toEqual([3, expect.stringContaining('the run may have begun')]);
  },
);
