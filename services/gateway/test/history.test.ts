import type { RunEvent } from '@penstock/run';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { API_KEY, graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const events = [
  happened.queued('build'),
  happened.started('build'),
  happened.completed('build', 1_234, { outputs: { v: '1' } }),
  happened.queued('test'),
  happened.started('test'),
  happened.completed('test', 5, { status: 'FAILED', reason: 'exit', exitCode: 2 }),
  happened.runCompleted('FAILED'),
];

/** `ended`: in the store and out of its owner's memory; else live with the first `count` events behind its creation. */
async function makeRun(count: number | 'ended'): Promise<string> {
  const id = runIdFor();
  world.owner.adopt(id, YAML);
  world.owner.commit(id, count === 'ended' ? events : events.slice(0, count));
  if (count === 'ended') await world.owner.project(id);
  return id;
}

const AT = 'query ($id: String, $at: Int) { run(id: $id, atVersion: $at) { status stages { name status } } }';

describe('run(atVersion)', () => {
  it.each(['ended', 5] as const)('of a run (%s) answers with it as it stood after that event', async (count) => {
    const app = await world.gateway();
    const id = await makeRun(count);
    const statuses = async (at: number) => {
      const { data, errors } = await graphql(app, AT, { variables: { id, at } });
      expect(errors).toEqual([]);
      const run = data?.['run'] as { status: string; stages: { status: string }[] };
      return [run.status, ...run.stages.map(({ status }) => status)];
    };
    expect(await statuses(1)).toEqual(['PENDING', 'PENDING', 'PENDING']);
    expect(await statuses(2)).toEqual(['PENDING', 'QUEUED', 'PENDING']);
    expect(await statuses(3)).toEqual(['RUNNING', 'RUNNING', 'PENDING']);
    expect(await statuses(6)).toEqual(['RUNNING', 'SUCCESS', 'RUNNING']);
  });

  it('out of range is BAD_USER_INPUT that says which versions there are; an unknown run is null', async () => {
    const app = await world.gateway();
    const id = await makeRun('ended');
    for (const at of [0, -1, 9]) {
      const { errors } = await graphql(app, AT, { variables: { id, at } });
      expect(errors).toMatchObject([
        { message: expect.stringContaining('the versions 1 to 8'), extensions: { code: 'BAD_USER_INPUT' } },
      ]);
    }
    expect((await graphql(app, AT, { variables: { id: runIdFor(), at: 1 } })).data).toEqual({ run: null });
  });
});

describe('runEvents', () => {
  const EVENTS =
    'query ($id: String, $after: Int, $limit: Int) { runEvents(id: $id, after: $after, limit: $limit) { version type stage attempt summary data } }';

  it('are told from the first, a page at a time, without sessions', async () => {
    const app = await world.gateway();
    const id = await makeRun('ended');
    const page = async (variables: Record<string, unknown>) =>
      (await graphql(app, EVENTS, { variables: { id, ...variables } })).data?.['runEvents'] as { version: number }[];
    const all = await page({});
    expect(all.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(all[0]).toMatchObject({ type: 'run_created', stage: null });
    expect(all[2]).toMatchObject({ type: 'stage_started', stage: 'build', attempt: 1 });
    expect(JSON.stringify(all)).not.toContain('session');
    expect(await page({ after: 2, limit: 3 })).toEqual(all.slice(2, 5));
    expect(await page({ after: 8 })).toEqual([]);
  });

  it('show the text of the file to those whose run it is, and not to everybody where reading is public', async () => {
    const app = await world.gateway();
    const variables = { id: await makeRun('ended') };
    const created = async (token: string | null) => {
      const { data } = await graphql(app, EVENTS, { token, variables });
      const events = data?.['runEvents'] as { data: string }[];
      return JSON.parse(events[0]?.data ?? '') as { yaml?: string; pipelineName: string };
    };
    expect(await created(API_KEY)).toMatchObject({ yaml: YAML, pipelineName: 'demo' });
    expect(await created(null)).not.toHaveProperty('yaml');
    expect(await created(null)).toMatchObject({ pipelineName: 'demo' });
  });

  it('of a run that the caller may not see are none', async () => {
    const app = await world.gateway({ publicRead: false });
    const id = await makeRun('ended');
    const { errors } = await graphql(app, EVENTS, { token: null, variables: { id } });
    expect(errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
    expect((await graphql(app, EVENTS, { variables: { id: runIdFor('user/other') } })).data).toEqual({ runEvents: [] });
  });
});

it('the attempts of a stage are told with it, those of a stage that never started are none', async () => {
  const app = await world.gateway();
  const id = await makeRun(4);
  const query = `query ($id: String) { run(id: $id) { stages { name attempts { number runner status exitCode finishedAt logBytes } } } }`;
  const { data, errors } = await graphql(app, query, { variables: { id } });
  expect(errors).toEqual([]);
  expect(data?.['run']).toMatchObject({
    stages: [
      {
        name: 'build',
        attempts: [{ number: 1, runner: 'r1', status: 'SUCCESS', finishedAt: expect.any(String), logBytes: '1234' }],
      },
      { name: 'test', attempts: [] },
    ],
  });
});

it('the attempts of a past view are those that had been by then', async () => {
  const app = await world.gateway();
  const id = runIdFor();
  world.owner.adopt(id, YAML);
  world.owner.commit(id, [
    happened.queued('build'),
    happened.started('build'),
    { type: 'stage_retrying', at: Date.now(), stage: 'build', attempt: 1, reason: 'exit', exitCode: 1, dueAt: 0 },
    happened.queued('build'),
    happened.started('build', 2),
    happened.completed('build', 0, { attempt: 2 }),
  ]);
  const attempts = async (at: number) => {
    const query =
      'query ($id: String, $at: Int) { run(id: $id, atVersion: $at) { stages(first: 1) { attempts { number status } } } }';
    const { data, errors } = await graphql(app, query, { variables: { id, at } });
    expect(errors).toEqual([]);
    const run = data?.['run'] as { stages: { attempts: { number: number; status: string }[] }[] };
    return run.stages[0]?.attempts.map(({ number, status }) => `${number} ${status}`);
  };
  expect(await attempts(3)).toEqual(['1 RUNNING']);
  expect(await attempts(5)).toEqual(['1 FAILED']);
  expect(await attempts(6)).toEqual(['1 FAILED', '2 RUNNING']);
  expect(await attempts(7)).toEqual(['1 FAILED', '2 SUCCESS']);
});

it('attempts of too many runs at once are refused by their cost before anything is read', async () => {
  const app = await world.gateway();
  const { errors } = await graphql(app, '{ runs(limit: 100) { stages { attempts { number } } } }');
  expect(errors[0]?.message).toMatch(/cost/);
});

it('attempts of many runs that have had many are BAD_USER_INPUT once they are too many to keep', async () => {
  const app = await world.gateway();
  const attempts = Array.from({ length: 20_000 }, (_, index): RunEvent[] => [
    happened.started('build', index + 1),
    { type: 'stage_retrying', at: 1, stage: 'build', attempt: index + 1, reason: 'exit', dueAt: 1 },
  ]).flat();
  const id = runIdFor();
  world.owner.adopt(id, YAML);
  world.owner.watchPage = 2_000;
  world.owner.commit(id, [happened.queued('build'), ...attempts], { silently: true });
  const runs = (count: number) =>
    Array.from({ length: count }, (_, index) => `a${index}: run(id: $id) { stages(first: 1) { attempts { number } } }`);
  const ask = (count: number) =>
    graphql(app, `query ($id: String) { ${runs(count).join(' ')} }`, { variables: { id } });
  expect((await ask(2)).errors).toEqual([]);
  expect((await ask(15)).errors[0]).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
});

describe('compareRuns', () => {
  const COMPARE =
    'query ($a: String, $b: String) { compareRuns(a: $a, b: $b) { stage change a { status } b { status attempts { number } } } }';

  it('says of each stage what became of it', async () => {
    const app = await world.gateway();
    const [a, b] = [await makeRun('ended'), await makeRun(5)];
    const { data, errors } = await graphql(app, COMPARE, { variables: { a, b } });
    expect(errors).toEqual([]);
    expect(data?.['compareRuns']).toEqual([
      { stage: 'build', change: 'same', a: { status: 'SUCCESS' }, b: { status: 'SUCCESS', attempts: [{ number: 1 }] } },
      {
        stage: 'test',
        change: 'changed',
        a: { status: 'FAILED' },
        b: { status: 'RUNNING', attempts: [{ number: 1 }] },
      },
    ]);
  });

  it('with a run that is not there is NOT_FOUND', async () => {
    const app = await world.gateway();
    const { errors } = await graphql(app, COMPARE, { variables: { a: await makeRun('ended'), b: runIdFor() } });
    expect(errors).toMatchObject([{ extensions: { code: 'NOT_FOUND' } }]);
  });
});
