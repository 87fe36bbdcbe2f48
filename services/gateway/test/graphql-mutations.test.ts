/** Runs that are begun and cancelled by GraphQL. */
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FileRequest, RepositoryFile } from '@penstock/bus';
import { newRunId, runIdFitsKey } from '@penstock/run';
import { answerCalls } from '@penstock/service';
import { endedRun, graphql, happened, makeWorld, RUN_FIELDS, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u;
const ISO_MS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u;

describe('triggerPipeline', () => {
  const TRIGGER = `mutation ($yaml: String!, $wait: Int, $runId: String) {
    triggerPipeline(yaml: $yaml, waitSeconds: $wait, runId: $runId) { run { ${RUN_FIELDS} } summary { passed failed skipped } }
  }`;
  const finish = (id: string): void => {
    world.owner.commit(id, [
      happened.queued('build'),
      happened.started('build'),
      happened.completed('build', 0, { status: 'FAILED', reason: 'exit', exitCode: 1 }),
      happened.skipped('test'),
      happened.runCompleted('FAILED'),
    ]);
  };

  it('waits for the end of the run and answers with it and the summary of its stages', async () => {
    const app = await world.gateway();
    world.owner.onCreate = (id) => setImmediate(() => finish(id));
    const { data, errors } = await graphql(app, TRIGGER, { variables: { yaml: YAML } });
    expect(errors).toEqual([]);
    expect(data?.['triggerPipeline']).toMatchObject({
      run: {
        id: expect.stringMatching(UUID_V7),
        pipelineName: 'demo',
        status: 'FAILED',
        finishedAt: expect.stringMatching(ISO_MS),
      },
      summary: { passed: 0, failed: 1, skipped: 1 },
    });
  });

  describe('inputs', () => {
    const FILE = `pipeline: {name: release}
inputs:
  version: {type: string, required: true}
  target: {type: choice, options: [staging, production], default: staging}
stages: {a: {run: 'true'}}`;
    const START = `mutation ($yaml: String, $inputs: [KeyValueInput!]) {
      triggerPipeline(yaml: $yaml, inputs: $inputs, waitSeconds: 0) { run { id inputs { key value } } }
    }`;

    it('are handed to the owner as they are given, and shown with the run', async () => {
      const app = await world.gateway();
      const inputs = [{ key: 'version', value: '$(id)' }];
      const { data, errors } = await graphql(app, START, { variables: { yaml: FILE, inputs } });
      expect(errors).toEqual([]);
      expect(world.owner.created.at(-1)?.inputs).toEqual([['version', '$(id)']]);
      expect(data?.['triggerPipeline']).toMatchObject({
        run: {
          inputs: [
            { key: 'version', value: '$(id)' },
            { key: 'target', value: 'staging' },
          ],
        },
      });
    });

    it.each([
      [[], "the input 'version' is required"],
      [[{ key: 'verzion', value: '1' }], "no input 'verzion'"],
      [
        [
          { key: 'version', value: '1' },
          { key: 'target', value: 'prod' },
        ],
        "the input 'target' must be one of",
      ],
      [[{ key: 'verson', value: '1' }], /did you mean 'version'\?$/u],
      [
        [
          { key: 'version', value: '1' },
          { key: 'version', value: '2' },
        ],
        "the input 'version' is given twice",
      ],
    ])('%j are BAD_USER_INPUT that names the one at fault, and make no run', async (inputs, message) => {
      const app = await world.gateway();
      const before = world.owner.created.length;
      // Twice: the second time the file is known.
      for (let time = 0; time < 2; time++) {
        const { errors } = await graphql(app, START, { variables: { yaml: FILE, inputs } });
        expect(errors).toMatchObject([
          { message: expect.stringMatching(message), extensions: { code: 'BAD_USER_INPUT' } },
        ]);
      }
      expect(world.owner.created.length).toBe(before);
    });

    it('are an empty list where the file declares none', async () => {
      const app = await world.gateway();
      const { data } = await graphql(app, START, { variables: { yaml: YAML } });
      expect(data?.['triggerPipeline']).toMatchObject({ run: { inputs: [] } });
    });
  });

  it('P20: an end that is committed before the create is answered is not missed', async () => {
    const app = await world.gateway();
    world.owner.onCreate = finish;
    const { data } = await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 300 } });
    expect(data?.['triggerPipeline']).toMatchObject({ run: { status: 'FAILED' } });
  });

  it('P20: an end whose event was lost is learned from the next owner', async () => {
    const app = await world.gateway();
    world.owner.onCreate = (id) =>
      setImmediate(() => {
        world.owner.commit(
          id,
          [
            happened.queued('build'),
            happened.started('build'),
            happened.completed('build'),
            happened.skipped('test'),
            happened.runCompleted(),
          ],
          { silently: true },
        );
        world.owner.epoch += 1;
        world.owner.announce();
      });
    const { data } = await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 300 } });
    expect(data?.['triggerPipeline']).toMatchObject({ run: { status: 'SUCCESS' } });
  });

  it('with waitSeconds 0 it answers as soon as the run is durable', async () => {
    const app = await world.gateway();
    const { data } = await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0 } });
    expect(data?.['triggerPipeline']).toMatchObject({
      run: { status: 'PENDING', finishedAt: null },
      summary: { passed: 0, failed: 0, skipped: 0 },
    });
  });

  it('after waitSeconds it answers with the run as it then stands', async () => {
    const app = await world.gateway({ triggerWaitSecs: 0.05 });
    world.owner.onCreate = (id) =>
      setImmediate(() => world.owner.commit(id, [happened.queued('build'), happened.started('build')]));
    const { data } = await graphql(app, TRIGGER, { variables: { yaml: YAML } });
    expect(data?.['triggerPipeline']).toMatchObject({ run: { status: 'RUNNING' } });
  });

  it('who hangs up before it is known who asks takes no place of those that wait', async () => {
    const app = await world.gateway({ triggerWaitsMax: 1 });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { token } = await world.auth.login('leaving');
    const asked = Promise.withResolvers<void>();
    const hasLeft = Promise.withResolvers<void>();
    world.auth.heldUp = () => {
      asked.resolve();
      return hasLeft.promise;
    };
    app.server.once('request', (_request, response) => response.once('close', hasLeft.resolve));
    const leaving = request(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    });
    leaving.on('error', () => {});
    leaving.end(JSON.stringify({ query: TRIGGER, variables: { yaml: YAML, wait: 300 } }));
    await asked.promise;
    leaving.destroy();
    await hasLeft.promise;
    await expect.poll(() => world.owner.created.length, { timeout: 10_000 }).toBe(1);
    world.owner.onCreate = (id) => setTimeout(() => finish(id), 100);
    await expect
      .poll(async () => (await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 60 } })).data, { timeout: 5_000 })
      .toMatchObject({ triggerPipeline: { run: { status: 'FAILED' } } });
  });

  it('waitSeconds is 0 to 300', async () => {
    const app = await world.gateway();
    for (const wait of [-1, 301])
      expect((await graphql(app, TRIGGER, { variables: { yaml: YAML, wait } })).errors[0]?.extensions['code']).toBe(
        'BAD_USER_INPUT',
      );
    expect(world.owner.created).toEqual([]);
  });

  it('a bad file is BAD_USER_INPUT with every diagnostic in message and extensions, and nothing is created', async () => {
    const app = await world.gateway();
    const yaml = 'pipeline:\n  name: demo\nstages:\n  build:\n    run: make\n    aftr: [x]\n  test:\n    rnu: y\n';
    const { status, data, errors } = await graphql(app, TRIGGER, { variables: { yaml } });
    expect({ status, data }).toEqual({ status: 200, data: null });
    expect(errors[0]?.extensions['code']).toBe('BAD_USER_INPUT');
    expect(errors[0]?.message).toContain('line 6, column 5');
    const diagnostics = errors[0]?.extensions['diagnostics'] as {
      line: number;
      column: number;
      message: string;
      suggestion?: string;
    }[];
    expect(diagnostics.length).toBeGreaterThanOrEqual(2);
    expect(diagnostics[0]).toMatchObject({
      line: 6,
      column: 5,
      message: expect.stringContaining('aftr'),
      suggestion: expect.stringContaining('after'),
    });
    for (const { message } of diagnostics) expect(errors[0]?.message).toContain(message);
    expect(world.owner.created).toEqual([]);
  });

  it('runs triggered with the API key belong to service, keyed by the pipeline name, which their id carries', async () => {
    const app = await world.gateway();
    await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0 } });
    const [request] = world.owner.created;
    expect(request).toMatchObject({ tenant: 'service', key: 'service/demo', yaml: YAML, origin: { kind: 'api' } });
    expect(runIdFitsKey(request?.runId ?? '', 'service/demo')).toBe(true);
  });

  it('repeating with the same runId starts nothing new; an id that does not fit is BAD_USER_INPUT', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    for (let count = 0; count < 2; count++) {
      expect((await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0, runId } })).data).toMatchObject({
        triggerPipeline: { run: { id: runId } },
      });
    }
    const future = newRunId({ now: Date.now() + 3_600_000, key: 'service/demo', random: new Uint8Array(10) });
    for (const [bad, why] of [
      ['x', 'does not fit'],
      [runIdFor('service/other'), 'does not fit'],
      [future, "a time that has not come by this server's clock"],
    ] as const) {
      const [error] = (await graphql(app, TRIGGER, { variables: { yaml: YAML, runId: bad } })).errors;
      expect(error).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' }, message: expect.stringContaining(why) });
    }
  });

  it('a runId that stands for another file of the pipeline, or for other inputs, is refused and shows nothing', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    const declaring = `${YAML}inputs:\n  version:\n    default: a\n`;
    const trigger = async (yaml: string, version?: string) =>
      await graphql(
        app,
        `
          mutation ($yaml: String!, $runId: String, $inputs: [KeyValueInput!]) {
            triggerPipeline(yaml: $yaml, waitSeconds: 0, runId: $runId, inputs: $inputs) {
              run {
                id
              }
            }
          }
        `,
        {
          variables: {
            yaml,
            runId,
            ...(version === undefined ? {} : { inputs: [{ key: 'version', value: version }] }),
          },
        },
      );
    for (const version of [undefined, 'a'])
      expect((await trigger(declaring, version)).data).toEqual({ triggerPipeline: { run: { id: runId } } });
    for (const [yaml, version] of [[YAML], [declaring, 'b']] as const)
      expect(await trigger(yaml, version)).toMatchObject({
        data: null,
        errors: [
          {
            extensions: { code: 'BAD_USER_INPUT' },
            message: expect.stringContaining("leave 'runId' out for a new run"),
          },
        ],
      });
  });

  it('a repeat that cannot learn what the run began with says the runId once more, and the next one answers the run', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    const trigger = async () => await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0, runId } });
    await trigger();
    world.owner.refusals.set('watch', { code: 'UNAVAILABLE', message: 'it moves', retryAfterSecs: 7 });
    expect((await trigger()).errors).toMatchObject([
      { message: 'it moves', extensions: { code: 'UNAVAILABLE', retryAfter: 7, runId } },
    ]);
    world.owner.refusals.clear();
    expect((await trigger()).data).toMatchObject({ triggerPipeline: { run: { id: runId } } });
  });

  it('one that is created, and cannot be read, says its runId', async () => {
    const app = await world.gateway();
    world.owner.hasLetGo = true;
    world.owner.refusals.set('get', { code: 'UNAVAILABLE', message: 'it moves' });
    const { errors } = await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0 } });
    expect(errors).toMatchObject([{ extensions: { code: 'UNAVAILABLE', runId: world.owner.created[0]?.runId } }]);
  });

  it('a repeat whose run is deleted meanwhile is answered with it as it was', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    const trigger = async () => await graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0, runId } });
    await trigger();
    world.owner.beforeWatch = () => world.owner.forget(runId);
    expect(await trigger()).toMatchObject({ data: { triggerPipeline: { run: { id: runId } } }, errors: [] });
  });

  it("another tenant's run under the given id is never shown", async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    world.owner.adopt(runId, YAML, 'u1');
    expect(await graphql(app, TRIGGER, { variables: { yaml: YAML, runId } })).toMatchObject({
      data: null,
      errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
    });
  });

  it("an owner's refusal keeps its code, with retryAfter and runId where it can be repeated", async () => {
    const app = await world.gateway();
    world.owner.refusals.set('create', { code: 'UNAVAILABLE', message: 'too many live runs', retryAfterSecs: 7 });
    const { status, data, errors } = await graphql(app, TRIGGER, { variables: { yaml: YAML } });
    expect({ status, data }).toEqual({ status: 200, data: null });
    expect(errors[0]?.extensions).toMatchObject({
      code: 'UNAVAILABLE',
      retryAfter: 7,
      runId: expect.stringMatching(UUID_V7),
    });
    world.owner.refusals.set('create', { code: 'QUOTA_EXCEEDED', message: 'used up' });
    expect((await graphql(app, TRIGGER, { variables: { yaml: YAML } })).errors[0]?.extensions['code']).toBe(
      'QUOTA_EXCEEDED',
    );
  });

  it('P3: while nobody owns the partition the request is repeated, and reaches the next owner', async () => {
    const app = await world.gateway();
    await world.owner.leave();
    const answer = graphql(app, TRIGGER, { variables: { yaml: YAML, wait: 0 } });
    await world.owner.open();
    expect((await answer).errors).toEqual([]);
  });

  it('priority is for the API key, and reaches the owner', async () => {
    const app = await world.gateway();
    await graphql(
      app,
      'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0, priority: 5) { run { id } } }',
      { variables: { yaml: YAML } },
    );
    expect(world.owner.created[0]?.priority).toBe(5);
  });
});

