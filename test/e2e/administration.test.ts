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

describe('penstock admin status, pause, resume and drain', () => {
  const stagesOf = async (id: string): Promise<string | undefined> => {
    const { data } = await server.graphql<{ run: { waitingOn: { kind: string }[] } | null }>(
      'query ($id: String) { run(id: $id) { waitingOn { kind } } }',
      { id },
    );
    return data.run?.waitingOn[0]?.kind;
  };

  it('a pause hands out nothing, says so to everybody who looks, and is over when it is taken back', async () => {
    const paused = await penstock('admin', 'pause', '--reason', 'upgrade until 5');
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringContaining('upgrade until 5') });
    const id = await trigger(server, quick('paused'));
    await until('it waits for the pause', async () => (await stagesOf(id)) === 'paused', WAIT_MS);
    const status = await penstock('admin', 'status');
    expect(status.code).toBe(0);
    expect(status.stdout).toMatch(/^HELD UP[^]*everything[^]*upgrade until 5/);
    expect(status.stdout).toMatch(/\nSTAGES[^]*\n +1 +\d+s +paused /);
    expect(status.stdout).toMatch(/\nlocal +0 +4 +idle /);
    expect(await penstock('explain', id)).toMatchObject({ stdout: expect.stringContaining('upgrade until 5') });
    expect(await penstock('admin', 'resume')).toMatchObject({ code: 0, stdout: 'Nothing is held up.\n' });
    await until('it has ended', async () => (await statusOf(server, id)) === 'SUCCESS', WAIT_MS);
    expect(await penstock('admin', 'resume')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('not held up'),
    });
  }, 120_000);

  it('a pause of one label holds up what asks for it, and nothing else', async () => {
    expect((await penstock('admin', 'pause', '--label', 'linux')).code).toBe(0);
    const held = await trigger(server, 'pipeline: {name: held}\nstages: {a: {run: echo a, runs_on: [linux]}}\n');
    const free = await trigger(server, quick('free'));
    await until('the other one has ended', async () => (await statusOf(server, free)) === 'SUCCESS', WAIT_MS);
    expect(await stagesOf(held)).toBe('paused');
    expect((await penstock('admin', 'resume', '--label', 'linux')).code).toBe(0);
    await until('it has ended', async () => (await statusOf(server, held)) === 'SUCCESS', WAIT_MS);
  }, 120_000);

  it('a drained runner ends the run that it has begun, and begins no other until that is taken back', async () => {
    const gate = join(shared.path, 'drain-gate');
    const begun = await trigger(server, waitingFor(gate));
    const busy = async (): Promise<string> => (await penstock('admin', 'runners')).stdout;
    await until('its stage runs', async () => /\nlocal +1 +4 +busy /.test(await busy()), WAIT_MS);
    expect((await penstock('admin', 'drain', 'local', '--reason', 'new disk')).code).toBe(0);
    const other = await trigger(server, quick('other'));
    writeFileSync(gate, '');
    await until('the run that it had begun ended', async () => (await statusOf(server, begun)) === 'SUCCESS', WAIT_MS);
    await until('it is empty', async () => /\nlocal +0 +4 +drained /.test(await busy()), WAIT_MS);
    expect(await statusOf(server, other)).not.toBe('SUCCESS');
    expect((await penstock('admin', 'drain', 'local', '--undo')).code).toBe(0);
    await until('the other one has ended', async () => (await statusOf(server, other)) === 'SUCCESS', WAIT_MS);
    expect(await penstock('admin', 'drain', 'nobody')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("No runner 'nobody' is connected"),
    });
    const { stdout } = await penstock('admin', 'audit', '--json');
    const actions = (JSON.parse(stdout) as { action: string }[]).map(({ action }) => action);
    for (const action of ['admin.pause', 'admin.resume', 'admin.drain', 'admin.undrain', 'admin.backup'])
      expect(actions).toContain(action);
  }, 180_000);
});
