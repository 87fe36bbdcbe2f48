/** What operators do to a whole installation, as they do it: by the command, on a started product that is working meanwhile. */
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const MAIN = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url));
const WAIT_MS = 60_000;

const shared = temporaryFolder('penstock-administration-');
let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ dataDir: join(shared.path, 'data'), env: { SERVICE_SLOTS: '4' } });
}, 90_000);

afterAll(async () => {
  await server.stop();
  shared.remove();
}, 90_000);

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function penstock(...args: readonly string[]): Promise<Said> {
  const env = { ...process.env, SERVICE_URL: server.url, SERVICE_API_KEY: server.apiKey };
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return await new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

const statusOf = async (of: RunningServer, id: string): Promise<string | undefined> => {
  const { data } = await of.graphql<{ run: { status: string } | null }>(
    'query ($id: String) { run(id: $id) { status } }',
    { id },
  );
  return data.run?.status;
};
const quick = (name: string): string => `pipeline: {name: ${name}}\nstages: {a: {run: echo said by ${name}}}\n`;
/** Its first stage waits for the file; the second one is left for later. */
const waitingFor = (file: string): string =>
  `pipeline: {name: waits}\nstages:\n  hold: {run: "until [ -e ${file} ]; do sleep 0.1; done", retry: {max: 2, delay: 0s, on: [lost]}}\n  last: {after: hold, run: echo the end}\n`;

const withSecret = `pipeline: {name: secret}\nstages: {a: {run: 'test "$TOKEN" = kept-under-the-key', secrets: [TOKEN]}}\n`;

describe('penstock admin backup and restore', () => {
  const backup = join(shared.path, 'backup');

  it('what was accepted before it began is there in an empty folder, and what was live goes on', async () => {
    const gate = join(shared.path, 'gate');
    const live = await trigger(server, waitingFor(gate));
    const ended = await trigger(server, quick('before'));
    const set = 'mutation { setSecret(name: "TOKEN", value: "kept-under-the-key", pipeline: "secret") { name } }';
    expect((await server.graphql(set)).errors).toBeUndefined();
    await until('the first run ended', async () => (await statusOf(server, ended)) === 'SUCCESS', WAIT_MS);
    const accepted: string[] = [ended];
    let isBusy = true;
    const load = (async () => {
      for (let count = 0; isBusy; count += 1) accepted.push(await trigger(server, quick(`load-${count}`)));
    })();
    await until('there is load', () => accepted.length > 10, WAIT_MS);
    const before = [...accepted];
    const said = await penstock('admin', 'backup', backup).finally(() => {
      isBusy = false;
    });
    await load;
    expect(said).toMatchObject({ code: 0, stdout: expect.stringContaining('is a whole backup') });
    expect(await penstock('admin', 'backup', backup)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is not empty'),
    });
    for (const path of readdirSync(backup, { recursive: true, withFileTypes: true }))
      expect(statSync(join(path.parentPath, path.name)).mode & 0o077, path.name).toBe(0);
    expect(readFileSync(join(backup, 'store.sqlite')).includes('kept-under-the-key')).toBe(false);

    const dataDir = join(shared.path, 'restored');
    const restored = await penstock('admin', 'restore', backup, '--data-dir', dataDir);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining(`Restored into ${dataDir}`) });
    const second = await startServer({ dataDir, env: { SERVICE_SLOTS: '4' } });
    try {
      for (const id of before)
        await until(`${id} ended`, async () => (await statusOf(second, id)) === 'SUCCESS', WAIT_MS);
      writeFileSync(gate, '');
      await until('what was live ended', async () => (await statusOf(second, live)) === 'SUCCESS', WAIT_MS);
      const { events } = await readStream(`${second.url}/pipeline/${ended}/logs`, second.apiKey);
      expect(events.map(({ data }) => data['line'])).toContain('said by before');
      const after = await trigger(second, withSecret);
      await until('a new run ended', async () => (await statusOf(second, after)) === 'SUCCESS', WAIT_MS);
    } finally {
      await second.stop();
    }
  }, 240_000);

  it('is restored into an empty folder only, and not where anything of it was changed', async () => {
    const dataDir = join(shared.path, 'elsewhere');
    const restored = async (): Promise<Said> => await penstock('admin', 'restore', backup, '--data-dir', dataDir);
    expect(await penstock('admin', 'restore', backup, '--data-dir', server.dataDir)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is not empty'),
    });
    appendFileSync(join(backup, 'broker', 'JOURNAL.tar.s2'), 'x');
    expect(await restored()).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('broker/JOURNAL.tar.s2 was changed'),
    });
    const manifest = join(backup, 'manifest.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"format": 1', '"format": 9'));
    expect((await restored()).stderr).toContain('has the format 9');
    expect(() => statSync(dataDir)).toThrow(/ENOENT/);
    const half = join(shared.path, 'half');
    mkdirSync(half);
    writeFileSync(join(half, 'restoring'), '');
    await expect(startServer({ dataDir: half })).rejects.toThrow(/its restoring was cut off/);
    expect(await penstock('admin', 'backup', join(server.dataDir, 'inside'))).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('within the data folder'),
    });
  }, 120_000);
});