describe('dispatchPipeline', () => {
  const FILE = `${YAML}inputs:\n  version:\n    default: a\n`;
  const file: RepositoryFile = {
    provider: 'git_host_a',
    repository: 'acme/shop',
    ref: 'refs/heads/main',
    commit: 'c'.repeat(40),
    cloneUrl: 'https://git-host-a.example/acme/shop.git',
    source: '.ci.yaml',
    yaml: FILE,
    extensions: [],
    tenant: 'service',
    key: 'service/demo',
    trusted: true,
  };
  let now: RepositoryFile;
  let ingest: ReturnType<typeof answerCalls>;
  beforeAll(async () => {
    ingest = answerCalls(world.bus, 'webhook-ingest', { file: (_: FileRequest) => now } as Parameters<
      typeof answerCalls
    >[2]);
    await world.bus.flush();
  });
  beforeEach(() => {
    now = file;
  });
  afterAll(() => ingest.stop());

  const dispatch = async (app: Parameters<typeof graphql>[0], runId: string, version?: string) =>
    await graphql(
      app,
      `
        mutation ($runId: String, $inputs: [KeyValueInput!]) {
          dispatchPipeline(
            provider: "git_host_a"
            repository: "acme/shop"
            ref: "main"
            waitSeconds: 0
            runId: $runId
            inputs: $inputs
          ) {
            run {
              id
            }
          }
        }
      `,
      { variables: { runId, ...(version === undefined ? {} : { inputs: [{ key: 'version', value: version }] }) } },
    );

  it('repeated it answers with its run wherever the branch has moved, with other inputs it is refused', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    expect((await dispatch(app, runId)).errors).toEqual([]);
    now = { ...file, commit: 'd'.repeat(40), yaml: FILE.replace('default: a', 'default: b') };
    for (const version of [undefined, 'a'])
      expect((await dispatch(app, runId, version)).data).toEqual({ dispatchPipeline: { run: { id: runId } } });
    expect(await dispatch(app, runId, 'b')).toMatchObject({
      data: null,
      errors: [
        { extensions: { code: 'BAD_USER_INPUT' }, message: expect.stringContaining("leave 'runId' out for a new run") },
      ],
    });
    expect(world.owner.created).toHaveLength(1);
  });

  it("runs the server's template, which alone knows the push", async () => {
    const app = await world.gateway();
    const yaml = YAML.replace(/run: \S.*$/mu, "run: echo '${{ webhook.repository }}'");
    expect(yaml).toContain('webhook.repository');
    now = { ...file, yaml };
    expect((await dispatch(app, runIdFor())).errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
    now = { ...file, yaml, source: 'server_template' };
    const runId = runIdFor();
    expect((await dispatch(app, runId)).data).toEqual({ dispatchPipeline: { run: { id: runId } } });
    now = { ...file, yaml };
    expect((await dispatch(app, runIdFor())).errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });

  it('with the id of a run that has run one of the repository again it is refused; so is a trigger with that of either', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    await dispatch(app, runId);
    const again = await graphql(app, `mutation { rerunPipeline(id: "${runId}", waitSeconds: 0) { run { id } } }`);
    const { rerunPipeline } = again.data as { readonly rerunPipeline: { readonly run: { readonly id: string } } };
    const rerun = rerunPipeline.run.id;
    const refused = { data: null, errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] };
    expect(await dispatch(app, rerun)).toMatchObject(refused);
    for (const id of [rerun, runId])
      expect(
        await graphql(
          app,
          'mutation ($yaml: String!, $runId: String) { triggerPipeline(yaml: $yaml, waitSeconds: 0, runId: $runId) { run { id } } }',
          { variables: { yaml: FILE, runId: id } },
        ),
      ).toMatchObject(refused);
    expect((await dispatch(app, runId)).data).toEqual({ dispatchPipeline: { run: { id: runId } } });
  });

  it('a repeat of which the run has ended is answered, or refused, while its owner is away', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    await dispatch(app, runId);
    world.owner.commit(runId, [
      happened.queued('build'),
      happened.started('build'),
      happened.completed('build', 0, { status: 'FAILED', reason: 'exit', exitCode: 1 }),
      happened.skipped('test'),
      happened.runCompleted('FAILED'),
    ]);
    await world.owner.project(runId);
    for (const verb of ['get', 'watch']) world.owner.refusals.set(verb, { code: 'UNAVAILABLE', message: 'it moves' });
    expect((await dispatch(app, runId)).data).toEqual({ dispatchPipeline: { run: { id: runId } } });
    expect((await dispatch(app, runId, 'b')).errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });

  it('a repeat of which nobody can say whether there is a run says the runId once more', async () => {
    const app = await world.gateway();
    const runId = runIdFor();
    await dispatch(app, runId);
    for (const verb of ['get', 'watch']) {
      world.owner.refusals.set(verb, { code: 'UNAVAILABLE', message: 'it moves' });
      expect((await dispatch(app, runId)).errors).toMatchObject([{ extensions: { code: 'UNAVAILABLE', runId } }]);
      world.owner.refusals.clear();
    }
    expect((await dispatch(app, runId)).data).toEqual({ dispatchPipeline: { run: { id: runId } } });
  });
});

