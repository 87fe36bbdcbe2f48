import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { graphql, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeEach(async () => {
  world = await makeWorld();
});
afterEach(() => world.close());

const APPROVE = 'mutation ($id: String) { approveRun(id: $id) { id status } }';

describe('approveRun', () => {
  it('answers with the run, which goes on by whoever approved it, and writes the audit log', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML, 'service', { kind: 'webhook' }, 'approval');
    expect((await graphql(app, APPROVE, { variables: { id } })).data).toEqual({
      approveRun: { id, status: 'PENDING' },
    });
    const events = `{ runEvents(id: "${id}") { type summary } }`;
    expect((await graphql(app, events)).data?.['runEvents']).toContainEqual({
      type: 'run_approved',
      summary: 'the run was approved by api-key',
    });
  });

  it('of one that does not wait for it is CONFLICT, of another tenant’s NOT_FOUND, also where it may be read', async () => {
    const app = await world.gateway();
    const [going, theirs] = [runIdFor(), runIdFor('u1')];
    world.owner.adopt(going, YAML);
    world.owner.adopt(theirs, YAML, 'u1', { kind: 'webhook' }, 'approval');
    for (const [id, code] of [
      [going, 'CONFLICT'],
      [theirs, 'NOT_FOUND'],
      ['nothing', 'NOT_FOUND'],
      [undefined, 'BAD_USER_INPUT'],
    ] as const)
      expect(await graphql(app, APPROVE, { variables: { id } }), code).toMatchObject({
        data: null,
        errors: [{ extensions: { code } }],
      });
    const { token } = await world.auth.login('ada');
    const read = await graphql(app, `{ run(id: "${going}") { id } }`, { token });
    expect(read.data).toEqual({ run: { id: going } });
    const answer = await graphql(app, APPROVE, { variables: { id: going }, token });
    expect(answer).toMatchObject({ errors: [{ extensions: { code: 'NOT_FOUND' } }] });
  });

  it('needs a credential', async () => {
    const app = await world.gateway();
    const answer = await graphql(app, APPROVE, { variables: { id: runIdFor() }, token: null });
    expect(answer).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
  });
});
