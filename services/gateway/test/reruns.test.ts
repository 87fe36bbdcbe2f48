/** `rerunPipeline`, and what a run says of its lineage (P30). */
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { IngestCalls } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { answerCalls } from '@penstock/service';
import type { AuditEntry } from '@penstock/store';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, runIdFor, type World } from './harness.ts';

let world: World;
let ada: TestUser;
let bob: TestUser;
beforeAll(async () => {
  world = await makeWorld();
  [ada, bob] = await Promise.all([world.auth.login('ada'), world.auth.login('bob')]);
});
afterEach(() => world.reset());
afterAll(() => world.close());

const YAML = `
pipeline: {name: p}
inputs: {target: {type: string}}
stages:
  build: {run: make, outputs: [v]}
  test: {run: make test, after: build}
`;

/** Of a run whose \`build\` has succeeded and whose \`test\` has failed. */
function seed(tenant = 'service'): string {
  const id = runIdFor(`${tenant}/demo`);
  world.owner.adopt(id, YAML, tenant);
  // Before the millisecond of whatever a test does next.
  const at = Date.now() - 1_000;
  const grant = { runner: 'r', session: 's' };
  world.owner.commit(id, [
    { type: 'stages_queued', at, stages: ['build'] },
    { type: 'stage_started', at, stage: 'build', attempt: 1, ...grant, credit: 1 },
    { type: 'stage_completed', at, stage: 'build', attempt: 1, status: 'SUCCESS', outputs: { v: '7' } },
    { type: 'stages_queued', at, stages: ['test'] },
    { type: 'stage_started', at, stage: 'test', attempt: 1, ...grant, credit: 2 },
    { type: 'stage_completed', at, stage: 'test', attempt: 1, status: 'FAILED', reason: 'exit', exitCode: 1 },
    { type: 'run_completed', at, status: 'FAILED' },
  ]);
  return id;
}

const FIELDS =
  'run { id parentRunId rootRunId actor stages { name status adopted startedAt outputs { key value } } } summary { passed }';

type App = Parameters<typeof graphql>[0];

async function rerun(
  app: App,
  variables: Readonly<Record<string, unknown>>,
  token: string | null = API_KEY,
): Promise<{ readonly data: Record<string, unknown> | null; readonly codes: unknown[] }> {
  const answer = await graphql(
    app,
    `mutation ($id: String, $from: [String!], $onlyFailed: Boolean, $inputs: [KeyValueInput!], $yaml: String, $runId: String) {
      rerunPipeline(id: $id, from: $from, onlyFailed: $onlyFailed, inputs: $inputs, yaml: $yaml, runId: $runId, waitSeconds: 0) { ${FIELDS} }
    }`,
    { token, variables },
  );
  return { data: answer.data, codes: answer.errors.map(({ extensions }) => extensions['code']) };
}

function runOf({ data }: { readonly data: Record<string, unknown> | null }): { readonly id: string } {
  const { rerunPipeline } = data as { readonly rerunPipeline: { readonly run: { readonly id: string } } };
  return rerunPipeline.run;
}

