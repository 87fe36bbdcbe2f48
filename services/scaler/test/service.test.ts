/** The service as a process, between a cluster and a Prometheus that are HTTP servers of this test. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const MAIN = fileURLToPath(new URL('../../../cli/src/main.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'penstock-scaler-'));

let replicas = 0;
let answer: { readonly status: number; readonly body: string };
let queries: string[] = [];
let refused: string | undefined;
/** Called at each number that is asked for. */
let scaled: (wanted: number) => void = () => {};
let [prometheus, cluster]: (Server | undefined)[] = [];
const services: ChildProcess[] = [];

async function listening(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
const urlOf = (server: Server | undefined): string =>
  `http://127.0.0.1:${(server?.address() as AddressInfo | null)?.port ?? 0}`;
const figure = (value: string): string =>
  JSON.stringify({ status: 'success', data: { resultType: 'vector', result: [{ metric: {}, value: [1, value] }] } });

beforeAll(async () => {
  prometheus = await listening(
    createServer((request, response) => {
      void text(request).then((body) => {
        queries.push(new URLSearchParams(body).get('query') ?? '');
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
      });
    }),
  );
  cluster = await listening(
    createServer((request, response) => {
      void text(request).then((body) => {
        const path = '/apis/apps/v1/namespaces/ci/statefulsets/runner/scale';
        if (request.url?.startsWith(path) !== true || refused !== undefined) {
          response.writeHead(403, { 'content-type': 'application/json' });
          response.end(JSON.stringify({ kind: 'Status', message: refused ?? `not allowed: ${request.url ?? ''}` }));
          return;
        }
        if (request.method === 'PATCH') {
          replicas = (JSON.parse(body) as { spec: { replicas: number } }).spec.replicas;
          scaled(replicas);
        }
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas } }));
      });
    }),
  );
  const kubeconfig = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
    clusters: [{ name: 'test', cluster: { server: urlOf(cluster), 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'test', user: { token: 'of-the-test' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  };
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
});
beforeEach(() => {
  replicas = 0;
  queries = [];
  refused = undefined;
});
afterAll(async () => {
  for (const service of services) if (service.exitCode === null) service.kill('SIGKILL');
  for (const server of [prometheus, cluster]) {
    server?.closeAllConnections();
    server?.close();
  }
  await Promise.all(services.map(async (service) => service.exitCode ?? once(service, 'exit')));
  rmSync(folder, { recursive: true });
});

/** What it has said, until a line of it has these words. */
function started(env: Readonly<Record<string, string>> = {}): {
  readonly says: (words: string) => Promise<string>;
  /** Undefined: it ends by itself. */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
} {
  const service = spawn(process.execPath, [MAIN, 'service', 'scaler'], {
    env: {
      ...{ PATH: process.env['PATH'], HOME: folder, SERVICE_INTERNAL_LISTEN: '127.0.0.1:0' },
      SERVICE_SCALER_PROMETHEUS_URL: urlOf(prometheus),
      SERVICE_SCALER_TARGET: 'ci/statefulset/runner',
      SERVICE_K8S_KUBECONFIG: join(folder, 'kubeconfig'),
      SERVICE_SCALER_COOLDOWN: '0s',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  services.push(service);
  let said = '';
  const waiting = new Map<string, (said: string) => void>();
  const hear = (piece: Buffer): void => {
    said += piece.toString('utf8');
    for (const [words, resolve] of waiting) if (said.includes(words)) resolve(said);
  };
  service.stdout.on('data', hear);
  service.stderr.on('data', hear);
  return {
    says: (words) =>
      new Promise((resolve, reject) => {
        waiting.set(words, resolve);
        if (said.includes(words)) resolve(said);
        service.once('exit', () => (said.includes(words) ? resolve(said) : reject(new Error(said))));
      }),
    end: async (signal) => {
      if (service.exitCode === null) {
        if (signal !== undefined) service.kill(signal);
        await once(service, 'exit');
      }
      return service.exitCode;
    },
  };
}

describe('penstock service scaler', { timeout: 60_000 }, () => {
  it('scales from none to what waits and to none again, without a broker', async () => {
    answer = { status: 200, body: figure('17') };
    const up = new Promise<number>((resolve) => (scaled = resolve));
    const service = started();
    expect(await up).toBe(3);
    expect(queries[0]).toContain('penstock_queue_demand');
    const down = new Promise<number>((resolve) => (scaled = resolve));
    answer = { status: 200, body: figure('0') };
    expect(await down).toBe(0);
    expect(await service.end('SIGTERM')).toBe(0);
  });

  it('keeps the runners where there is no figure, and says why', async () => {
    replicas = 3;
    answer = { status: 200, body: '{"status":"success","data":{"resultType":"vector","result":[]}}' };
    const service = started();
    expect(await service.says('stay as many as they are')).toContain('scrapes no scheduler');
    expect(replicas).toBe(3);
    expect(await service.end('SIGTERM')).toBe(0);
  });

  it('ends where the kubeconfig cannot be read, and shows nothing of it', async () => {
    const file = join(folder, 'broken');
    writeFileSync(file, 'users: [{name: test, user: {token: not-to-be-shown}} {\n');
    const service = started({ SERVICE_K8S_KUBECONFIG: file });
    const said = await service.says('the service cannot go on');
    expect(said).toContain('the kubeconfig cannot be read: ');
    expect(said).not.toContain('not-to-be-shown');
    expect(await service.end()).toBe(1);
  });

  it('says what the cluster refuses', async () => {
    answer = { status: 200, body: figure('17') };
    refused = 'statefulsets.apps "runner" is forbidden';
    const service = started();
    expect(await service.says('stay as many as they are')).toContain('is forbidden');
    await service.end('SIGTERM');
  });

  it('says all that is wrong with its variables, and does not start', async () => {
    const service = started({
      SERVICE_SCALER_PROMETHEUS_URL: '',
      SERVICE_SCALER_TARGET: 'runner',
      SERVICE_SCALER_MIN: '5',
    });
    const said = await service.says('SERVICE_SCALER_MIN is more than SERVICE_SCALER_MAX');
    expect(said).toContain('SERVICE_SCALER_PROMETHEUS_URL is missing');
    expect(said).toContain("is to be '<namespace>/statefulset/<name>'");
    expect(await service.end()).toBe(2);
  });
});
