import { writeFileSync, mkdirSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsOf, type JsonEvent, folder, linesOf, penstock, pipeline, start } from './command.ts';
import { textIn } from '../src/server/read-credentials.ts';
import {
  CAUGHT_UP,
  closedPort,
  fakeServer,
  frame,
  knownRun,
  openStream,
  resumable,
  RUN_ID,
  sentEvents,
} from './fake-server.ts';

const lines = (count: number): Record<string, unknown>[] =>
  Array.from({ length: count }, (_, index) => ({
    type: 'stage_log',
    stage: 'build',
    stream: 'stdout',
    line: `line ${index} ${'ü'.repeat(index % 50)}`,
  }));

const eventStream = (logLines: Record<string, unknown>[], status = 'SUCCESS'): ReturnType<typeof sentEvents> =>
  sentEvents(
    { type: 'stage_started', stage: 'build', status: 'Running', attempt: 1 },
    ...logLines,
    {
      type: 'stage_completed',
      stage: 'build',
      status: status === 'SUCCESS' ? 'Success' : 'Failed',
      logs: '',
      ...(status === 'SUCCESS' ? {} : { reason: 'exit', exitCode: 2 }),
    },
    { type: 'pipeline_completed', status },
  );

const withApiStatus = (event: JsonEvent): JsonEvent =>
  typeof event['status'] === 'string' ? { ...event, status: event['status'].toUpperCase() } : event;

const withKey = (url: string): { SERVICE_URL: string; SERVICE_API_KEY: string } => ({
  SERVICE_URL: url,
  SERVICE_API_KEY: 'secret-key',
});

