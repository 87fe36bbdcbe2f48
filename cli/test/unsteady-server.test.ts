/** What is read of a server that is slow, or away for a moment. */
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { keepLogin } from '../src/server/logins.ts';
import { explainedRun } from '../src/server/explained-run.ts';
import { serverClient } from '../src/server/http-client.ts';
import { readLogStream } from '../src/server/log-stream.ts';
import { serverAddress } from '../src/server/server-address.ts';
import { eventsOf, folder, linesOf, penstock, start } from './command.ts';
import {
  fakeServer,
  frame,
  knownRun,
  openStream,
  CAUGHT_UP,
  resumable,
  RUN_ID,
  sentEvents,
  type FakeServer,
} from './fake-server.ts';

const EVENTS = sentEvents(
  { type: 'stage_started', stage: 'build', status: 'Running', attempt: 1 },
  { type: 'stage_log', stage: 'build', stream: 'stdout', line: 'first' },
  { type: 'stage_log', stage: 'build', stream: 'stdout', line: 'second' },
  { type: 'stage_completed', stage: 'build', status: 'Failed', logs: 'second', reason: 'exit', exitCode: 2 },
  { type: 'pipeline_completed', status: 'FAILED' },
);

describe('a server that pauses in the middle of the log', () => {
  it('is waited for where the run has ended: without --follow, too, everything is shown, and how it ended', async () => {
    const rest = Promise.withResolvers<void>();
    const { url } = await fakeServer({
      graphql: (request) => knownRun(request, 'FAILED'),
      logs: [
        (_, response: ServerResponse) => {
          openStream(response);
          response.write(EVENTS.slice(0, 2).map(frame).join(''));
          void rest.promise.then(() => response.end(EVENTS.slice(2).map(frame).join('')));
        },
      ],
    });
    const command = start(['logs', '--json', RUN_ID], {
      cwd: folder(),
      env: { SERVICE_API_KEY: 'secret-key', SERVICE_URL: url },
    });
    await command.until('stdout', 'first');
    rest.resolve();
    const { code, stdout, stderr } = await command.ended;
    expect([code, linesOf(eventsOf(stdout)), stderr]).toEqual([1, ['first', 'second'], '']);
  });

  /** Sends this of a run that goes on, at once, and then `rest` when the first message has been read and some time has passed. */
  async function readPausing(first: string, rest: string): Promise<readonly unknown[]> {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const paused = Promise.withResolvers<void>();
    const { url } = await fakeServer({
      logs: [
        (_, response) => {
          openStream(response);
          response.write(first);
          void paused.promise.then(() => response.write(rest));
        },
      ],
    });
    const seen: string[] = [];
    const end = await readLogStream({
      client: serverClient(serverAddress(url, {}), { token: undefined, source: 'none' }),
      runId: RUN_ID,
      follow: false,
      signal: new AbortController().signal,
      onMessage: ({ event }) => {
        seen.push(event);
        return { isLast: false, atMs: Number.NaN };
      },
      room: () => {
        vi.advanceTimersByTime(14_000);
        paused.resolve();
      },
      note: () => {},
    });
    return [...seen, end];
  }
  afterEach(() => void vi.useRealTimers());
  const [started = '', line = ''] = EVENTS.map(frame);

  it('is waited for where the run goes on: only the server knows when that was all', async () => {
    expect(await readPausing(started, `: ping\n\n${line}${CAUGHT_UP}`)).toEqual([
      'stage_started',
      'stage_log',
      'caught-up',
    ]);
  });

  it('an older server, which does not say when that was all, has sent it where nothing comes from one ping to the next', async () => {
    expect(await readPausing(started, ': ping\n\n: ping\n\n')).toEqual(['stage_started', 'caught-up']);
  });
});

describe('a server that cannot read the log of an ended run', () => {
  const silent = async (rest: Promise<void>): Promise<FakeServer> =>
    await fakeServer({
      graphql: ({ query }) => {
        if (query.includes('runs(')) return { body: { data: { runs: [] } } };
        const stages = [{ name: 'build', status: 'FAILED', reason: 'exit', attempt: 1, exitCode: 2 }];
        const run = { id: RUN_ID, pipelineName: 'p', status: 'FAILED', startedAt: '2026-01-01T00:00:00.000Z', stages };
        return { body: { data: { run } } };
      },
      logs: [
        (_, response) => {
          openStream(response);
          response.write(': ping\n\n');
          void rest.then(() => response.end(EVENTS.map(frame).join('')));
        },
      ],
    });

  it('is waited for by `logs`, which says so', async () => {
    const rest = Promise.withResolvers<void>();
    const { url } = await silent(rest.promise);
    const command = start(['logs', '--json', RUN_ID], {
      cwd: folder(),
      env: { SERVICE_API_KEY: 'secret-key', SERVICE_URL: url },
    });
    await command.until('stderr', 'sends nothing of the log so far');
    rest.resolve();
    const { code, stdout } = await command.ended;
    expect([code, linesOf(eventsOf(stdout))]).toEqual([1, ['first', 'second']]);
  });

  it('keeps nobody from the rest of an explanation', async () => {
    const { url } = await silent(new Promise(() => {}));
    const client = serverClient(serverAddress(url, {}), { token: undefined, source: 'none' });
    const { failed, sinceGreen } = await explainedRun(client, RUN_ID, new AbortController().signal, 1);
    expect([failed, sinceGreen]).toEqual([[expect.objectContaining({ name: 'build', lastLines: [] })], null]);
  });
});

it('what the handler of a message throws ends the reading: nothing is asked for or shown again', async () => {
  const { url, cursors } = await fakeServer({ logs: [resumable(EVENTS, Infinity)] });
  const seen: string[] = [];
  const reading = readLogStream({
    client: serverClient(serverAddress(url, {}), { token: undefined, source: 'none' }),
    runId: RUN_ID,
    follow: true,
    signal: new AbortController().signal,
    onMessage: ({ event }) => {
      seen.push(event);
      if (seen.length === 3) throw new RangeError('a fault of ours');
      return { isLast: false, atMs: Number.NaN };
    },
    room: () => {},
    note: () => {},
  });
  await expect(reading).rejects.toThrow(new RangeError('a fault of ours'));
  expect([seen, cursors]).toEqual([['stage_started', 'stage_log', 'stage_log'], [undefined]]);
});

describe('a server that is away while the login has to be renewed', () => {
  it('is waited for: the log goes on where it was', async () => {
    const cwd = folder();
    const env = { XDG_CONFIG_HOME: join(cwd, 'settings') };
    // Never good for long enough: each request asks for another.
    const claims = Buffer.from(JSON.stringify({ exp: Math.floor(Date.now() / 1000) })).toString('base64url');
    const accessToken = `e30.${claims}.sig`;
    let isAway = false;
    const { url, cursors } = await fakeServer({
      logs: [
        (request, response) => {
          isAway = true;
          resumable(EVENTS, 300)(request, response);
        },
        resumable(EVENTS, Infinity),
      ],
      refresh: (response) => {
        if (isAway) response.destroy();
        else response.writeHead(200).end(JSON.stringify({ access_token: accessToken, user: {} }));
        isAway = false;
      },
    });
    const server = serverAddress(url, {});
    await keepLogin(env, server, { server: server.base, login: 'ada', refreshToken: 'rt_1', accessToken });
    const { code, stdout } = await penstock(['logs', '--json', RUN_ID], { cwd, env: { ...env, SERVICE_URL: url } });
    expect([code, linesOf(eventsOf(stdout))]).toEqual([1, ['first', 'second']]);
    expect(cursors).toEqual([undefined, 'c2']);
  });
});
