/** A server that is stopped by ^C: a terminal sends SIGINT to the whole process group at once. */
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const folder = temporaryFolder();
const interrupt = (server: RunningServer): boolean => process.kill(-server.pid, 'SIGINT');

let server: RunningServer | undefined;
afterEach(async () => {
  await server?.stop();
});

/** A stage that says that it runs, and ends when the test lets it. */
function waitingPipeline(name: string): { readonly yaml: string; isRunning(): boolean; release(): void } {
  const up = join(folder.path, `${name}-up`);
  const go = join(folder.path, `${name}-go`);
  return {
    yaml: `pipeline: {name: ${name}}\nstages:\n  build:\n    run: touch ${up}; while [ ! -e ${go} ]; do sleep 0.02; done; echo done\n`,
    isRunning: () => existsSync(up),
    release: () => writeFileSync(go, ''),
  };
}

describe('^C in the terminal of a server', () => {
  it('waits for the running stage, says which, answers meanwhile, and exits with 0 when the stage has ended', async () => {
    server = await startServer({ env: { SERVICE_DRAIN: '60s' } });
    const { url, apiKey, dataDir, child } = server;
    const pipeline = waitingPipeline('hello');
    const runId = await trigger(server, pipeline.yaml);
    await until('the stage runs', pipeline.isRunning);
    const stream = readStream(`${url}/pipeline/${runId}/logs`, apiKey);
    interrupt(server);
    await until('the server says what it waits for', () => server?.output().includes('waiting for') === true);
    expect(server.output()).toContain('penstock: waiting for 1 stage (build of hello); ^C again ends it');
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/ready`)).status).toBe(503);
    pipeline.release();
    expect((await stream).events.at(-1)).toMatchObject({ event: 'pipeline_completed', data: { status: 'SUCCESS' } });
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(0);
    expect(server.output()).not.toMatch(/\n\s+at /);

    server = await startServer({ dataDir });
    const { data } = await server.graphql<{ run: unknown }>('query ($id: String!) { run(id: $id) { status } }', {
      id: runId,
    });
    expect(data.run).toEqual({ status: 'SUCCESS' });
  });

  it('ends at once when it is pressed again', async () => {
    server = await startServer({ env: { SERVICE_DRAIN: '10m' } });
    const { child } = server;
    const pipeline = waitingPipeline('endless');
    await trigger(server, pipeline.yaml);
    await until('the stage runs', pipeline.isRunning);
    interrupt(server);
    await until('the server says what it waits for', () => server?.output().includes('waiting for') === true);
    interrupt(server);
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(130);
  });

  it('says of a signal that is no ^C what a second one does', async () => {
    server = await startServer({ env: { SERVICE_DRAIN: '60s' } });
    const { child } = server;
    const pipeline = waitingPipeline('told');
    await trigger(server, pipeline.yaml);
    await until('the stage runs', pipeline.isRunning);
    process.kill(server.pid, 'SIGTERM');
    await until('the server says what it waits for', () => server?.output().includes('waiting for') === true);
    expect(server.output()).toContain('penstock: waiting for 1 stage (build of told); a second SIGTERM ends it');
    pipeline.release();
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(0);
  });
});

it.each([
  ['by that signal', ['SIGTERM']],
  ['at once by a second one', ['SIGTERM', 'SIGINT']],
] as const)(
  'a server that is told to stop while its store is being opened, which takes as long as it takes, ends %s',
  async (how, signals) => {
    const dataDir = join(folder.path, how);
    mkdirSync(dataDir);
    const store = new DatabaseSync(join(dataDir, 'store.sqlite'));
    // Opening waits for this, in a thread that hears nothing meanwhile.
    store.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE');
    const broker = join(dataDir, 'broker', 'pid');
    const starting = startServer({ dataDir });
    starting.catch(() => {});
    await until('the broker has been started', () => existsSync(broker));
    const pid = Number.parseInt(readFileSync(join(dataDir, 'pid'), 'utf8'), 10);
    for (const signal of signals) process.kill(pid, signal);
    await expect(starting).rejects.toThrow(/serve ended \(SIG(?:TERM|INT)\)/u);
    store.exec('ROLLBACK');
    store.close();
    server = await startServer({ dataDir });
  },
);