describe('penstock logs', () => {
  it('shows a run as `penstock run` does, and exits by its end', async () => {
    const { url, logAuthorizations } = await fakeServer({ logs: [resumable(eventStream(lines(2)), Infinity)] });
    const { code, stdout, stderr } = await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^build {4}\| line 0 \nbuild {4}\| line 1 ü\nbuild {4}> SUCCESS in 0\.03 s\n\nSTAGE +STATUS +TIME {2}REASON\nbuild +SUCCESS +0\.03 s\ntest +PENDING +-\n\nSUCCESS in 0\.04 s: 1 passed\n$/,
    );
    expect(logAuthorizations).toEqual(['Bearer secret-key']);
  });

  it('exits 1 for a failed run', async () => {
    const { url } = await fakeServer({ logs: [resumable(eventStream([], 'FAILED'), Infinity)] });
    const { code, stdout } = await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(code).toBe(1);
    expect(stdout).toContain('build    > FAILED in 0.01 s: exit code 2\n');
  });

  it.each([90, 1_000, 7_777])(
    'misses and doubles nothing when every connection is cut after %d bytes',
    async (bytes) => {
      const events = eventStream(lines(bytes < 500 ? 12 : 300));
      // Each connection gets a little further than one message, wherever in a message or character it is cut.
      const { url, cursors } = await fakeServer({ logs: [resumable(events, bytes + 250)] });
      const { code, stdout } = await penstock(['logs', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
      expect(code).toBe(0);
      expect(eventsOf(stdout)).toEqual(events.map(({ data }) => withApiStatus(JSON.parse(data) as JsonEvent)));
      expect(cursors.length).toBeGreaterThan(3);
      expect(cursors[0]).toBeUndefined();
      expect(new Set(cursors).size).toBe(cursors.length);
    },
  );

  it('ends at 204, by the status that the run has', async () => {
    const { url } = await fakeServer({
      logs: [(_, response) => response.writeHead(204).end()],
      graphql: (request) => knownRun(request, 'FAILED'),
    });
    expect((await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) })).code).toBe(1);
  });

  it('comes back after 503 as Retry-After says, and after a connection that breaks', async () => {
    const events = eventStream(lines(3));
    const { url, cursors } = await fakeServer({
      logs: [
        resumable(events, 300),
        (_, response) =>
          response.writeHead(503, { 'retry-after': '0' }).end('{"error":"unavailable","message":"later"}'),
        (_, response) => response.destroy(),
        resumable(events, Infinity),
      ],
    });
    const { code, stdout } = await penstock(['logs', '--json', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, linesOf(eventsOf(stdout))]).toEqual([
      0,
      [expect.stringMatching(/^line 0/), expect.stringMatching(/^line 1/), expect.stringMatching(/^line 2/)],
    ]);
    expect(cursors.length).toBe(4);
    expect(new Set(cursors.slice(1)).size).toBe(1);
  });

  it('without --follow shows what there is, and goes at the word of the server that this was all: it pings in the middle of a long log, too', async () => {
    const { url } = await fakeServer({
      logs: [
        (_, response) => {
          openStream(response);
          const [first = '', ...others] = eventStream(lines(2)).slice(0, 3).map(frame);
          response.write([first, ': ping\n\n', ...others, CAUGHT_UP].join(''));
        },
      ],
    });
    const { code, stdout } = await penstock(['logs', '--json', RUN_ID], {
      cwd: folder(),
      env: withKey(url),
    });
    expect([code, eventsOf(stdout).length]).toEqual([0, 3]);
  });

  it('shows the strangers’ control characters of a run as they are only where no terminal reads', async () => {
    const { url } = await fakeServer({
      logs: [
        resumable(
          eventStream([
            {
              type: 'stage_log',
              stage: 'a\u001b]0;x\u0007',
              stream: 'stdout',
              line: '\u001b]0;title\u0007 \u001b[31mred',
            },
          ]),
          Infinity,
        ),
      ],
    });
    const { stdout } = await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect(stdout).toContain('a\\u{1b}]0;x\\u{7}');
    expect(stdout).toContain('| \u001b]0;title\u0007 \u001b[31mred\n');
  });

  it('passes over events that it does not know', async () => {
    const events = sentEvents(
      { type: 'stage_dreaming', stage: 'build' },
      { type: 'pipeline_completed', status: 'SUCCESS' },
    );
    const { url } = await fakeServer({ logs: [resumable(events, Infinity)] });
    expect((await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) })).code).toBe(0);
  });

  it('^C stops the watching only, with a word on how to go on', async () => {
    const { url, graphql } = await fakeServer({
      logs: [
        (_, response) => {
          openStream(response);
          response.write(
            eventStream([])
              .slice(0, 1)
              .concat(sentEvents({ type: 'stage_log', stage: 'build', stream: 'stdout', line: 'here' }))
              .map(frame)
              .join(''),
          );
        },
      ],
    });
    const command = start(['logs', '-f', RUN_ID], { cwd: folder(), env: withKey(url) });
    await command.until('stdout', '| here');
    command.child.kill('SIGINT');
    const { code, stderr } = await command.ended;
    expect(code).toBe(130);
    expect(stderr).toBe(`penstock: the run goes on without us; penstock logs -f ${RUN_ID} shows it again.\n`);
    expect(graphql.some(({ query }) => query.includes('cancel'))).toBe(false);
  });

  it.each([
    ['a run that is not there', 4, { graphql: () => ({ body: { data: { run: null } } }) }, `there is no run ${RUN_ID}`],
    [
      'a token that is refused',
      4,
      {
        graphql: () => ({
          body: {
            data: null,
            errors: [{ message: 'A valid access token is required.', extensions: { code: 'UNAUTHENTICATED' } }],
          },
        }),
      },
      'does not accept the token from SERVICE_API_KEY',
    ],
    [
      'a stream that is refused',
      4,
      { logs: [(_: unknown, response: ServerResponse) => response.writeHead(401).end('{}')] },
      'does not accept the token from SERVICE_API_KEY',
    ],
    ['another server', 3, { graphql: () => ({ status: 200, body: '<html>' }) }, 'and not as a Penstock server does'],
    [
      'an ingress before a server that is away',
      3,
      { graphql: () => ({ status: 502, body: 'bad gateway' }) },
      'answers 502: what stands before the server does not reach it now',
    ],
    [
      'a redirect',
      3,
      { graphql: () => ({ status: 301, body: '', headers: { location: 'https://elsewhere/graphql' } }) },
      'name the final address with --server',
    ],
  ])('says what is wrong with %s in one line, without the token', async (_, exitCode, script, message) => {
    const { url } = await fakeServer(script);
    const { code, stderr, stdout } = await penstock(['logs', RUN_ID], { cwd: folder(), env: withKey(url) });
    expect([code, stdout]).toEqual([exitCode, '']);
    expect(stderr).toContain(message);
    expect(stderr.trimEnd().split('\n').length).toBe(1);
    expect(stderr).not.toContain('secret-key');
  });

  it('says how to start a server where none listens', async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const { code, stderr } = await penstock(['logs', RUN_ID, '--server', url], { cwd: folder() });
    expect(code).toBe(3);
    expect(stderr).toContain(`cannot reach the server ${url} (nothing listens there); start one with 'penstock serve'`);
  });
});

