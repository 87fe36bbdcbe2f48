/** `runs` with its cursor and filters, and pages of stages, where some runs are their owner's and some the store's. */
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TriggerOrigin } from '@penstock/run';
import { graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const finish = (id: string, status: 'SUCCESS' | 'FAILED'): void =>
  world.owner.commit(id, [happened.queued('build'), happened.started('build'), happened.runCompleted(status)]);

/** A run of its own user, so that tests do not see each other's. */
function adopt(tenant: string, name: string, from: Partial<TriggerOrigin> = {}): string {
  const id = runIdFor(tenant);
  world.owner.adopt(id, YAML.replace('demo', name), tenant, { kind: 'api', ...from } as TriggerOrigin);
  return id;
}

async function tokenOf(user: string): Promise<string> {
  return (await world.auth.login(user)).token;
}

const LIST = `query ($limit: Int, $before: String, $pipelineName: String, $status: RunStatus, $repository: String, $ref: String) {
  runs(limit: $limit, before: $before, pipelineName: $pipelineName, status: $status, repository: $repository, ref: $ref) { id status }
}`;

async function list(app: FastifyInstance, token: string, variables: Record<string, unknown>): Promise<string[]> {
  const { data, errors } = await graphql(app, LIST, { token, variables });
  expect(errors).toEqual([]);
  const runs = data?.['runs'] as { id: string }[];
  return runs.map(({ id }) => id);
}

describe('runs, page by page', () => {
  it('every run is on exactly one page, whether its owner or the store has it', async () => {
    const app = await world.gateway();
    const token = await tokenOf('pages');
    const ids: string[] = [];
    for (let count = 0; count < 23; count++) {
      const id = adopt('user/pages', 'demo');
      ids.push(id);
      if (count % 3 === 0) continue;
      finish(id, 'SUCCESS');
      await world.owner.project(id, { keep: count % 3 === 1 });
    }
    const seen: string[] = [];
    for (let before: string | undefined; ; before = seen.at(-1)) {
      const page = await list(app, token, { limit: 5, before });
      seen.push(...page);
      if (page.length < 5) break;
    }
    expect(seen).toEqual(ids.toReversed());
  });

  it('filters by name, status, repository and ref, alone and together', async () => {
    const app = await world.gateway();
    const token = await tokenOf('filters');
    const from = { repository: 'o/r', ref: 'refs/heads/main' };
    const build = adopt('user/filters', 'build');
    const failed = adopt('user/filters', 'build', from);
    finish(failed, 'FAILED');
    await world.owner.project(failed);
    const deploy = adopt('user/filters', 'deploy', { ...from, ref: 'refs/tags/v1' });
    const other = adopt('user/filters', 'deploy', { repository: 'o/other', ref: 'refs/heads/main' });
    finish(other, 'FAILED');
    await world.owner.project(other);
    for (const [filter, expected] of [
      [{ pipelineName: 'build' }, [failed, build]],
      [{ status: 'FAILED' }, [other, failed]],
      [{ repository: 'o/r' }, [deploy, failed]],
      [{ ref: 'main' }, [other, failed]],
      [{ ref: 'refs/tags/v1' }, [deploy]],
      [{ ref: 'refs/tags/main' }, []],
      [{ repository: 'o/r', status: 'FAILED', pipelineName: 'build', ref: 'refs/heads/main' }, [failed]],
      [{ repository: 'o/r', status: 'SUCCESS' }, []],
    ] as const)
      expect([filter, await list(app, token, filter)]).toEqual([filter, expected]);
  });

  it("P22: a run is found by the status that its owner says, never by the store's older one", async () => {
    const app = await world.gateway();
    const token = await tokenOf('stale');
    const older = adopt('user/stale', 'demo');
    finish(older, 'FAILED');
    await world.owner.project(older);
    const ids = Array.from({ length: 3 }, () => adopt('user/stale', 'demo'));
    for (const id of ids) {
      await world.owner.project(id, { keep: true });
      finish(id, 'FAILED');
    }
    expect(await list(app, token, { status: 'PENDING' })).toEqual([]);
    expect(await list(app, token, { status: 'FAILED' })).toEqual([...ids.toReversed(), older]);
  });

  it('P22: where what the store says is outdated, the page goes on until it is full', async () => {
    const app = await world.gateway();
    const token = await tokenOf('full');
    const pending = Array.from({ length: 3 }, () => adopt('user/full', 'demo'));
    for (const id of pending) await world.owner.project(id, { keep: true });
    for (let count = 0; count < 6; count++) {
      const id = adopt('user/full', 'demo');
      const stale = { ...world.owner.document(id), sequence: 1 };
      await world.runs.saveBatch([stale]);
      finish(id, 'SUCCESS');
    }
    expect(await list(app, token, { status: 'PENDING', limit: 2 })).toEqual([pending[2], pending[1]]);
  });

  it('rights are those of runs without a filter: no filter and no cursor finds another user a run', async () => {
    const app = await world.gateway({ publicRead: false });
    const mine = adopt('user/owner', 'secret-name', { repository: 'o/private', ref: 'refs/heads/main' });
    finish(mine, 'SUCCESS');
    await world.owner.project(mine);
    const later = adopt('user/owner', 'secret-name', { repository: 'o/private', ref: 'refs/heads/main' });
    const [owner, stranger] = [await tokenOf('owner'), await tokenOf('stranger')];
    for (const filter of [
      { pipelineName: 'secret-name' },
      { repository: 'o/private' },
      { ref: 'main' },
      { before: later },
    ]) {
      expect((await list(app, owner, filter)).includes(mine)).toBe(true);
      expect(await list(app, stranger, filter)).toEqual([]);
    }
  });

  it('a cursor that is no id, an unknown status and an empty filter are BAD_USER_INPUT or do not fit the schema', async () => {
    const app = await world.gateway();
    for (const [argument, code] of [
      ['before: "x"', 'BAD_USER_INPUT'],
      ['repository: ""', 'BAD_USER_INPUT'],
      ['status: DONE', 'GRAPHQL_VALIDATION_FAILED'],
    ])
      expect(await graphql(app, `{ runs(${argument}) { id } }`)).toMatchObject({
        data: null,
        errors: [{ extensions: { code } }],
      });
  });
});

describe('the stages of a run, page by page', () => {
  it('go on behind the one named last, and are all of them where nothing is said', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    const names = Array.from({ length: 12 }, (_, index) => `s${index}`);
    world.owner.adopt(
      id,
      `engine: any\npipeline:\n  name: wide\nstages:\n${names.map((name) => `  ${name}: { run: make }\n`).join('')}`,
    );
    const query =
      'query ($id: String, $first: Int, $after: String) { run(id: $id) { stages(first: $first, after: $after) { name } } }';
    const page = async (variables: Record<string, unknown>): Promise<string[]> => {
      const { data } = await graphql(app, query, { variables: { id, ...variables } });
      const run = data?.['run'] as { stages: { name: string }[] };
      return run.stages.map(({ name }) => name);
    };
    expect(await page({})).toEqual(names);
    const seen: string[] = [];
    for (let after: string | undefined; ; after = seen.at(-1)) {
      const found = await page({ first: 5, after });
      seen.push(...found);
      if (found.length < 5) break;
    }
    expect(seen).toEqual(names);
    for (const wrong of [{ first: 0 }, { after: 'missing' }])
      expect(await graphql(app, query, { variables: { id, ...wrong } })).toMatchObject({
        errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
      });
  });
});
