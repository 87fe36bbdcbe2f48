/** `approveStage` and `rejectStage`: who sees and decides gates (P26). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
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

const GATED = (approval: string) =>
  `pipeline: {name: p}\nstages:\n  gate: {approval: ${approval}}\n  ship: {run: x, after: gate}\n`;
const FIELDS = 'name status approvals { by decision comment } gate { approvers quorum preventSelf message }';

function decide(
  app: Parameters<typeof graphql>[0],
  runId: string,
  more: {
    readonly token?: string | null;
    readonly field?: string;
    readonly stage?: string;
    readonly comment?: string;
  } = {},
) {
  const { token = API_KEY, field = 'approveStage', stage = 'gate', comment } = more;
  return graphql(
    app,
    `mutation ($runId: String, $stage: String, $comment: String) {
      ${field}(runId: $runId, stage: $stage, comment: $comment) { ${FIELDS} }
    }`,
    { token, variables: { runId, stage, ...(comment === undefined ? {} : { comment }) } },
  );
}

function codes(answer: { readonly errors: readonly { readonly extensions: Record<string, unknown> }[] }): unknown[] {
  return answer.errors.map(({ extensions }) => extensions['code']);
}

function seed(tenant: string, approval: string): string {
  const runId = runIdFor(tenant);
  world.owner.adopt(runId, GATED(approval), tenant);
  world.owner.commit(runId, [{ type: 'gates_queued', at: Date.now(), stages: ['gate'], dueAt: Date.now() + 60_000 }]);
  return runId;
}

describe('P26: deciding', () => {
  it('answers with the stage, what was said, and what the gate asks', async () => {
    const app = await world.gateway();
    const runId = seed('service', "{quorum: 2, message: 'Ship?'}");
    const answer = await decide(app, runId, { comment: 'seen' });
    expect(answer.data).toEqual({
      approveStage: {
        name: 'gate',
        status: 'QUEUED',
        approvals: [{ by: 'api-key', decision: 'approved', comment: 'seen' }],
        gate: { approvers: null, quorum: 2, preventSelf: false, message: 'Ship?' },
      },
    });
    expect((await decide(app, runId, { field: 'rejectStage' })).data).toMatchObject({
      rejectStage: { status: 'FAILED' },
    });
    expect(codes(await decide(app, runId))).toEqual(['CONFLICT']);
  });

  it('answers what a stage goes on to wait for where one approval is not enough', async () => {
    const app = await world.gateway();
    const runId = seed('service', '{quorum: 2}');
    const mutation = `mutation ($id: String) { approveStage(runId: $id, stage: "gate") { waitingOn { kind } } }`;
    const { data, errors } = await graphql(app, mutation, { token: API_KEY, variables: { id: runId } });
    expect(errors).toEqual([]);
    expect(data).toMatchObject({ approveStage: { waitingOn: [{}] } });
  });

  it('is for whoever may cancel the run where nobody is named, and needs a login or the API key', async () => {
    const app = await world.gateway();
    const runId = seed('user/ada', '{}');
    expect(codes(await decide(app, runId, { token: null }))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await decide(app, runId, { token: world.auth.personalToken('ada', 'read', 'trigger') }))).toEqual([
      'UNAUTHENTICATED',
    ]);
    expect(codes(await decide(app, runId, { token: bob.token }))).toEqual(['NOT_FOUND']);
    expect((await decide(app, runId, { token: ada.token })).data).toMatchObject({
      approveStage: { status: 'SUCCESS' },
    });
    // Everybody reads the runs of `service`; not everybody decides there.
    expect(codes(await decide(app, seed('service', '{}'), { token: ada.token }))).toEqual(['FORBIDDEN']);
  });

  it('where approvers are named: theirs alone, who may also read the run; the API key is no person then', async () => {
    const app = await world.gateway();
    const runId = seed('user/ada', '{approvers: [Bob@Example.com]}');
    const read = '{ run(id: "ID") { id } runEvents(id: "ID") { type } }'.replaceAll('ID', runId);
    expect(codes(await decide(app, runId, { token: ada.token }))).toEqual(['FORBIDDEN']);
    expect(codes(await decide(app, runId))).toEqual(['NOT_FOUND']);
    expect((await graphql(app, read, { token: API_KEY })).data).toEqual({ run: null, runEvents: [] });
    expect((await graphql(app, read, { token: bob.token })).data).toMatchObject({ run: { id: runId } });
    expect((await decide(app, runId, { token: bob.token })).data).toMatchObject({
      approveStage: { status: 'SUCCESS' },
    });
    const at = Date.now();
    world.owner.commit(runId, [
      { type: 'run_cancelled', at, cancelledStages: 1 },
      { type: 'run_stopped', at, status: 'CANCELLED', cancelledStages: 1 },
    ]);
    await world.owner.project(runId);
    expect((await graphql(app, read, { token: bob.token })).data).toMatchObject({ run: { id: runId } });
    expect((await graphql(app, read, { token: API_KEY })).data).toEqual({ run: null, runEvents: [] });
  });

  it('names what is wrong with what it is asked', async () => {
    const app = await world.gateway();
    const runId = seed('service', '{}');
    expect(codes(await decide(app, runId, { stage: 'ship' }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(await decide(app, runId, { stage: 'shop' }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(await decide(app, runId, { comment: 'x'.repeat(1_001) }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(await decide(app, 'nothing'))).toEqual(['NOT_FOUND']);
  });

  it('an ended run is CONFLICT, also once its owner has let it go', async () => {
    const app = await world.gateway();
    const runId = seed('service', '{}');
    world.owner.commit(runId, [{ type: 'run_cancelled', at: Date.now(), cancelledStages: 2 }]);
    expect(codes(await decide(app, runId))).toEqual(['CONFLICT']);
    await world.owner.project(runId);
    expect(codes(await decide(app, runId))).toEqual(['CONFLICT']);
  });
});