describe('penstock trigger', () => {
  const files = pipeline('  build: {run: make}');

  it('sends the file, says the run’s id and follows it', async () => {
    const { url, graphql } = await fakeServer({ logs: [resumable(eventStream(lines(1)), Infinity)] });
    const { code, stdout, stderr } = await penstock(['trigger'], { cwd: folder(files), env: withKey(url) });
    expect(code).toBe(0);
    expect(stderr).toBe(`Run ${RUN_ID} on ${url}\n`);
    expect(stdout).toContain('build    | line 0 \n');
    expect(graphql[0]).toMatchObject({
      authorization: 'Bearer secret-key',
      variables: { yaml: files['.pipeline.yaml'] },
    });
  });

  it('with --detach prints the id alone', async () => {
    const { url, cursors } = await fakeServer({});
    const { code, stdout, stderr } = await penstock(['trigger', '-d', '-s', url], {
      cwd: folder(files),
      env: { SERVICE_API_KEY: 'k' },
    });
    expect([code, stdout, stderr, cursors]).toEqual([0, `${RUN_ID}\n`, '', []]);
  });

  it('repeats a trigger that the server could not take with the id that it gave, so that it is one run', async () => {
    let asked = 0;
    const { url, graphql } = await fakeServer({
      graphql: (request) => {
        asked += 1;
        return asked === 1
          ? {
              body: {
                data: null,
                errors: [{ message: 'No owner.', extensions: { code: 'UNAVAILABLE', retryAfter: 1, runId: RUN_ID } }],
              },
            }
          : knownRun(request);
      },
    });
    const { code } = await penstock(['trigger', '-d'], { cwd: folder(files), env: withKey(url) });
    expect(code).toBe(0);
    expect(graphql.map(({ variables }) => variables['runId'])).toEqual([undefined, RUN_ID]);
  });

  it('says that the run may have begun where the answer did not come, for asking again begins another', async () => {
    const { url, graphql } = await fakeServer({ graphql: () => 'cut' });
    const { code, stdout, stderr } = await penstock(['trigger', '-d'], { cwd: folder(files), env: withKey(url) });
    expect([code, stdout, graphql.length]).toEqual([3, '', 1]);
    expect(stderr).toContain("the run may have begun. See with 'penstock runs'");
  });

  it('refuses a bad file before it asks the server, and shows what only the server refuses', async () => {
    const answer = {
      body: {
        data: null,
        errors: [
          {
            message: 'bad',
            extensions: {
              code: 'BAD_USER_INPUT',
              diagnostics: [
                { line: 3, column: 3, path: 'stages.build', message: 'this server knows no builds', length: 5 },
              ],
            },
          },
        ],
      },
    };
    const { url, graphql } = await fakeServer({ graphql: () => answer });
    const bad = await penstock(['trigger'], { cwd: folder(pipeline('  build: {rn: make}')), env: withKey(url) });
    expect([bad.code, graphql.length]).toEqual([2, 0]);
    expect(bad.stderr).toContain("did you mean 'run'?");
    const refused = await penstock(['trigger'], { cwd: folder(files), env: withKey(url) });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('.pipeline.yaml:3:3');
  });

  it('takes the token from a file, from SERVICE_API_KEY, or for a server on this machine from its data folder', async () => {
    const { url, graphql } = await fakeServer({});
    const cwd = folder({ ...files, token: 'from-file\n' });
    for (const [name, key] of [
      [join('share', 'penstock'), 'made-by-serve'],
      ['data', 'other-folder'],
    ] as const) {
      mkdirSync(join(cwd, name), { recursive: true });
      writeFileSync(join(cwd, name, 'api-key'), `${key}\n`);
    }
    await penstock(['trigger', '-d', '-s', url, '--token-file', 'token'], {
      cwd,
      env: { SERVICE_API_KEY: 'from-variable' },
    });
    await penstock(['trigger', '-d', '-s', url], { cwd, env: { SERVICE_API_KEY: 'from-variable' } });
    await penstock(['trigger', '-d', '-s', url], { cwd, env: { XDG_DATA_HOME: join(cwd, 'share') } });
    await penstock(['trigger', '-d', '-s', url, '--data-dir', 'data'], { cwd });
    await penstock(['trigger', '-d', '-s', url], { cwd, env: { SERVICE_DATA_DIR: 'data' } });
    expect(graphql.map(({ authorization }) => authorization?.slice('Bearer '.length))).toEqual([
      'from-file',
      'from-variable',
      'made-by-serve',
      'other-folder',
      'other-folder',
    ]);
  });

  it('takes a token from a pipe in whatever pieces it comes, and none that is longer than a token can be', async () => {
    const pieces = (texts: readonly string[]): Parameters<typeof textIn>[0] => {
      const left = texts.map((text) => Buffer.from(text));
      const read = (into: Buffer, at: number): Promise<{ bytesRead: number }> =>
        Promise.resolve({ bytesRead: left.shift()?.copy(into, at) ?? 0 });
      return { read } as unknown as Parameters<typeof textIn>[0];
    };
    expect(await textIn(pieces(['from-', 'a-', 'pipe\n']), 'pipe')).toBe('from-a-pipe\n');
    await expect(textIn(pieces(['x'.repeat(8_000), 'x'.repeat(8_000)]), 'pipe')).rejects.toThrow(
      'pipe holds no token: it has more than 8192 bytes',
    );
  });

  it('names the remedy where a token is missing or its file is not one', async () => {
    const unauthenticated = {
      body: {
        data: null,
        errors: [{ message: 'A valid access token is required.', extensions: { code: 'UNAUTHENTICATED' } }],
      },
    };
    const { url } = await fakeServer({ graphql: () => unauthenticated });
    const cwd = folder({ ...files, empty: '', two: 'one\ntwo\n' });
    expect((await penstock(['trigger', '-s', url], { cwd })).stderr).toContain(
      'asks for a token: set SERVICE_API_KEY or name a file with --token-file',
    );
    expect((await penstock(['trigger', '-s', url, '--token-file', 'empty'], { cwd })).stderr).toContain(
      'holds no token: it is empty',
    );
    expect((await penstock(['trigger', '-s', url, '--token-file', 'two'], { cwd })).stderr).toContain(
      'a token is one line of visible characters',
    );
    expect((await penstock(['trigger', '-s', url, '--token-file', 'gone'], { cwd })).stderr).toContain(
      'there is no file gone to read the token from',
    );
  });
});
