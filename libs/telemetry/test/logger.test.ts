import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import type { LoggedError } from '@penstock/errors';
import { createLogger } from '../src/index.ts';
import { type LoggerOptions } from '../src/logger.ts';

const CANARY = 'canary-5f1e"\\9c';

describe('logger', () => {
  it('writes a JSON line with time, level, service and the fields', () => {
    const { lines, logger } = capture({});
    logger.child({ partition: 3 }).warn({ runs: 2 }, 'behind');
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 40,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*\dZ$/) as unknown,
      service: 'scheduler',
      partition: 3,
      runs: 2,
      msg: 'behind',
    });
    expect(lines[0]).toMatch(/\n$/);
  });

  it.skipIf(process.platform !== 'linux')(
    'throws nothing at who logs where standard error is a file on a full disk',
    () => {
      const full = openSync('/dev/full', 'w');
      try {
        const program = join(import.meta.dirname, 'fixtures', 'logs-in-turns.ts');
        const { status, stdout } = spawnSync(process.execPath, [program], { stdio: ['ignore', 'pipe', full] });
        expect({ status, stdout: stdout.toString() }).toEqual({ status: 0, stdout: 'alive' });
      } finally {
        closeSync(full);
      }
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'STDERR-2, STDERR-4: keeps nobody from anything where standard error is a pipe that is not read, and says then how many lines were lost',
    async () => {
      const { early, lost } = await logsOfUnreadPipe(10_000, (logged) => logged.includes('were lost'));
      expect(early).toEqual([...new Set(early)].toSorted((one, other) => one - other));
      expect(early.length).toBeLessThan(10_000);
      expect(lost).toMatchObject({
        level: 40,
        service: 'test',
        lost: expect.any(Number) as number,
        msg: 'lines of this log were lost: nobody took them',
      });
    },
  );

  it.skipIf(process.platform !== 'linux')('STDERR-1: loses nothing to a reader who is slow', async () => {
    const { early, lost } = await logsOfUnreadPipe(2_000, (logged) => logged.includes('late'));
    expect(early).toEqual(Array.from({ length: 2_000 }, (_, number) => number));
    expect(lost).toBeUndefined();
  });

  it.skipIf(process.platform !== 'linux')(
    'STDERR-3: threads write whole lines beside each other, however long',
    async () => {
      await withUnreadPipe(async (pipe, stderr) => {
        const program = join(import.meta.dirname, 'fixtures', 'logs-from-threads.ts');
        const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', stderr] });
        await once(child.stdout ?? child, 'data');
        const lines: string[] = [];
        for await (const line of createInterface({ input: createReadStream(pipe) })) {
          lines.push(line);
          if (lines.length < 300) continue;
          child.kill('SIGKILL');
          break;
        }
        const logged = lines.map((line) => {
          const { thread, number } = JSON.parse(line) as { readonly thread: number; readonly number: number };
          return thread * 100 + number;
        });
        expect(logged.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 300 }, (_, index) => index));
      });
    },
  );

  it.skipIf(process.platform !== 'linux')(
    'STDERR-1: loses nothing where the process ends by a signal that it sends to itself',
    async () => {
      await withUnreadPipe(async (pipe, stderr) => {
        const program = join(import.meta.dirname, 'fixtures', 'logs-and-dies.ts');
        const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', stderr] });
        await once(child.stdout ?? child, 'data');
        const lines = createInterface({ input: createReadStream(pipe) });
        const logged: string[] = [];
        lines.on('line', (line) => void logged.push(line));
        expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
        // What it has written is in the pipe, of which the test holds an end that never says so.
        await expect.poll(() => logged.length, { timeout: 30_000 }).toBe(1_000);
        lines.close();
      });
    },
  );

  it('keeps what is below its level to itself', () => {
    const { lines, logger } = capture({ level: 'warn' });
    logger.info('quiet');
    expect(lines).toEqual([]);
  });

  it('logs an error with everything that caused it, and the fields of each', () => {
    const cause = Object.assign(new Error('disk full'), { errcode: 13 });
    const { lines, logger } = capture({});
    logger.error({ err: new Error('saving failed', { cause: new AggregateError([cause, 'odd'], 'two') }) }, 'no');
    const { err } = JSON.parse(lines[0] ?? '') as { err: LoggedError };
    expect(err).toMatchObject({
      message: 'saving failed',
      cause: {
        type: 'AggregateError',
        message: 'two',
        errors: [
          { message: 'disk full', errcode: 13 },
          { type: 'string', message: 'odd' },
        ],
      },
    });
  });

  it('blanks tokens in URLs, credentials of addresses, bearer tokens and personal tokens, wherever they stand', () => {
    const { lines, logger } = capture({});
    const error = new Error('GET /pipeline/1/logs?token=t0ps3cret failed', {
      cause: new Error('nats://user:t0ps3cret@host:4222 refused'),
    });
    logger.info(
      {
        url: '/auth/callback/web?code=t0ps3cret&state=t0ps3cret',
        nested: { list: ['Bearer t0ps3cret', 'svc_t0ps3cret', 'x#access_token=t0ps3cret&refresh_token=t0ps3cret'] },
        err: error,
      },
      'sent authorization: Basic t0ps3cret',
    );
    expect(lines.join('')).not.toContain('t0ps3cret');
    expect(lines.join('')).toContain('/auth/callback/web?code=[redacted]&state=[redacted]');
    expect(lines.join('')).toContain('nats://[redacted]@host:4222');
  });

  it('blanks fields that are credentials by their name, at any depth and in child loggers', () => {
    const { lines, logger } = capture({});
    logger.child({ apiKey: 'aaaa1' }).info(
      {
        headers: { Authorization: 'aaaa2', 'x-gitlab-token': 'aaaa3' },
        body: [{ refresh_token: 'aaaa4', client_secret: 'aaaa5' }],
        password: 'aaaa6',
        text: JSON.stringify({ token: 'aaaa7', more: [JSON.stringify({ cookie: 'aaaa8"aaaa9' })] }),
        token: 'aaaa0"aaaa1',
      },
      'request',
    );
    expect(lines.join('')).not.toMatch(/aaaa\d/);
  });

  it('leaves innocent words alone', () => {
    const { lines, logger } = capture({});
    logger.info(
      { code: 'CONFLICT', tokens: 12, ref: 'refs/heads/tokens' },
      'exit code=1 state=RUNNING, see https://example.org/a?b=c',
    );
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      code: 'CONFLICT',
      tokens: 12,
      ref: 'refs/heads/tokens',
      msg: 'exit code=1 state=RUNNING, see https://example.org/a?b=c',
    });
  });

  it('never writes a secret it was told, as it is or as JSON, a URL or base64 carry it', () => {
    for (const format of ['json', 'readable'] as const) {
      const { lines, logger } = capture({ secrets: [CANARY, 'ab'], format });
      const forms = [
        CANARY,
        `x${CANARY}y`,
        JSON.stringify({ deep: CANARY }),
        encodeURIComponent(CANARY),
        Buffer.from(CANARY).toString('base64'),
      ];
      for (const form of forms) logger.info({ form, err: new Error(form), map: { [form]: 1 } }, `message ${form}`);
      for (const line of lines)
        for (const form of forms.slice(0, 1).concat(forms.slice(3))) {
          expect(line).not.toContain(form);
          expect(line).not.toContain(JSON.stringify(form).slice(1, -1));
        }
    }
  });

  it('writes readable lines without letting a value move the cursor of the terminal', () => {
    const { lines, logger } = capture({ format: 'readable' });
    logger.warn({ branch: '\u001b[2Jx', err: new Error('outer', { cause: new TypeError('in\nner') }) }, 'built \u202e');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}WARN {3}scheduler {2}built \\u202e {2}branch=/);
    expect(lines[0]).not.toContain('\u001b');
    expect(lines[0]).toContain('  Error: outer\n  because of\n    TypeError: in\\u000aner\n');
  });
});

