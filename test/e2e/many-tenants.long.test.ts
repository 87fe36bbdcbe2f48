/** Machines of twenty tenants that each send and ask as much as they may, at once (P37): what somebody else's run has of the server. */
import { randomBytes } from 'node:crypto';
import { subjects, type Bus } from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceLogin, type Login } from '../support/device-login.ts';
import { dialMachine, type DialledMachine } from '../support/dialled-machine.ts';
import { startServer, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const PATIENT_MS = 90_000;
const TENANTS = 20;
/** More than all of them may send at once: from here on they wait for their bounds. */
const ENOUGH = 300;
const ENDED = new Set(['SUCCESS', 'FAILED', 'CANCELLED']);
const WORK = 'pipeline: {name: work}\nstages:\n  here:\n    run: echo said-here\n';

describe('machines of twenty tenants, each at its bounds', { timeout: 4 * PATIENT_MS }, () => {
  let server: RunningServer;
  let ada: Login;
  const buses: Bus[] = [];
  let isOver = false;
  /** Rounds of all machines. */
  let sent = 0;

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SLOTS: '1', SERVICE_PUBLIC_READ: 'false' } });
    ada = await deviceLogin(server.url, 'ada');
  }, PATIENT_MS);
  afterAll(async () => {
    isOver = true;
    await Promise.all(buses.map((bus) => bus.close(0)));
    await server?.stop();
  }, PATIENT_MS);

  async function asked(login: Login, query: string, variables: object = {}): Promise<Record<string, never>> {
    const response = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${login.access_token}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: Record<string, never>; errors?: unknown };
    expect(errors).toBeUndefined();
    return data;
  }

  async function machineOf(login: Login): Promise<DialledMachine> {
    const created = await asked(login, 'mutation { createRunnerToken(labels: ["far"]) { token } }');
    const { token } = created['createRunnerToken'] as unknown as { token: string };
    const machine = await dialMachine(server.url, token);
    buses.push(machine.bus);
    return machine;
  }

  /** As much as goes on, until the test is over: what costs the server's own programs work for each. How often it came through. */
  async function flood({ runner, bus }: DialledMachine): Promise<number> {
    const run = newRunId({ now: Date.now(), key: 'of nobody', random: randomBytes(16) });
    const forms = { timeoutMs: PATIENT_MS };
    let rounds = 0;
    for (; !isOver; rounds += 1) {
      for (let count = 0; count < 40; count += 1) {
        const session = `s${rounds}-${count}`;
        const ref = { runId: run, stage: 'x', attempt: 1, session, credit: 1 };
        bus.publish(subjects.pull('any', runner), { runner, session, labels: [], credits: [1], withdraw: [] });
        bus.publish(subjects.log(run, runner), 'x'.repeat(8_000));
        bus.publish(`$KV.runners.${runner}.${session}`, { runner, session });
        bus.request(subjects.slip(runner), { slip: 'a.b' }, forms).catch(() => {});
        bus.request(subjects.result(0, runner), { ...ref, status: 'success', logBytes: 0 }, forms).catch(() => {});
      }
      // Behind all of that.
      await bus.flush(PATIENT_MS).catch(() => {});
      sent += 1;
    }
    return rounds;
  }

  const runs = async (): Promise<string> => {
    const query = 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }';
    const triggered = await asked(ada, query, { yaml: WORK });
    const { id } = (triggered['triggerPipeline'] as unknown as { run: { id: string } }).run;
    return await until(
      'the run ends',
      async () => {
        const { run } = await asked(ada, 'query ($id: String!) { run(id: $id) { status } }', { id });
        const { status } = run as unknown as { status: string };
        return ENDED.has(status) && status;
      },
      PATIENT_MS,
    );
  };

  it('wait for their bounds, while the runs of somebody else go through', async () => {
    const machines = [];
    for (let n = 0; n < TENANTS; n += 1) machines.push(await machineOf(await deviceLogin(server.url, `user-${n}`)));
    const floods = machines.map((machine) => flood(machine));
    while (sent < ENOUGH) await runs();
    // While they go on.
    for (let n = 0; n < 10; n += 1) expect(await runs()).toBe('SUCCESS');
    isOver = true;
    const seen = await Promise.all(floods);
    expect(seen.every((count) => count > 0)).toBe(true);
  });
});
