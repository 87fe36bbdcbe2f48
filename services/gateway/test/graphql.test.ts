/** Questions about runs and pipelines: who is answered, and that no answer goes back in time. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  API_KEY,
  endedRun,
  graphql,
  happened,
  makeWorld,
  PARTITIONS,
  RUN_FIELDS,
  runIdFor,
  YAML,
  type World,
} from './harness.ts';
import { silentLog } from '@penstock/telemetry/log';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const ISO_MS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

describe('open queries', () => {
  it('health answers the string ok, version the engine version, without authentication', async () => {
    const app = await world.gateway({ publicRead: false });
    expect(await graphql(app, '{ health version }', { token: null })).toMatchObject({
      status: 200,
      data: { health: 'ok', version: '0.6.0' },
      errors: [],
    });
  });

  it('interpreted and compiled executions answer alike, results and errors', async () => {
    const app = await world.gateway();
    for (const query of [
      '{ health }',
      '{ runs(limit: 0) { id } }',
      '{ run(id: "x") { id } }',
      'mutation { cancelPipeline(id: "x") { cancelledStages } }',
    ]) {
      const answers = [await graphql(app, query), await graphql(app, query), await graphql(app, query)];
      expect(answers[1]).toEqual(answers[0]);
      expect(answers[2]).toEqual(answers[0]);
    }
  });

  it('of a document with several operations the named one is executed, also once it is compiled', async () => {
    const app = await world.gateway();
    const query = 'query A { health } query B { version }';
    for (const operationName of ['A', 'A', 'A', 'B', 'B', 'A']) {
      expect(Object.keys((await graphql(app, query, { operationName })).data ?? {})).toEqual([
        operationName === 'A' ? 'health' : 'version',
      ]);
    }
    expect((await graphql(app, query)).errors[0]?.extensions['code']).toBe('BAD_USER_INPUT');
  });
});

describe('authentication', () => {
  it('a mutation without a token is UNAUTHENTICATED: HTTP 200, data null, a message that a valid access token is required', async () => {
    const app = await world.gateway();
    for (const query of [
      'mutation { triggerPipeline(yaml: "x") { run { id } } }',
      'mutation { cancelPipeline(id: "x") { cancelledStages } }',
    ]) {
      const answer = await graphql(app, query, { token: null });
      expect(answer).toMatchObject({ status: 200, data: null, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
      expect(answer.errors[0]?.message).toMatch(/valid access token is required/u);
    }
  });

  it('a token that is presented and invalid is refused even for an open query', async () => {
    const app = await world.gateway();
    for (const token of ['wrong', '', `${API_KEY}x`, API_KEY.slice(0, -1), 'x'.repeat(10_000)]) {
      expect(await graphql(app, '{ health }', { token })).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
      });
    }
  });

  it('an operation refused for its authentication has data null, whatever else it asked', async () => {
    const app = await world.gateway({ publicRead: false });
    expect(await graphql(app, '{ health run(id: "x") { id } }', { token: null })).toMatchObject({
      data: null,
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });

  it('a further way of authentication fits in, with tenants of its own', async () => {
    const app = await world.gateway({
      authenticators: [
        (token) => (token === 'jwt' ? { kind: 'api-key', readTenants: ['u1'], writeTenant: 'u1' } : null),
      ],
    });
    const id = runIdFor('u1');
    world.owner.adopt(id, YAML, 'u1');
    expect((await graphql(app, `{ run(id: "${id}") { id } }`, { token: 'jwt' })).data).toEqual({ run: { id } });
    expect((await graphql(app, `{ run(id: "${id}") { id } }`)).data).toEqual({ run: null });
    expect((await graphql(app, '{ runs { id } }', { token: 'jwt' })).data).toEqual({ runs: [{ id }] });
  });
});

describe('who sees which runs', () => {
  it('an anonymous query sees the runs of service while reading is public, and never those of a user', async () => {
    const app = await world.gateway();
    const [open, private_] = [runIdFor(), runIdFor('u1')];
    world.owner.adopt(open, YAML);
    world.owner.adopt(private_, YAML, 'u1');
    await world.owner.project(private_, { keep: true });
    const query = `{ open: run(id: "${open}") { id } hidden: run(id: "${private_}") { id } }`;
    expect((await graphql(app, query, { token: null })).data).toEqual({ open: { id: open }, hidden: null });
    await world.owner.project(private_);
    expect((await graphql(app, query, { token: null })).data).toEqual({ open: { id: open }, hidden: null });
    expect((await graphql(app, query)).data).toEqual({ open: { id: open }, hidden: null });
    const { data } = await graphql(app, '{ runs(limit: 100) { id } }', { token: null });
    expect(JSON.stringify(data)).toContain(open);
    expect(JSON.stringify(data)).not.toContain(private_);
  });

  it('where reading is not public an anonymous query of runs is UNAUTHENTICATED', async () => {
    const app = await world.gateway({ publicRead: false });
    for (const query of [
      '{ runs { id } }',
      '{ run(id: "x") { id } }',
      '{ artifacts(run_id: "x") { key } }',
      '{ pipelineHealth(pipelineName: "demo") { totalRuns } }',
    ]) {
      expect(await graphql(app, query, { token: null })).toMatchObject({
        data: null,
        errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
      });
    }
  });
});

describe('run and runs', () => {
  it('a run has the documented fields', async () => {
    const app = await world.gateway();
    const id = await endedRun(world, { version: '1.2' });
    const run = (await graphql(app, `query ($id: String!) { run(id: $id) { ${RUN_FIELDS} } }`, { variables: { id } }))
      .data?.['run'];
    expect(run).toEqual({
      id,
      pipelineName: 'demo',
      status: 'FAILED',
      startedAt: expect.stringMatching(ISO_MS),
      finishedAt: expect.stringMatching(ISO_MS),
      outcome: null,
      reason: null,
      stages: [
        {
          name: 'build',
          status: 'SUCCESS',
          startedAt: expect.stringMatching(ISO_MS),
          finishedAt: expect.stringMatching(ISO_MS),
          attempt: 1,
          exitCode: null,
          reason: null,
          outputs: [{ key: 'version', value: '1.2' }],
        },
        {
          name: 'test',
          status: 'FAILED',
          startedAt: expect.stringMatching(ISO_MS),
          finishedAt: expect.stringMatching(ISO_MS),
          attempt: 1,
          exitCode: 2,
          reason: 'exit',
          outputs: [],
        },
      ],
    });
  });

  it('an unknown run is null, whatever its id looks like', async () => {
    const app = await world.gateway();
    for (const id of [runIdFor(), 'x', '', '../../etc', 'é'.repeat(1000)]) {
      expect(await graphql(app, 'query ($id: String) { run(id: $id) { id } }', { variables: { id } })).toMatchObject({
        status: 200,
        data: { run: null },
        errors: [],
      });
    }
  });

  it('P22: a run that lives is shown by its owner, not as the store last saw it', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    await world.owner.project(id, { keep: true });
    world.owner.commit(id, [happened.queued('build'), happened.started('build')]);
    expect((await graphql(app, `{ run(id: "${id}") { status } }`)).data).toEqual({ run: { status: 'RUNNING' } });
    const runs = (await graphql(app, '{ runs { id status } }')).data?.['runs'] as { id: string; status: string }[];
    expect(runs.filter((run) => run.id === id)).toEqual([{ id, status: 'RUNNING' }]);
  });

  it('P22: runs merges the newest of the store and of the owners, newest first, each once', async () => {
    const app = await world.gateway();
    const stored = [await endedRun(world), await endedRun(world)];
    const live = [runIdFor(), runIdFor('service/other')];
    for (const id of live) world.owner.adopt(id, YAML);
    const later = await endedRun(world);
    const runs = (await graphql(app, '{ runs(limit: 4) { id } }')).data?.['runs'] as { id: string }[];
    expect(runs.map(({ id }) => id)).toEqual([later, live[1], live[0], stored[1]]);
  });

  it('P22: a run that leaves its owner between the two questions is not missing', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    await world.owner.project(id, { keep: true });
    // The store still shows it open; its owner has let it go, and its end is stored by the time it is asked again.
    const closed = world.owner.document(id);
    await world.owner.project(id);
    await world.runs.saveBatch([
      { ...closed, sequence: 1_000_000, view: { ...closed.view, status: 'SUCCESS', version: 99 } },
    ]);
    const runs = (await graphql(app, '{ runs { id status } }')).data?.['runs'] as { id: string; status: string }[];
    expect(runs.find((run) => run.id === id)).toEqual({ id, status: 'SUCCESS' });
  });

  it('limit defaults to 20, is cut to 100, and below 1 it is BAD_USER_INPUT', async () => {
    const app = await world.gateway();
    for (let count = 0; count < 105; count++) world.owner.adopt(runIdFor(), YAML);
    for (const [query, length] of [
      ['{ runs { id } }', 20],
      ['{ runs(limit: null) { id } }', 20],
      ['{ runs(limit: 1) { id } }', 1],
      ['{ runs(limit: 100000) { id } }', 100],
    ] as const) {
      expect((await graphql(app, query)).data?.['runs']).toHaveLength(length);
    }
    for (const limit of [0, -1])
      expect(await graphql(app, `{ runs(limit: ${limit}) { id } }`)).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
      });
  });

  it('a missing id is BAD_USER_INPUT, not a validation error', async () => {
    const app = await world.gateway();
    for (const query of [
      '{ run { id } }',
      '{ artifacts { key } }',
      '{ pipelineHealth { totalRuns } }',
      'mutation { cancelPipeline { cancelledStages } }',
      'mutation { triggerPipeline { run { id } } }',
    ]) {
      expect(await graphql(app, query)).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
      });
    }
  });

  it('artifacts lists the outputs of the stages; run_id and runId are the same', async () => {
    const app = await world.gateway();
    const id = await endedRun(world, { version: '1.2', commit: 'abc' });
    const artifacts = [
      { stage: 'build', key: 'version', value: '1.2' },
      { stage: 'build', key: 'commit', value: 'abc' },
    ];
    expect((await graphql(app, `{ artifacts(run_id: "${id}") { stage key value } }`)).data).toEqual({ artifacts });
    expect((await graphql(app, `{ artifacts(runId: "${id}") { stage key value } }`)).data).toEqual({ artifacts });
    const of = async (stage: string): Promise<unknown> =>
      (await graphql(app, `{ artifacts(runId: "${id}", stage: "${stage}") { stage key value } }`)).data;
    expect([await of('build'), await of('other')]).toEqual([{ artifacts }, { artifacts: [] }]);
    expect((await graphql(app, `{ artifacts(run_id: "${runIdFor()}") { stage key value } }`)).data).toEqual({
      artifacts: [],
    });
    expect(
      (
        await graphql(
          app,
          `
            {
              artifacts(run_id: "a", runId: "b") {
                key
              }
            }
          `,
        )
      ).errors[0]?.extensions['code'],
    ).toBe('BAD_USER_INPUT');
  });
});

describe('the same question again', () => {
  const QUESTION = '{ runs(limit: 3) { id status } pipelineHealth(pipelineName: "demo") { totalRuns } }';

  it('P22: is answered as it was, and anew as soon as something is committed', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    const first = await graphql(app, QUESTION);
    const ask = async (): Promise<[unknown, number]> => {
      const before = world.owner.asked.length;
      const { data } = await graphql(app, QUESTION);
      return [data, world.owner.asked.length - before];
    };
    expect((await ask())[0]).toEqual(first.data);
    // One short question to each partition, and nothing else.
    expect(await ask()).toEqual([first.data, PARTITIONS]);
    world.owner.commit(id, [happened.queued('build'), happened.started('build')], { silently: true });
    expect((await ask())[0]).toMatchObject({ runs: [{ id, status: 'RUNNING' }, {}, {}] });
    const later = runIdFor();
    world.owner.adopt(later, YAML);
    expect((await ask())[0]).toMatchObject({ runs: [{ id: later }, { id }, {}] });
  });

  it('is answered to nobody else with it', async () => {
    const app = await world.gateway();
    const id = runIdFor('user/ada');
    world.owner.adopt(id, YAML, 'user/ada');
    const question = 'query ($id: String) { run(id: $id) { id } runs(limit: 100) { id } }';
    const ask = async (token: string): Promise<unknown> =>
      (await graphql(app, question, { variables: { id }, token })).data?.['run'];
    const ada = (await world.auth.login('ada')).token;
    for (let count = 0; count < 3; count++) {
      expect(await ask(ada)).toEqual({ id });
      expect(await ask(API_KEY)).toBeNull();
      expect(await ask((await world.auth.login('eve')).token)).toBeNull();
    }
  });
});

describe('pipelineHealth', () => {
  const HEALTH =
    'pipelineName totalRuns succeeded failed interrupted successRate flakyStages stages { name runs failures avgDurationSecs flaky }';

  it('counts the window of a name, running runs among the total', async () => {
    const app = await world.gateway();
    const yaml = YAML.replace('demo', 'health-demo');
    const end = async (status: 'SUCCESS' | 'FAILED', reason?: 'runner_lost'): Promise<void> => {
      const id = runIdFor('service/health-demo');
      world.owner.adopt(id, yaml);
      const failure = { status: 'FAILED', reason: reason ?? 'exit' } as const;
      world.owner.commit(id, [
        happened.queued('build'),
        happened.started('build'),
        happened.completed('build', 0, status === 'FAILED' ? failure : {}),
      ]);
      world.owner.commit(
        id,
        status === 'FAILED'
          ? [happened.skipped('test')]
          : [happened.queued('test'), happened.started('test'), happened.completed('test')],
      );
      world.owner.commit(id, [
        {
          type: 'run_completed',
          at: Date.now(),
          status,
          ...(reason === undefined ? {} : { outcome: 'interrupted' as const }),
        },
      ]);
      await world.owner.project(id);
    };
    await end('SUCCESS');
    await end('FAILED');
    await end('FAILED', 'runner_lost');
    world.owner.adopt(runIdFor('service/health-demo'), yaml);
    world.owner.adopt(runIdFor(), YAML);
    expect(
      (await graphql(app, `{ pipelineHealth(pipelineName: "health-demo") { ${HEALTH} } }`)).data?.['pipelineHealth'],
    ).toMatchObject({
      pipelineName: 'health-demo',
      totalRuns: 4,
      succeeded: 1,
      failed: 1,
      interrupted: 1,
      successRate: 1 / 3,
      flakyStages: ['build'],
      stages: [
        { name: 'build', runs: 3, failures: 2, flaky: true },
        { name: 'test', runs: 1, failures: 0, flaky: false },
      ],
    });
    expect(
      (await graphql(app, '{ pipelineHealth(pipelineName: "health-demo", limit: 2) { totalRuns } }')).data,
    ).toEqual({ pipelineHealth: { totalRuns: 2 } });
  });

  it('an unknown name gives zeros, not null', async () => {
    const app = await world.gateway();
    expect(
      (await graphql(app, `{ pipelineHealth(pipelineName: "nobody") { ${HEALTH} } }`)).data?.['pipelineHealth'],
    ).toEqual({
      pipelineName: 'nobody',
      totalRuns: 0,
      succeeded: 0,
      failed: 0,
      interrupted: 0,
      successRate: 0,
      flakyStages: [],
      stages: [],
    });
    for (const name of ['', '\0', 'x'.repeat(100_000), '\ud800', "'; DROP TABLE runs"]) {
      expect(
        await graphql(app, 'query ($name: String) { pipelineHealth(pipelineName: $name) { totalRuns } }', {
          variables: { name },
        }),
      ).toMatchObject({ data: { pipelineHealth: { totalRuns: 0 } }, errors: [] });
    }
  });
});

describe('validatePipeline', () => {
  const VALIDATE =
    'query ($yaml: String) { validatePipeline(yaml: $yaml) { valid diagnostics { line column message suggestion } } }';

  it('says of a file what a trigger would, and makes no run', async () => {
    const app = await world.gateway();
    const before = world.owner.created.length;
    const good = await graphql(app, VALIDATE, { variables: { yaml: YAML } });
    expect(good.data).toEqual({ validatePipeline: { valid: true, diagnostics: [] } });
    const bad = await graphql(app, VALIDATE, {
      variables: { yaml: 'pipeline: {name: p}\nstages:\n  a: {run: x, aftr: b}\n' },
    });
    expect(bad.data).toEqual({
      validatePipeline: {
        valid: false,
        diagnostics: [
          { line: 3, column: 15, message: "unknown key 'aftr' in stage 'a'", suggestion: "did you mean 'after'?" },
        ],
      },
    });
    expect(world.owner.created.length).toBe(before);
  });

  it('tells what a file would run, a matrix in full and by its name where others come after it', async () => {
    const app = await world.gateway();
    const planned = async (yaml: string): Promise<unknown> => {
      const query = 'query ($yaml: String) { validatePipeline(yaml: $yaml) { stages { name after } } }';
      const { data } = await graphql(app, query, { variables: { yaml } });
      return (data?.['validatePipeline'] as { stages?: unknown } | undefined)?.stages;
    };
    const file =
      'pipeline: {name: p}\nstages:\n  t: {matrix: {n: [1, 2]}, run: x}\n  d: {after: t, run: x}\n  l: {run: x}\n';
    expect(await planned(file)).toEqual([
      { name: 't (n=1)', after: [] },
      { name: 't (n=2)', after: [] },
      { name: 'd', after: ['t'] },
      { name: 'l', after: [] },
    ]);
    expect(await planned('pipeline: {name: p}\nstages:\n  a: {rum: x}\n')).toEqual([]);
    const many = `[${Array.from({ length: 250 }, (_, index) => index).join(', ')}]`;
    const crossed = `pipeline: {name: p}\nstages:\n  a: {matrix: {n: ${many}}, run: x}\n  b: {after: a, matrix: {n: ${many}}, run: x}\n`;
    expect(await planned(crossed)).toContainEqual({ name: 'b (n=1)', after: null });
  });

  it('is for whoever may read: a caller without a token is UNAUTHENTICATED where reading is not public', async () => {
    const app = await world.gateway({ publicRead: false });
    const { errors } = await graphql(app, VALIDATE, { token: null, variables: { yaml: YAML } });
    expect(errors).toMatchObject([{ extensions: { code: 'UNAUTHENTICATED' } }]);
  });

  it('without a file is BAD_USER_INPUT', async () => {
    const app = await world.gateway();
    expect((await graphql(app, VALIDATE)).errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });
});

describe('what cannot be answered truthfully', () => {
  it('P4: an answer from a lower epoch than one seen before does not count', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.epoch = 5;
    await graphql(app, `{ run(id: "${id}") { status } }`);
    world.owner.epoch = 4;
    const asked = world.owner.asked.length;
    const answer = graphql(app, `{ run(id: "${id}") { status } }`);
    await expect.poll(() => world.owner.asked.length).toBeGreaterThan(asked + 1);
    world.owner.epoch = 5;
    expect((await answer).data).toEqual({ run: { status: 'PENDING' } });
  });

  it('P4: a cancel that was decided by an owner before the present one is no conflict', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.epoch = 5;
    await graphql(app, `{ run(id: "${id}") { status } }`);
    world.owner.epoch = 4;
    const answer = graphql(app, `mutation { cancelPipeline(id: "${id}") { run { status } } }`);
    await expect.poll(() => world.owner.asked).toContain('cancel');
    world.owner.epoch = 5;
    expect((await answer).data).toEqual({ cancelPipeline: { run: { status: 'CANCELLED' } } });
  });

  it('with the owner away an ended run is answered from the store, any other is UNAVAILABLE with retryAfter', async () => {
    const app = await world.gateway({ ownerMsMax: 300 });
    const ended = await endedRun(world);
    const live = runIdFor();
    world.owner.adopt(live, YAML);
    await world.owner.project(live, { keep: true });
    await world.owner.leave();
    expect((await graphql(app, `{ run(id: "${ended}") { status } }`)).data).toEqual({ run: { status: 'FAILED' } });
    for (const answer of await Promise.all([
      graphql(app, `{ run(id: "${live}") { status } }`),
      graphql(app, '{ runs { id } }'),
    ])) {
      expect(answer).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'UNAVAILABLE', retryAfter: expect.any(Number) } }],
      });
    }
  });

  it('with the store away a live run is answered by its owner, any other is UNAVAILABLE', async () => {
    const { StoreUnavailable } = await import('@penstock/store');
    const away = (): Promise<never> => Promise.reject(new StoreUnavailable('test', 'away'));
    const app = await world.gateway({ runs: { get: away, view: away, page: away } as never });
    const live = runIdFor();
    world.owner.adopt(live, YAML);
    expect((await graphql(app, `{ run(id: "${live}") { status } }`)).data).toEqual({ run: { status: 'PENDING' } });
    for (const query of [`{ run(id: "${runIdFor()}") { id } }`, '{ runs { id } }'])
      expect((await graphql(app, query)).errors[0]?.extensions['code']).toBe('UNAVAILABLE');
  });

  it("an internal error's message tells the client nothing but a correlation id; the log has the causes", async () => {
    const logged: Record<string, unknown>[] = [];
    const log = {
      ...silentLog,
      error: (fields: Record<string, unknown>) => void logged.push(fields),
    };
    const broken = (): Promise<never> => Promise.reject(new Error('secret detail at /some/path'));
    const app = await world.gateway({ log, runs: { get: broken, view: broken, page: broken } as never });
    const { status, errors } = await graphql(app, `{ run(id: "${runIdFor()}") { id } }`);
    expect(status).toBe(200);
    expect(errors[0]?.extensions['code']).toBe('INTERNAL_SERVER_ERROR');
    expect(JSON.stringify(errors)).not.toContain('secret detail');
    const id = errors[0]?.extensions['correlationId'] as string;
    expect(errors[0]?.message).toContain(id);
    expect(logged).toMatchObject([
      { correlationId: id, err: { message: expect.stringContaining('secret detail') as unknown } },
    ]);
  });
});