describe('P30: rerunPipeline', () => {
  it('makes a run of its own, with what the earlier one had, and says what it has adopted', async () => {
    const app = await world.gateway();
    const id = seed();
    const answer = await rerun(app, { id, onlyFailed: true });
    expect(answer.data).toMatchObject({
      rerunPipeline: {
        run: {
          parentRunId: id,
          rootRunId: id,
          stages: [
            { name: 'build', status: 'SUCCESS', adopted: true, startedAt: null, outputs: [{ key: 'v', value: '7' }] },
            { name: 'test', adopted: false },
          ],
        },
        summary: { passed: 1 },
      },
    });
    expect(world.owner.created.at(-1)).toMatchObject({
      tenant: 'service',
      yaml: YAML,
      rerun: { parent: id, onlyFailed: true },
      origin: { actor: 'api-key' },
    });
    const { id: second } = runOf(answer);
    const again = await rerun(app, { id: second, inputs: [{ key: 'target', value: 'x' }] });
    expect(runOf(again)).toMatchObject({ parentRunId: second, rootRunId: id });
    expect(world.owner.created.at(-1)?.inputs).toEqual([['target', 'x']]);
    const other = await graphql(app, '{ run(id: "ID") { parentRunId rootRunId } }'.replace('ID', id), {
      token: API_KEY,
    });
    expect(other.data).toEqual({ run: { parentRunId: null, rootRunId: null } });
  });

  it('finds a run that its owner has let go, and tells the runs that were made of it', async () => {
    const app = await world.gateway();
    const id = seed();
    await world.owner.project(id, { keep: true });
    const { id: child } = runOf(await rerun(app, { id }));
    await world.owner.project(child);
    await world.owner.project(id);
    const children = await graphql(app, `{ run(id: "${id}") { children } }`, { token: API_KEY });
    expect(children.data).toEqual({ run: { children: [child] } });
    const { run } = (await graphql(app, `{ run(id: "${id}") { version } }`, { token: API_KEY })).data as {
      readonly run: { readonly version: number };
    };
    for (const at of [2, run.version]) {
      const past = await graphql(app, `{ run(id: "${id}", atVersion: ${at}) { children } }`, { token: API_KEY });
      expect(past.data).toEqual({ run: { children: [] } });
    }
    // Of a run that is in the store alone the owner here knows nothing: what it was asked is what counts.
    await rerun(app, { id, from: ['test'] });
    expect(world.owner.created.at(-1)).toMatchObject({ yaml: YAML, rerun: { parent: id, from: ['test'] } });
  });

  it('of a run without stages has its delivery decided anew, if there is one, and takes nothing else', async () => {
    const app = await world.gateway();
    const id = runIdFor('service/demo');
    world.owner.adopt(id, '', 'service', { kind: 'webhook' });
    world.owner.commit(id, [{ type: 'run_completed', at: Date.now(), status: 'FAILED', reason: 'pipeline_file' }]);
    expect((await rerun(app, { id, onlyFailed: true })).codes).toEqual(['BAD_USER_INPUT']);
    expect((await rerun(app, { id, from: ['build'] })).codes).toEqual(['BAD_USER_INPUT']);
    const asked: unknown[] = [];
    const calls = answerCalls(world.bus, 'webhook-ingest', {
      replay: async (request: IngestCalls['replay']['request']) => {
        asked.push(request);
        if (asked.length === 1) throw new NotFound('There is no delivery.');
        // As the ingest does it some time after its answer.
        setImmediate(() => world.owner.repeat(id, request.repeats?.runId ?? '', YAML));
        return {};
      },
    });
    expect((await rerun(app, { id })).codes).toEqual(['CONFLICT']);
    const again = runOf(await rerun(app, { id }));
    expect(asked).toEqual([
      expect.anything(),
      { id, tenants: ['service'], dryRun: false, repeats: { run: id, runId: again.id, actor: 'api-key' } },
    ]);
    expect(again).toMatchObject({ parentRunId: id, rootRunId: id });
    calls.stop();
  });

  it('of a run without stages is in the audit log, also where its caller does not wait for what comes of it', async () => {
    const recorded = Promise.withResolvers<AuditEntry>();
    const app = await world.gateway({ audit: { record: recorded.resolve, newest: async () => [] } });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const id = runIdFor('service/demo');
    world.owner.adopt(id, '', 'service', { kind: 'webhook' });
    world.owner.commit(id, [{ type: 'run_completed', at: Date.now(), status: 'FAILED', reason: 'pipeline_file' }]);
    const hasLeft = Promise.withResolvers<void>();
    app.server.once('request', (_request, response) => response.once('close', hasLeft.resolve));
    const asked = Promise.withResolvers<string>();
    const calls = answerCalls(world.bus, 'webhook-ingest', {
      replay: async ({ repeats }: IngestCalls['replay']['request']) => {
        asked.resolve(repeats?.runId ?? '');
        await hasLeft.promise;
        return {};
      },
    });
    const leaving = request(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
    });
    leaving.on('error', () => {});
    leaving.end(JSON.stringify({ query: `mutation { rerunPipeline(id: "${id}") { run { id } } }` }));
    const again = await asked.promise;
    leaving.destroy();
    expect(await recorded.promise).toMatchObject({
      actor: 'api-key',
      action: 'run.rerun',
      target: `${id} ${again}`,
      outcome: 'UNAVAILABLE',
    });
    calls.stop();
  });

  it('is for whoever may cancel the run, and knows no run of another tenant', async () => {
    const app = await world.gateway();
    const own = seed('user/ada');
    expect((await rerun(app, { id: own }, null)).codes).toEqual(['UNAUTHENTICATED']);
    expect((await rerun(app, { id: own }, bob.token)).codes).toEqual(['NOT_FOUND']);
    expect((await rerun(app, { id: own })).codes).toEqual(['NOT_FOUND']);
    expect((await rerun(app, { id: own }, world.auth.personalToken('ada', 'read'))).codes).toEqual(['FORBIDDEN']);
    // Everybody reads the runs of `service`; to repeat them they are another tenant's.
    expect((await rerun(app, { id: seed() }, ada.token)).codes).toEqual(['NOT_FOUND']);
    expect(world.owner.created.filter((request) => request.rerun !== undefined)).toEqual([]);
    expect((await rerun(app, { id: own }, world.auth.personalToken('ada', 'read', 'trigger'))).codes).toEqual([]);
  });

  it('names what is wrong with what it is asked', async () => {
    const app = await world.gateway();
    const id = seed();
    expect((await rerun(app, {})).codes).toEqual(['BAD_USER_INPUT']);
    expect((await rerun(app, { id: 'nothing' })).codes).toEqual(['NOT_FOUND']);
    expect((await rerun(app, { id: runIdFor('service') })).codes).toEqual(['NOT_FOUND']);
    expect((await rerun(app, { id, from: ['nobody'] })).codes).toEqual(['BAD_USER_INPUT']);
    expect((await rerun(app, { id, from: ['test'], onlyFailed: true })).codes).toEqual(['BAD_USER_INPUT']);
    expect((await rerun(app, { id, yaml: 'stages: {' })).codes).toEqual(['BAD_USER_INPUT']);
    expect((await rerun(app, { id, runId: 'x' })).codes).toEqual(['BAD_USER_INPUT']);
    const twice = ['1', '2'].map((value) => ({ key: 'target', value }));
    expect((await rerun(app, { id, inputs: twice })).codes).toEqual(['BAD_USER_INPUT']);
  });

  it('repeated with its run id is the same run; with that of another it is refused', async () => {
    const app = await world.gateway();
    const [id, other] = [seed(), seed()];
    const { id: child } = runOf(await rerun(app, { id }));
    expect(runOf(await rerun(app, { id, runId: child })).id).toBe(child);
    expect((await rerun(app, { id: other, runId: child })).codes).toEqual(['BAD_USER_INPUT']);
  });

  it('repeated with another file or other inputs it is refused; what it has of the run before it is no other input', async () => {
    const app = await world.gateway();
    const target = (value: string): readonly unknown[] => [{ key: 'target', value }];
    const { id: first } = runOf(await rerun(app, { id: seed(), inputs: target('x') }));
    const asked = { id: first, yaml: `${YAML}# edited\n` };
    const { id: child } = runOf(await rerun(app, asked));
    for (const same of [asked, { ...asked, inputs: target('x') }])
      expect(runOf(await rerun(app, { ...same, runId: child })).id).toBe(child);
    for (const other of [{ id: first }, { ...asked, yaml: YAML }, { ...asked, inputs: target('y') }])
      expect((await rerun(app, { ...other, runId: child })).codes).toEqual(['BAD_USER_INPUT']);
  });
});
