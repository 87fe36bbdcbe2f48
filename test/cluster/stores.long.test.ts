/** The same run through the public API on every database that Penstock keeps its runs in: services as processes, two schedulers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reportNotRun, startMongoServer } from '../support/mongodb.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';
import type { StoreKind } from './cluster-store.ts';
import { startCluster, type Cluster } from './cluster.ts';

const probe = await startMongoServer();
const hasMongo = !('missing' in probe);
if ('missing' in probe) reportNotRun(`the cluster on a server of MongoDB's protocol: ${probe.missing}`);
else await probe.stop();

const kinds: readonly StoreKind[] = hasMongo ? ['sqlite', 'mongodb'] : ['sqlite'];

describe.each(kinds)('a cluster that keeps its runs in %s', (store) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      store,
      schedulers: 2,
      runners: 1,
      gateways: 1,
      auths: 0,
      registries: 0,
      ingests: 0,
      partitions: 4,
      slots: 3,
    });
    // Every partition is owned: a database that has only just begun is slow to be read from.
    const answers = async (): Promise<boolean> => (await graphql('{ runs(limit: 1) { id } }')).errors === undefined;
    await until('the runs of all partitions are answered', answers, 60_000);
  }, 180_000);
  afterAll(async () => {
    await cluster.stop();
  });

  async function graphql<T>(
    query: string,
    variables: Record<string, unknown> = {},
  ): Promise<{ data: T; errors?: { message: string; extensions: { code: string } }[] }> {
    const response = await fetch(`${cluster.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${cluster.apiKey}` },
      body: JSON.stringify({ query, variables }),
    });
    return (await response.json()) as never;
  }
  const trigger = async (yaml: string, waitSeconds: number): Promise<{ id: string; status: string }> => {
    const answer = await graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(
      'mutation ($yaml: String, $waitSeconds: Int) { triggerPipeline(yaml: $yaml, waitSeconds: $waitSeconds) { run { id status } } }',
      { yaml, waitSeconds },
    );
    if (answer.errors !== undefined) throw new Error(JSON.stringify(answer.errors));
    return answer.data.triggerPipeline.run;
  };
  const statusOf = async (id: string): Promise<string | undefined> =>
    (await graphql<{ run: { status: string } | null }>('query ($id: String) { run(id: $id) { status } }', { id })).data
      .run?.status;

  it('runs, lists, replays the event stream and counts', async () => {
    const good = [
      'pipeline:',
      '  name: stored',
      'stages:',
      '  a:',
      '    run: echo one; echo "v=7" >> "$SERVICE_OUTPUT"',
      '    outputs: [v]',
      '  b:',
      '    after: a',
      '    run: echo "got ${{ stages.a.outputs.v }}"',
    ].join('\n');
    const runs = [
      await trigger(good, 30),
      await trigger('pipeline:\n  name: stored\nstages:\n  a:\n    run: exit 1\n', 30),
    ];
    expect(runs.map(({ status }) => status)).toEqual(['SUCCESS', 'FAILED']);
    const first = runs[0]?.id ?? '';
    const listed = await graphql<{ runs: { id: string }[] }>('{ runs(limit: 2) { id } }');
    expect(listed.data.runs.map(({ id }) => id)).toEqual(runs.map(({ id }) => id).toReversed());
    const { events } = await readStream(`${cluster.url}/pipeline/${first}/logs`, cluster.apiKey);
    expect(events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => line)).toEqual([
      'one',
      'got 7',
    ]);
    const health = await graphql<{ pipelineHealth: unknown }>(
      '{ pipelineHealth(pipelineName: "stored") { totalRuns succeeded failed successRate } }',
    );
    expect(health.data.pipelineHealth).toEqual({ totalRuns: 2, succeeded: 1, failed: 1, successRate: 0.5 });
  });

  it('a cancelled run stays cancelled, and an ended one cannot be cancelled', async () => {
    const { id } = await trigger('pipeline:\n  name: long\nstages:\n  a:\n    run: sleep 600\n', 0);
    await until('the stage runs', async () => (await statusOf(id)) === 'RUNNING');
    const cancel = 'mutation ($id: String) { cancelPipeline(id: $id) { cancelledStages run { status } } }';
    expect((await graphql(cancel, { id })).data).toEqual({
      cancelPipeline: { cancelledStages: 1, run: { status: 'CANCELLED' } },
    });
    expect((await graphql(cancel, { id })).errors?.[0]?.extensions.code).toBe('CONFLICT');
    expect(await statusOf(id)).toBe('CANCELLED');
  });

  it('runs under way outlive the database being away and a killed scheduler; what has ended is there when it is back', async () => {
    const { id } = await trigger(
      'pipeline:\n  name: patient\nstages:\n  a:\n    run: sleep 1\n  b:\n    after: a\n    run: echo done\n',
      0,
    );
    await until('the stage runs', async () => (await statusOf(id)) === 'RUNNING');
    await cluster.store.down();
    await cluster.kill('scheduler', 0);
    await cluster.store.heal();
    await cluster.restart('scheduler', 0);
    await until(
      'the run has ended',
      async () => {
        const status = await statusOf(id).catch(() => undefined);
        return status === 'SUCCESS';
      },
      45_000,
    );
    // A gateway that has heard nothing of it so far.
    await cluster.restart('gateway', 0);
    expect(await statusOf(id)).toBe('SUCCESS');
  }, 90_000);
});
