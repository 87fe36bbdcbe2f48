/** A second machine, as far as one machine goes: a process with a folder of its own becomes a runner by one command and a token (P37). */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attachMachine, type RunnerMachine } from '../support/runner-machine.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const PATIENT_MS = 90_000;
const CREATE = 'mutation { createRunnerToken(labels: ["far"]) { id token } }';
const TOKENS = '{ runnerTokens { id runners { id name } } }';
const RUN =
  'query ($id: String!) { run(id: $id) { status stages { name status reason outputs { key value } } } artifacts(run_id: $id) { key } }';

const WORK = `
pipeline:
  name: far
stages:
  there:
    runs_on: far
    secrets: [WORD]
    outputs: [folder, length]
    artifacts: [kept.txt]
    run: |
      echo kept > kept.txt
      echo "folder=$PWD" >> "$SERVICE_OUTPUT"
      echo "length=\${#WORD}" >> "$SERVICE_OUTPUT"
`;
const NEXT = `
  next:
    runs_on: far
    after: there
    run: test -f kept.txt
`;
const LONG = `
pipeline:
  name: long
stages:
  there:
    runs_on: far
    run: sleep 600
`;
const TWO = `
pipeline:
  name: two
stages:
  first: {runs_on: far, run: sleep 10}
  second: {runs_on: far, after: first, run: echo second}
`;

const ONE = `
pipeline:
  name: one
stages:
  first: {runs_on: far, run: echo first}
  beside: {runs_on: far, workspace: fresh, run: echo beside}
  last: {runs_on: far, after: [first, beside], run: echo last}
`;

interface Run {
  readonly run: {
    readonly status: string;
    readonly stages: readonly {
      readonly status: string;
      readonly reason: string | null;
      readonly outputs: readonly { readonly key: string; readonly value: string }[];
    }[];
  };
  readonly artifacts: readonly { readonly key: string }[];
}

describe('a machine with a runner token', { timeout: 4 * PATIENT_MS }, () => {
  const folder = temporaryFolder('penstock-fleet-');
  const started: ChildProcess[] = [];
  let server: RunningServer;

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SLOTS: '1' } });
    await server.graphql('mutation { setSecret(name: "WORD", value: "seven77", pipeline: "far") { name } }');
  }, PATIENT_MS);
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await server?.stop();
    folder.remove();
  });

  const attach = (name: string, token: string, ...more: readonly string[]): Promise<RunnerMachine> =>
    attachMachine({
      folder: folder.path,
      name,
      server: server.url,
      token,
      arguments: more,
      started: (child) => started.push(child),
    });

  const runOf = async (id: string): Promise<Run> => (await server.graphql<Run>(RUN, { id })).data;

  it('runs a stage with its secret, output and file, and when it is revoked can do nothing more', async () => {
    const made = await server.graphql<{ createRunnerToken: { id: string; token: string } }>(CREATE);
    const { id: tokenId, token } = made.data.createRunnerToken;
    const machine = await attach('machine', token);
    const work = await trigger(server, WORK);
    await until('the stage has run there', async () => (await runOf(work)).run.status === 'SUCCESS', PATIENT_MS);
    const { run, artifacts } = await runOf(work);
    const outputs = new Map(run.stages[0]?.outputs.map(({ key, value }) => [key, value]));
    expect(outputs.get('folder')).toContain(machine.dataDir);
    expect(outputs.get('length')).toBe('7');
    expect(artifacts.map(({ key }) => key)).toContain('kept.txt');

    const long = await trigger(server, LONG);
    await until(
      'the stage runs there',
      async () => (await runOf(long)).run.stages[0]?.status === 'RUNNING',
      PATIENT_MS,
    );
    const tokens = await server.graphql<{ runnerTokens: { id: string; runners: unknown[] }[] }>(TOKENS);
    expect(tokens.data.runnerTokens).toMatchObject([{ id: tokenId, runners: [{ name: expect.any(String) }] }]);
    const revoked = await server.graphql('mutation ($id: String!) { revokeRunnerToken(id: $id) }', { id: tokenId });
    expect(revoked.data).toEqual({ revokeRunnerToken: true });
    // It is cut off, is told so when it asks again, and ends.
    expect(await machine.ended).toBe(4);
    await until('the stage is lost', async () => (await runOf(long)).run.status === 'FAILED', PATIENT_MS);
    expect((await runOf(long)).run.stages[0]?.reason).toBe('runner_lost');
    await expect(attach('again', token)).rejects.toThrow(/ended with 4/u);
  });

  it('takes what has waited for it, and ends when there has been nothing to do for long enough, but not before', async () => {
    const made = await server.graphql<{ createRunnerToken: { token: string } }>(CREATE);
    const work = await trigger(server, TWO);
    const machine = await attach('elastic', made.data.createRunnerToken.token, '--idle-timeout', '8s');
    expect(await machine.ended).toBe(0);
    // The first stage is longer than the time: who counted that would have taken no second one.
    await until('both have run', async () => (await runOf(work)).run.status === 'SUCCESS', PATIENT_MS);
  });

  it('serves one whole run with --once, and no other', async () => {
    const made = await server.graphql<{ createRunnerToken: { token: string } }>(CREATE);
    const { token } = made.data.createRunnerToken;
    const runs = [await trigger(server, ONE), await trigger(server, ONE)];
    const statuses = async (): Promise<string[]> =>
      (await Promise.all(runs.map(runOf))).map(({ run }) => run.stages.map(({ status }) => status).join(' '));
    const machine = await attach('once', token, '--once');
    expect(await machine.ended).toBe(0);
    expect(await statuses()).toEqual(['SUCCESS SUCCESS SUCCESS', 'QUEUED QUEUED PENDING']);
    const next = await attach('next', token, '--once');
    expect(await next.ended).toBe(0);
    expect(await statuses()).toEqual(['SUCCESS SUCCESS SUCCESS', 'SUCCESS SUCCESS SUCCESS']);
  });

  it('goes on when the server comes back, and ends by a signal without losing its stage, and its run none of its files', async () => {
    const made = await server.graphql<{ createRunnerToken: { token: string } }>(CREATE);
    const machine = await attach('other', made.data.createRunnerToken.token);
    const { dataDir } = server;
    const port = new URL(server.url).port;
    server.child.kill('SIGKILL');
    await once(server.child, 'exit');
    server = await startServer({
      dataDir,
      env: { SERVICE_SLOTS: '1', SERVICE_LISTEN: `127.0.0.1:${port}` },
      arguments: ['--listen', `127.0.0.1:${port}`],
    });
    const began = join(folder.path, 'began');
    const work = await trigger(server, WORK.replace('echo kept', `touch ${began}; sleep 3; echo kept`) + NEXT);
    // RUNNING from its grant on, which a runner that ends may still refuse: the stage waits for another one then.
    await until('the stage runs after the restart', () => existsSync(began), PATIENT_MS);
    machine.child.kill('SIGTERM');
    expect(await machine.ended).toBe(0);
    await until(
      'the run ends before its runner, which has its folder',
      async () => (await runOf(work)).run.status === 'SUCCESS',
      PATIENT_MS,
    );
  });
});
