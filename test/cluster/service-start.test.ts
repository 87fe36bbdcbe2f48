/** The start of a service as a process: what it refuses, what it waits for, and how it is stopped meanwhile. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
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
    child?.kill('SIGTERM');
    expect(await exitCode()).toBe(0);
    expect(output()).not.toContain('cannot go on');
  });
});
