/** A small cluster as a user starts it: services as processes, seen through the ingress only. */
import { createHash } from 'node:crypto';
import { PART_BYTES } from '@penstock/artifacts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { processesOfFolder } from '../support/orphans.ts';
import { until } from '../support/wait.ts';
import { startCluster, type Cluster } from './cluster.ts';

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster({
    schedulers: 1,
    runners: 1,
    gateways: 1,
    partitions: 4,
    slots: 2,
    envOf: { registry: { SERVICE_CONTENTS_LISTEN: '127.0.0.1:0' } },
  });
});
afterAll(async () => {
  await cluster.stop();
});

const YAML = 'pipeline:\n  name: hello\nstages:\n  greet:\n    run: echo hello\n';

async function graphql(
  query: string,
  variables: Record<string, unknown> = {},
): Promise<{ status: number; retryAfter: string | null; body: { data?: Record<string, unknown> } }> {
  const response = await fetch(`${cluster.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${cluster.apiKey}` },
    body: JSON.stringify({ query, variables }),
  });
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (await response.json()) as never,
  };
}

function runOnce(): ReturnType<typeof graphql> {
  return graphql('mutation ($yaml: String) { triggerPipeline(yaml: $yaml, waitSeconds: 30) { run { status } } }', {
    yaml: YAML,
  });
}

describe('services as processes of their own', () => {
  it('run a pipeline, and each answers /health and /ready on its internal port, and nothing else', async () => {
    expect((await runOnce()).body).toMatchObject({ data: { triggerPipeline: { run: { status: 'SUCCESS' } } } });
    for (const { internalUrl } of cluster.processes) {
      const statuses = await Promise.all(
        ['health', 'ready', 'elsewhere'].map(async (path) => (await fetch(`${internalUrl}/${path}`)).status),
      );
      expect(statuses).toEqual([200, 200, 404]);
    }
  });

  it('auth, webhook-ingest and registry answer for their own paths, under the address that clients know', async () => {
    const post = (path: string, headers: Record<string, string>, body: unknown): Promise<Response> =>
      fetch(`${cluster.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const device = (await (await post('/auth/device', {}, {})).json()) as { verification_uri: string };
    expect(device.verification_uri.startsWith(`${cluster.url}/`)).toBe(true);
    expect(
      await (
        await post('/webhook', { 'x-github-event': 'ping' }, { zen: 'x', repository: { full_name: 'acme/web' } })
      ).json(),
    ).toMatchObject({ accepted: false, status: 'Ignored' });
    const missing = await fetch(`${cluster.url}/registry/packages/${'0'.repeat(64)}`, {
      headers: { authorization: `Bearer ${cluster.apiKey}` },
    });
    expect([missing.status, missing.headers.get('x-content-type-options')]).toEqual([404, 'nosniff']);
    expect((await graphql('{ extensions(query: "checkout") { id } }')).body).toMatchObject({
      data: { extensions: [{ id: 'utility/checkout' }] },
    });
  });

  it('a gateway that listens on a loopback address is in development mode: everybody may read', async () => {
    const response = await fetch(`${cluster.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ runs { pipelineName } }' }),
    });
    expect(await response.json()).toMatchObject({ data: { runs: [{ pipelineName: 'hello' }] } });
  });

  it('a large file is kept, handed on and fetched past the broker', async () => {
    const sizeBytes = 3_000_000;
    const yaml = `pipeline: {name: large}
stages:
  make: {run: 'head -c ${sizeBytes} /dev/urandom > large; sha256sum large > sum', artifacts: [large, sum]}
  take: {run: sha256sum -c sum, after: make, workspace: fresh}
`;
    const { body } = await graphql(
      'mutation ($yaml: String) { triggerPipeline(yaml: $yaml, waitSeconds: 60) { run { id status } } }',
      { yaml },
    );
    const { triggerPipeline } = body.data as {
      readonly triggerPipeline: { readonly run: { readonly id: string; readonly status: string } };
    };
    const { run } = triggerPipeline;
    expect(run.status).toBe('SUCCESS');
    const fetched = async (name: string): Promise<Buffer> => {
      const response = await fetch(`${cluster.url}/pipeline/${run.id}/artifacts/make/${name}`, {
        headers: { authorization: `Bearer ${cluster.apiKey}` },
      });
      return Buffer.from(await response.arrayBuffer());
    };
    const sum = createHash('sha256')
      .update(await fetched('large'))
      .digest('hex');
    expect(String(await fetched('sum'))).toBe(`${sum}  large\n`);
    const figures = await (await fetch(`${cluster.at('registry', 0).internalUrl}/metrics`)).text();
    const moved = (direction: string): number =>
      Number(new RegExp(`penstock_contents_bytes_total\\{direction="${direction}"\\} (\\d+)`).exec(figures)?.[1]);
    expect(moved('in')).toBe(sizeBytes);
    // But for the first part of each, to the runner and to the gateway.
    expect(moved('out')).toBe(2 * (sizeBytes - PART_BYTES));
  }, 120_000);

  it('a killed gateway is 503 with Retry-After at the ingress, and back when it is started again', async () => {
    await cluster.kill('gateway', 0);
    expect(await graphql('{ version }')).toMatchObject({ status: 503, retryAfter: '1' });
    await cluster.restart('gateway', 0);
    expect((await graphql('{ version }')).status).toBe(200);
  });

  it('SIGTERM ends every service with 0, and they come back in any order', async () => {
    for (const service of ['scheduler', 'gateway', 'runner'] as const)
      expect(await cluster.kill(service, 0, 'SIGTERM')).toEqual({ code: 0, signal: null });
    for (const service of ['gateway', 'runner', 'scheduler'] as const) cluster.at(service, 0).start();
    await cluster.ready();
    expect((await runOnce()).body).toMatchObject({ data: { triggerPipeline: { run: { status: 'SUCCESS' } } } });
  });

  it('kill -9 of a runner leaves none of its processes', async () => {
    await cluster.kill('runner', 0);
    const folder = `${cluster.folder}/runner-0`;
    await until('what the runner had started is gone', () => processesOfFolder(folder).length === 0);
    await cluster.restart('runner', 0);
    expect(cluster.at('runner', 0).lives).toBe(true);
  });
});
