/**
 * A machine with a network of its own becomes a runner, and is revoked (P37): its namespace has one cable, to the server's. Only root may make
 * one; elsewhere it is skipped, and counts as not run.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attachMachine, type RunnerMachine } from '../support/runner-machine.ts';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const PATIENT_MS = 90_000;
const CUT_OFF_MS_MAX = 60_000;
const NETWORK = process.pid % 250;
const SERVER_ADDRESS = `10.213.${NETWORK}.1`;
const MACHINE_ADDRESS = `10.213.${NETWORK}.2`;
const NAMESPACE = `penstock-${process.pid}`;
const CABLE = { here: `pa${process.pid}`, there: `pb${process.pid}` };
/** Others reach this server, so it is in production mode. */
const API_KEY = 'a-key-of-a-test-0123456789abcdef0123456789abcdef';
const ADMIN_KEY = 'an-administrator-of-a-test-0123456789abcdef01234';
/** `/proc/net/tcp` has it so. */
const ESTABLISHED = '01';

const RUN = 'query ($id: String!) { run(id: $id) { status stages { status reason outputs { key value } } } }';
const WORK = `
pipeline:
  name: far
stages:
  there:
    runs_on: far
    outputs: [network]
    run: echo "network=$(readlink /proc/self/ns/net)" >> "$SERVICE_OUTPUT"
`;
const LONG = `
pipeline:
  name: long
stages:
  there: {runs_on: far, run: sleep 600}
`;

interface Run {
  readonly status: string;
  readonly stages: readonly {
    readonly status: string;
    readonly reason: string | null;
    readonly outputs: readonly { readonly key: string; readonly value: string }[];
  }[];
}

function ip(...args: readonly string[]): boolean {
  return spawnSync('ip', args, { stdio: 'ignore', timeout: 10_000 }).status === 0;
}

function makeNetwork(): boolean {
  return (
    ip('netns', 'add', NAMESPACE) &&
    ip('link', 'add', CABLE.here, 'type', 'veth', 'peer', 'name', CABLE.there, 'netns', NAMESPACE) &&
    ip('address', 'add', `${SERVER_ADDRESS}/30`, 'dev', CABLE.here) &&
    ip('link', 'set', CABLE.here, 'up') &&
    ip('-n', NAMESPACE, 'address', 'add', `${MACHINE_ADDRESS}/30`, 'dev', CABLE.there) &&
    ip('-n', NAMESPACE, 'link', 'set', 'lo', 'up') &&
    ip('-n', NAMESPACE, 'link', 'set', CABLE.there, 'up')
  );
}

function removeNetwork(): void {
  ip('link', 'delete', CABLE.here);
  ip('netns', 'delete', NAMESPACE);
}

/**
 * Connections of that machine which this one leads to its broker. It has the system look after those (a timer, while nothing goes over them), and no others:
 * one that a request has left open carries no right.
 */
function connectionsToBroker(): number {
  const machine = Buffer.from(MACHINE_ADDRESS.split('.').map(Number)).reverse().toString('hex').toUpperCase();
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/u))
    .filter(
      ([, , remote = '', state, , timer = '']) =>
        state === ESTABLISHED && !timer.startsWith('00:') && remote.split(':')[0]?.endsWith(machine) === true,
    ).length;
}

const hasNetwork = makeNetwork();
if (!hasNetwork) removeNetwork();

describe.skipIf(!hasNetwork)('a machine with a network of its own', { timeout: 4 * PATIENT_MS }, () => {
  const folder = temporaryFolder('penstock-fleet-network-');
  const started: ChildProcess[] = [];
  let server: RunningServer;

  beforeAll(async () => {
    server = await startServer({
      env: {
        SERVICE_API_KEY: API_KEY,
        SERVICE_ADMIN_KEY: ADMIN_KEY,
        JWT_SECRET: 'a secret of a test that is long enough for it',
        SERVICE_ALLOW_UNISOLATED: 'true',
        SERVICE_SLOTS: '1',
        SERVICE_QUEUE_TIMEOUT: '20s',
      },
      arguments: ['--listen', `${SERVER_ADDRESS}:0`],
    });
  }, PATIENT_MS);
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await server?.stop();
    folder.remove();
    removeNetwork();
  });

  const attach = (name: string, token: string): Promise<RunnerMachine> =>
    attachMachine({
      folder: folder.path,
      name,
      server: server.url,
      token,
      through: ['ip', 'netns', 'exec', NAMESPACE],
      started: (child) => started.push(child),
    });

  async function administer<T>(query: string, variables: Record<string, unknown> = {}): Promise<T> {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    return data;
  }

  const runOf = async (id: string): Promise<Run> => (await server.graphql<{ run: Run }>(RUN, { id })).data.run;

  it('becomes a runner by one command, runs stages, and once revoked is cut off even where it does not listen, and is given nothing', async () => {
    const made = await administer<{ createRunnerToken: { id: string; token: string } }>(
      'mutation { createRunnerToken(labels: ["far"]) { id token } }',
    );
    const { id: tokenId, token } = made.createRunnerToken;
    const machine = await attach('machine', token);
    const theirs = readlinkSync(`/proc/${machine.child.pid}/ns/net`);
    expect(theirs).not.toBe(readlinkSync('/proc/self/ns/net'));

    const work = await trigger(server, WORK);
    await until('the stage has run there', async () => (await runOf(work)).status === 'SUCCESS', PATIENT_MS);
    expect((await runOf(work)).stages[0]?.outputs).toContainEqual({ key: 'network', value: theirs });

    const long = await trigger(server, LONG);
    await until('the stage runs', async () => (await runOf(long)).stages[0]?.status === 'RUNNING', PATIENT_MS);
    expect(connectionsToBroker()).toBeGreaterThan(0);
    // Frozen, it closes nothing by itself.
    machine.child.kill('SIGSTOP');
    const revoked = await administer('mutation ($id: String!) { revokeRunnerToken(id: $id) }', { id: tokenId });
    expect(revoked).toEqual({ revokeRunnerToken: true });
    await until('the server has cut it off from the broker', () => connectionsToBroker() === 0, CUT_OFF_MS_MAX);
    await until('the stage is lost', async () => (await runOf(long)).status === 'FAILED', PATIENT_MS);
    expect((await runOf(long)).stages[0]?.reason).toBe('runner_lost');

    machine.child.kill('SIGCONT');
    expect(await machine.ended).toBe(4);
    await expect(attach('again', token)).rejects.toThrow(/ended with 4/u);
    const later = await trigger(server, WORK);
    await until('nobody takes the stage', async () => (await runOf(later)).status === 'FAILED', PATIENT_MS);
    expect((await runOf(later)).stages[0]?.reason).toBe('no_runner');
  });
});