function capture(options: Partial<LoggerOptions>) {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'scheduler',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
    ...options,
  });
  return { lines, logger };
}

/** A pipe as the kernel has them, by its name and as something to write to: what `spawn` makes are sockets. */
async function withUnreadPipe(use: (pipe: string, writable: number) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-log-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const writable = openSync(pipe, 'r+');
  try {
    await use(pipe, writable);
  } finally {
    closeSync(writable);
    rmSync(folder, { recursive: true });
  }
}

/** Of a program that logs many lines while nobody reads them, and goes on until what was read is enough. */
async function logsOfUnreadPipe(
  count: number,
  isEnough: (logged: string) => boolean,
): Promise<{ early: number[]; lost: Record<string, unknown> | undefined }> {
  const program = join(import.meta.dirname, 'fixtures', 'logs-much.ts');
  const child = spawn(process.execPath, [program, String(count)], { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  const [alive] = (await once(child.stdout, 'data')) as [Buffer];
  expect(alive.toString()).toBe('alive');
  let logged = '';
  child.stderr.on('data', (bytes: Buffer) => {
    logged += bytes.toString();
    if (isEnough(logged) && logged.endsWith('\n')) child.stdin.end();
  });
  child.stdin.write('go on');
  expect(await exited).toEqual([0, null]);
  const lines = logged
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const early = lines.flatMap(({ msg, number }) => (msg === 'early' ? [Number(number)] : []));
  return { early, lost: lines.find((line) => 'lost' in line) };
}
