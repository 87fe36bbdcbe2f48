/** Another master key, as an operator changes it: put in front, everything sealed anew, the old one taken away. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const newKey = (): string => randomBytes(32).toString('base64');
const YAML = `pipeline: {name: secret}\nstages: {a: {run: 'test "$TOKEN" = kept-under-the-key', secrets: [TOKEN]}}\n`;

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function rotateKey(server: RunningServer, ...options: readonly string[]): Promise<Said> {
  const env = { ...process.env, SERVICE_URL: server.url, SERVICE_API_KEY: server.apiKey };
  const child = spawn(process.execPath, [MAIN, 'admin', 'rotate-key', ...options], { env });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return await new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

async function statusOf(server: RunningServer, id: string): Promise<string | undefined> {
  const query = 'query ($id: String) { run(id: $id) { status } }';
  return (await server.graphql<{ run: { status: string } | null }>(query, { id })).data.run?.status;
}

it('penstock admin rotate-key says when the old key may go, and stages get their secrets without it', async () => {
  const folder = temporaryFolder('penstock-key-rotation-');
  const [OLD, NEW] = [newKey(), newKey()];
  let server: RunningServer | undefined;
  const restart = async (...keys: readonly string[]): Promise<RunningServer> => {
    await server?.stop();
    server = await startServer({ dataDir: join(folder.path, 'data'), env: { SERVICE_MASTER_KEY: keys.join(',') } });
    return server;
  };
  try {
    const first = await restart(OLD);
    const set = 'mutation { setSecret(name: "TOKEN", value: "kept-under-the-key", pipeline: "secret") { name } }';
    expect((await first.graphql(set)).errors).toBeUndefined();
    const alone = await rotateKey(first);
    expect(alone).toMatchObject({ code: 0, stderr: expect.stringContaining('there is one key alone') });
    expect(alone.stdout).toMatch(/^KEY +STATE +SEALED +USED BY +MAY GO\n[0-9a-f]{16} +FIRST +- +1 +no\n$/u);

    const both = await rotateKey(await restart(NEW, OLD));
    expect(both).toMatchObject({ code: 0, stderr: expect.stringContaining('take the keys that may go off') });
    expect(both.stdout).toMatch(/\n[0-9a-f]{16} +FIRST +- +1 +no\n[0-9a-f]{16} +OTHER +0 +0 +yes\n$/u);
    expect(both.stdout + both.stderr).not.toContain(OLD.slice(0, 8));

    const last = await restart(NEW);
    const run = await trigger(last, YAML);
    await until(
      'the run has ended',
      async () => ['SUCCESS', 'FAILED'].includes((await statusOf(last, run)) ?? ''),
      30_000,
    );
    expect(await statusOf(last, run)).toBe('SUCCESS');
    expect(JSON.parse((await rotateKey(last, '--json')).stdout)).toMatchObject({ processes: 1, agree: true });

    const lost = await rotateKey(await restart(OLD));
    expect(lost.stdout).toMatch(/\n[0-9a-f]{16} +MISSING +[1-9]\d* +0 +no\n$/u);
    expect(lost.stderr).toMatch(/[1-9]\d* are kept under keys that nobody has/u);
  } finally {
    await server?.stop();
    folder.remove();
  }
}, 180_000);