describe('cancelPipeline', () => {
  const CANCEL =
    'mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages run { id status stages { name status } } } }';

  it('answers with the run already CANCELLED and the count of cancelled stages', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    expect((await graphql(app, CANCEL, { variables: { id } })).data?.['cancelPipeline']).toEqual({
      cancelledStages: 2,
      run: {
        id,
        status: 'CANCELLED',
        stages: [
          { name: 'build', status: 'CANCELLED' },
          { name: 'test', status: 'CANCELLED' },
        ],
      },
    });
  });

  it('a run that has ended is CONFLICT, in its owner’s memory or out of it', async () => {
    const app = await world.gateway();
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.commit(id, [{ type: 'run_cancelled', at: Date.now(), cancelledStages: 2 }]);
    for (const known of [id, await endedRun(world)]) {
      expect(await graphql(app, CANCEL, { variables: { id: known } })).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'CONFLICT' } }],
      });
    }
  });

  it('a run that its owner can do nothing with, for its document is damaged, is told why; of another tenant it is NOT_FOUND', async () => {
    const app = await world.gateway();
    const [id, other] = [runIdFor(), runIdFor('u1')];
    world.owner.adopt(id, YAML);
    world.owner.adopt(other, YAML, 'u1');
    for (const each of [id, other]) await world.owner.project(each);
    world.owner.refusals.set('cancel', { code: 'CONFLICT', message: 'its document in the store is damaged' });
    expect((await graphql(app, CANCEL, { variables: { id } })).errors).toMatchObject([
      {
        message: 'The run cannot be cancelled: its document in the store is damaged.',
        extensions: { code: 'CONFLICT' },
      },
    ]);
    expect((await graphql(app, CANCEL, { variables: { id: other } })).errors).toMatchObject([
      { extensions: { code: 'NOT_FOUND' } },
    ]);
  });

  it("an unknown run, or another tenant's, is NOT_FOUND", async () => {
    const app = await world.gateway();
    const other = runIdFor('u1');
    world.owner.adopt(other, YAML, 'u1');
    for (const id of ['x', runIdFor(), other]) {
      expect(await graphql(app, CANCEL, { variables: { id } })).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'NOT_FOUND' } }],
      });
    }
  });
});
