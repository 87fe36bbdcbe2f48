/** The start of a service as a process: what it refuses, what it waits for, and how it is stopped meanwhile. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Committing, connectBus, ensureStreams, subjects } from '@penstock/bus';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/server.ts';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const MEBIBYTE = 1024 * 1024;
/** Nobody listens there. */
const DEAD_STORE = 'mongodb://127.0.0.1:1/penstock';

let broker: TestBroker;
let child: ChildProcess | undefined;
beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
afterEach(async () => {
  if (child !== undefined && child.exitCode === null && child.signalCode === null) {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

function start(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): { output(): string; port(): number | undefined } {
  child = spawn(process.execPath, [MAIN, 'service', ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      SERVICE_NATS_URL: broker.url,
      SERVICE_INTERNAL_LISTEN: '127.0.0.1:0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', (line) => (output += `${line}\n`));
  }
  const port = (): number | undefined => {
    const found = /"port":(\d+)/.exec(output)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  return { output: () => output, port };
}

async function exitCode(): Promise<number | null> {
  if (child?.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child?.exitCode ?? null;
}

describe('a service that is started without what it needs', () => {
  it('ends with 2 and names the missing database, rather than trying for ever', async () => {
    const { output } = start(['scheduler'], {});
    expect(await exitCode()).toBe(2);
    await until('its message', () => output().includes('SERVICE_STORE_URL is missing'));
  });

  it('ends with 2 and one message that names all that is missing', async () => {
    const { output } = start(['gateway'], { SERVICE_NATS_URL: '' });
    expect(await exitCode()).toBe(2);
    await until('its message', () => output().includes('JWT_SECRET is missing'));
    expect(output().match(/\w+(?= is missing)/g)).toEqual([
      'SERVICE_NATS_URL',
      'SERVICE_STORE_URL',
      'SERVICE_API_KEY',
      'JWT_SECRET',
    ]);
  });

  it('lists the services there are when it is asked for none of them', async () => {
    const { output } = start(['foo'], {});
    expect(await exitCode()).toBe(2);
    await until('its message', () => output().includes('the services are gateway, auth, scheduler'));
  });
});

describe('a service whose database does not answer', () => {
  it('says at /ready what it waits for and why, and stops with 0 when it is told to', async () => {
    const { output, port } = start(['scheduler'], { SERVICE_STORE_URL: DEAD_STORE });
    const internal = await until('its internal port', port);
    const reason = await until('the reason', async () => {
      const answer = await fetch(`http://127.0.0.1:${internal}/ready`);
      const text = await answer.text();
      return answer.status === 503 && text.includes('opening the store') ? text : undefined;
    });
    expect(reason).toMatch(/not ready: opening the store: .*127\.0\.0\.1:1/);
    expect((await fetch(`http://127.0.0.1:${internal}/health`)).status).toBe(200);
    const figures = await fetch(`http://127.0.0.1:${internal}/metrics`);
    expect(await figures.text()).toContain('process_cpu_seconds_total');
    child?.kill('SIGTERM');
    expect(await exitCode()).toBe(0);
    expect(output()).not.toContain('cannot go on');
  });
});

describe('an intake of pushes whose broker and database answer', () => {
  it('is ready only while some scheduler can commit', async () => {
    const folder = temporaryFolder('penstock-intake-');
    const bus = await connectBus({ servers: broker.url, name: 'test' });
    try {
      await ensureStreams(bus, { partitions: 2, journalBytesMax: 64 * MEBIBYTE, logsBytesMax: 64 * MEBIBYTE });
      const { output, port } = start(['webhook-ingest'], {
        SERVICE_STORE_URL: `sqlite:${join(folder.path, 'store.sqlite')}`,
        SERVICE_DATA_DIR: folder.path,
        SERVICE_LISTEN: '127.0.0.1:0',
        SERVICE_PARTITIONS: '2',
        JWT_SECRET: 'a-secret-of-more-than-thirty-two-bytes',
      });
      const internal = await until('its internal port', port);
      const ready = async (): Promise<{ readonly status: number; readonly text: string }> => {
        const answer = await fetch(`http://127.0.0.1:${internal}/ready`);
        return { status: answer.status, text: await answer.text() };
      };
      await until('its start', () => output().includes('"msg":"started"'));
      expect(await ready()).toEqual({ status: 503, text: 'not ready: no scheduler can commit\n' });
      const answering = bus.respond<null, Committing>(subjects.committing, () => ({ scheduler: 'm' }));
      expect(await until('it is ready', async () => ((await ready()).status === 200 ? 'ready' : undefined))).toBe(
        'ready',
      );
      answering.stop();
    } finally {
      await bus.close(0);
      folder.remove();
    }
  });
});

describe('a runner whose data folder another one has', () => {
  it('ends and says which folder that is and what to do; once the other is killed it has the folder', async () => {
    const folder = temporaryFolder('penstock-shared-');
    const bus = await connectBus({ servers: broker.url, name: 'test' });
    let first: ChildProcess | undefined;
    try {
      await ensureStreams(bus, { partitions: 2, journalBytesMax: 64 * MEBIBYTE, logsBytesMax: 64 * MEBIBYTE });
      const runner = (id: string): ReturnType<typeof start> =>
        start(['runner'], { SERVICE_DATA_DIR: folder.path, SERVICE_RUNNER_ID: id, SERVICE_ALLOW_UNISOLATED: 'true' });
      const has = runner('first');
      first = child;
      await until('its start', () => has.output().includes('"msg":"started"'));
      const refused = runner('second');
      expect(await exitCode()).toBe(1);
      const told = `another runner (process ${first?.pid}) keeps its runs in ${folder.path}: stop it, or give each runner of this machine a data folder of its own`;
      await until('its message', () => refused.output().includes(told));
      expect(first?.exitCode).toBeNull();
      first?.kill('SIGKILL');
      const next = runner('second');
      await until('its start', () => next.output().includes('"msg":"started"'));
    } finally {
      first?.kill('SIGKILL');
      child?.kill('SIGKILL');
      await exitCode();
      await bus.close(0);
      folder.remove();
    }
  });
});
