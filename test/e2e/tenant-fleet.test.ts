/** Machines of single users: each is attached by one command with its user's token, and runs that user's stages alone (P37). */
import type { ChildProcess } from 'node:child_process';
import { encodeChunk, subjects } from '@penstock/bus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceLogin, type Login } from '../support/device-login.ts';
import { dialMachine } from '../support/dialled-machine.ts';
import { attachMachine, type RunnerMachine } from '../support/runner-machine.ts';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const PATIENT_MS = 90_000;
const FLOOD = 20_000;
const work = (runsOn: string, script: string): string => `
pipeline: {name: work}
stages:
  there:
    ${runsOn}
    outputs: [folder]
    run: |
      echo "folder=$PWD" >> "$SERVICE_OUTPUT"
      ${script}
`;
const FAR = work('runs_on: far', 'echo said-there');
const HERE = work('env: {}', 'echo said-here');

interface Run {
  readonly status: string;
  readonly waitingOn: readonly { readonly kind: string; readonly message: string }[];
  readonly stages: readonly {
    readonly status: string;
    readonly reason: string | null;
    readonly outputs: readonly { readonly value: string }[];
    readonly waitingOn: readonly { readonly kind: string; readonly message: string }[];
  }[];
}
const RUN =
  'query ($id: String!) { run(id: $id) { status waitingOn { kind message } stages { status reason outputs { value } waitingOn { kind message } } } }';
const TOKENS = '{ runnerTokens { id tenant runners { id } } }';

describe('the machines of two users', { timeout: 4 * PATIENT_MS }, () => {
  const folder = temporaryFolder('penstock-tenant-fleet-');
  const started: ChildProcess[] = [];
  let server: RunningServer;
  let ada: Login;
  let bob: Login;

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SLOTS: '1', SERVICE_PUBLIC_READ: 'false' } });
    ada = await deviceLogin(server.url, 'ada');
    bob = await deviceLogin(server.url, 'bob');
  }, PATIENT_MS);
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await server?.stop();
    folder.remove();
  });

  async function asked(login: Login, query: string, variables: object = {}): Promise<Record<string, never>> {
    const { data, errors } = await answerTo(login, query, variables);
    expect(errors).toBeUndefined();
    return data;
  }
  async function answerTo(login: Login, query: string, variables: object = {}) {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${login.access_token}` },
      body: JSON.stringify({ query, variables }),
    });
    return (await response.json()) as {
      readonly data: Record<string, never>;
      readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
    };
  }
  const trigger = async (login: Login, yaml: string): Promise<string> => {
    const query = 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }';
    return String((await asked(login, query, { yaml }))['triggerPipeline']?.['run']?.['id']);
  };
  const runOf = async (login: Login, id: string): Promise<Run> =>
    (await asked(login, RUN, { id }))['run'] as unknown as Run;
  const ends = (login: Login, id: string, status: string): Promise<unknown> =>
    until(`the run is ${status}`, async () => (await runOf(login, id)).status === status, PATIENT_MS);
  const tokenOf = async (login: Login): Promise<{ readonly id: string; readonly token: string }> =>
    (await asked(login, 'mutation { createRunnerToken(labels: ["far"]) { id token } }'))['createRunnerToken'] as never;
  const attach = (name: string, token: string): Promise<RunnerMachine> =>
    attachMachine({
      folder: folder.path,
      name,
      server: server.url,
      token,
      isTokenTyped: true,
      started: (child) => started.push(child),
    });

  it("run their own user's stages, while another's wait, who is told of no machine but its own", async () => {
    const { id: tokenId, token } = await tokenOf(ada);
    const bobs = await trigger(bob, FAR);
    const machine = await attach('machine-of-ada', token);
    const adas = await trigger(ada, FAR);
    await ends(ada, adas, 'SUCCESS');
    expect((await runOf(ada, adas)).stages[0]?.outputs[0]?.value).toContain(machine.dataDir);
    const { events } = await readStream(`${server.url}/pipeline/${adas}/logs`, ada.access_token);
    expect(JSON.stringify(events)).toContain('said-there');

    const waiting = await runOf(bob, bobs);
    expect(waiting.stages[0]?.status).toBe('QUEUED');
    const [reason] = waiting.stages[0]?.waitingOn ?? [];
    expect(reason?.kind).toBe('no_runner');
    expect(JSON.stringify(waiting)).not.toContain('fr_');
    expect((await asked(bob, TOKENS))['runnerTokens']).toEqual([]);
    const refused = await answerTo(bob, 'mutation ($id: String) { revokeRunnerToken(id: $id) }', { id: tokenId });
    expect(refused.errors?.map(({ extensions }) => extensions.code)).toEqual(['NOT_FOUND']);

    // Bob's own takes what has waited, and nothing of Ada's.
    const own = await attach('machine-of-bob', (await tokenOf(bob)).token);
    await ends(bob, bobs, 'SUCCESS');
    expect((await runOf(bob, bobs)).stages[0]?.outputs[0]?.value).toContain(own.dataDir);
    const listed = (await asked(ada, TOKENS))['runnerTokens'] as unknown as {
      id: string;
      tenant: string;
      runners: [];
    }[];
    expect(listed).toMatchObject([{ id: tokenId, tenant: expect.stringMatching(/^user\//u), runners: [{}] }]);

    // Everybody's machine takes anybody's, as ever.
    const here = await trigger(ada, work('runs_on: linux', 'true'));
    await ends(ada, here, 'SUCCESS');

    expect(await asked(ada, 'mutation ($id: String) { revokeRunnerToken(id: $id) }', { id: tokenId })).toEqual({
      revokeRunnerToken: true,
    });
    expect(await machine.ended).toBe(4);
    own.child.kill('SIGTERM');
    expect(await own.ended).toBe(0);
    const late = await trigger(ada, FAR);
    const [lacks] = (await runOf(ada, late)).stages[0]?.waitingOn ?? [];
    expect(lacks?.kind).toBe('no_runner');
  });

  it("cost others nothing by a flood, which stores nothing in others' runs, and are cut off by the revocation", async () => {
    const { id: tokenId, token } = await tokenOf(bob);
    const { runner, bus: hostile } = await dialMachine(server.url, token);
    const adas = await trigger(ada, work('runs_on: linux', 'sleep 2; echo said-here'));
    const forged = { stage: 'there', attempt: 1, offset: 0, at: 0, parts: [['stdout', 7]] as const };
    const chunk = Buffer.from(encodeChunk({ ...forged, output: Buffer.from('forged\n') })).toString();
    for (let count = 0; count < FLOOD; count += 1) {
      const session = `s${count}`;
      hostile.publish(subjects.pull('any', runner), { runner, session, labels: [], credits: [1], withdraw: [] });
      hostile.publish(subjects.log(adas, runner), chunk);
      hostile.publish(`$KV.runners.${runner}.${session}`, { runner, session });
    }
    await ends(ada, adas, 'SUCCESS');
    await ends(ada, await trigger(ada, HERE), 'SUCCESS');
    const { events } = await readStream(`${server.url}/pipeline/${adas}/logs`, ada.access_token);
    expect(JSON.stringify(events)).toContain('said-here');
    expect(JSON.stringify(events)).not.toContain('forged');
    const closed = new Promise((resolve) => void hostile.events.once('disconnected', () => resolve('cut off')));
    await asked(bob, 'mutation ($id: String) { revokeRunnerToken(id: $id) }', { id: tokenId });
    expect(await closed).toBe('cut off');
    await hostile.close(0);
  });
});
