/**
 * `npm run single:k8s -- --lab <folder> [--only push,rollout,broker,drain] [--keep] [--there]`: `k8s/overlays/single` on a lab, with images
 * that `images.sh` has made. `--keep` leaves it there, `--there` takes what was left.
 *
 * A push to a repository there, told by a webhook, is a finished run; runners come by what waits, as KEDA's query has it, and go again; a
 * rolling restart of the services under load fails no request; and neither that nor a restart of the broker nor a node's drain loses a
 * run. Ends with 1 where one of that does not hold.
 */
import { execFileSync } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pause } from '@penstock/async';
import { kubectl, type LabPlace } from '../lab-faults.ts';
import {
  GIT_HOST,
  install,
  installationOf,
  NAMESPACE,
  rolledOut,
  SERVICES,
  uninstall,
  untilReady,
} from './installation.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: { lab: text, only: text, keep: { type: 'boolean' }, there: { type: 'boolean' } },
});
if (values.lab === undefined) throw new Error('--lab names the folder of the lab');
const address = Object.values(networkInterfaces())
  .flat()
  .find((each) => each?.family === 'IPv4' && !each.internal && !each.address.startsWith('10.244.'))?.address;
const lab: LabPlace = {
  folder: values.lab,
  run: join(values.lab, 'run'),
  env: { KWOK: '0', BIND: '0.0.0.0', ADVERTISE: address ?? '', REGISTRY: '1' },
};
const PARTS = ['push', 'rollout', 'broker', 'drain'] as const;
const parts = PARTS.filter((part) => values.only === undefined || values.only.split(',').includes(part));

const REQUEST_MS_MAX = 30_000;
const RUN_MS_MAX = 8 * 60_000;
/** Of one runner, as KEDA's threshold says. */
const SLOTS = 8;
const RUNNERS_MAX = 2;
const LOAD_EVERY_MS = 400;
/** A drain goes on for so long, whatever budgets hold up. */
const DRAIN_MS = 20_000;

const FILE = `pipeline: {name: site}
stages:
  build:
    run: test -f page && echo built
    retry: {max: 5, on: [lost]}
  test:
    after: build
    run: echo tested
    retry: {max: 5, on: [lost]}
`;
const PIPELINE = FILE.replace('test -f page && ', 'sleep 2; ').replace('site', 'load');
const START = 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }';

let violations = 0;
const say = (line: string): void => void process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
const demand = (holds: boolean, line: string): void => {
  if (!holds) violations += 1;
  say(`${holds ? 'holds' : 'DOES NOT HOLD'}: ${line}`);
};

const begun = Date.now();
if (values.there !== true) {
  await uninstall(lab);
  await install(lab);
}
const { apiKey, webhookSecret, authority } = installationOf(lab);
try {
  await untilReady(lab);
  say(`every service is ready after ${seconds(begun)} s`);
  const gateway = await addressOf('gateway');
  const ingest = await addressOf('webhook-ingest');
  if (parts.includes('push')) await push(gateway, ingest);
  if (parts.some((part) => part !== 'push')) await scale(RUNNERS_MAX);
  if (parts.includes('rollout'))
    await underLoad(gateway, 'a rolling restart of the services', true, async () => {
      await Promise.all(
        SERVICES.map(async (each) => {
          await kubectl(lab, ['-n', NAMESPACE, 'rollout', 'restart', `deployment/${each}`]);
          await rolledOut(lab, `deployment/${each}`);
        }),
      );
    });
  if (parts.includes('broker'))
    await underLoad(gateway, 'a restart of the broker', false, async () => {
      await kubectl(lab, ['-n', NAMESPACE, 'delete', 'pod', 'nats-0', '--wait=false']);
      await pause(3_000);
      await rolledOut(lab, 'statefulset/nats');
    });
  if (parts.includes('drain')) await underLoad(gateway, 'a drain of the node', false, drain);
} catch (error) {
  violations += 1;
  say(String(error instanceof Error ? error.stack : error));
} finally {
  if (values.keep !== true) await uninstall(lab);
}
process.exitCode = violations === 0 ? 0 : 1;

/** From none to some to none: by what KEDA asks for. */
async function push(gateway: string, ingest: string): Promise<void> {
  const commit = await pushCommit();
  const body = JSON.stringify({
    ref: 'refs/heads/main',
    after: commit,
    repository: { full_name: 'acme/site', clone_url: `https://${GIT_HOST}/acme/site.git`, default_branch: 'main' },
    head_commit: { id: commit, message: 'a page' },
    commits: [],
  });
  const pushed = Date.now();
  const { status, body: answer } = await call(`${ingest}/webhook`, {
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${createHmac('sha256', webhookSecret).update(body).digest('hex')}`,
    body,
  });
  const id = (JSON.parse(answer) as { run_id?: string }).run_id;
  demand(status === 200 && typeof id === 'string', `the webhook is answered: ${status} ${answer.slice(0, 300)}`);
  if (typeof id !== 'string') return;
  let most = 0;
  let ended = await statusOf(gateway, id);
  const deadline = Date.now() + RUN_MS_MAX;
  while (!isOver(ended.status) && Date.now() < deadline) {
    most = Math.max(most, await scaleByQuery());
    await pause(1_000);
    ended = await statusOf(gateway, id);
  }
  demand(ended.status === 'SUCCESS', `the push is a finished run after ${seconds(pushed)} s: ${JSON.stringify(ended)}`);
  while ((await scaleByQuery()) > 0 && Date.now() < deadline) await pause(1_000);
  await untilNoRunner(deadline);
  const left = await kubectl(lab, ['-n', 'penstock-stages', 'get', 'pods', '-o', 'name']);
  demand(most > 0 && left.trim() === '', `runners went from 0 to ${most} to 0, and no stage's Pod is left`);
}

async function pushCommit(): Promise<string> {
  await kubectl(lab, ['-n', 'penstock-git', 'rollout', 'status', 'deployment/git', '--timeout=50s']);
  const pod = await kubectl(lab, [
    '-n',
    'penstock-git',
    'get',
    'pods',
    '-l',
    'app=git',
    '-o',
    'jsonpath={.items[0].status.podIP}',
  ]);
  const folder = join(lab.folder, 'single', 'site');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const git = (...words: string[]): string =>
    execFileSync('git', ['-C', folder, '-c', 'user.name=lab', '-c', 'user.email=lab@example.org', ...words], {
      encoding: 'utf8',
      env: { ...process.env, GIT_SSL_CAINFO: authority },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    }).trim();
  git('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(folder, '.pipeline.yaml'), FILE);
  writeFileSync(join(folder, 'page'), 'a page\n');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'a page');
  const resolve = `http.curloptResolve=${GIT_HOST}:8443:${pod.trim()}`;
  git('-c', resolve, 'push', '--quiet', '--force', `https://${GIT_HOST}:8443/acme/site.git`, 'HEAD:refs/heads/main');
  return git('rev-parse', 'HEAD');
}

/** Runs are started and looked at all the while; each that was accepted is to succeed. */
async function underLoad(
  gateway: string,
  what: string,
  mayNotFail: boolean,
  disturb: () => Promise<void>,
): Promise<void> {
  const accepted: string[] = [];
  const failures: string[] = [];
  let requests = 0;
  let isEnough = false;
  const ask = async (run: () => Promise<void>): Promise<void> => {
    requests += 1;
    await run().catch((error: unknown) => failures.push(error instanceof Error ? error.message : String(error)));
  };
  const asking: Promise<void>[] = [];
  const load = (async (): Promise<void> => {
    for (let count = 0; !isEnough; count += 1) {
      const started = accepted.at(-1);
      if (count % 5 === 0 || started === undefined)
        asking.push(
          ask(async () => {
            const { triggerPipeline } = await graphql<{ triggerPipeline: { run: { id: string } } }>(gateway, START, {
              yaml: PIPELINE,
            });
            accepted.push(triggerPipeline.run.id);
          }),
        );
      else asking.push(ask(async () => void (await statusOf(gateway, started))));
      await pause(LOAD_EVERY_MS);
    }
  })();
  await pause(5_000);
  const from = Date.now();
  await disturb();
  const tookSecs = seconds(from);
  await pause(3_000);
  isEnough = true;
  await load;
  await Promise.all(asking);
  const lost: string[] = [];
  for (const id of accepted) {
    const { status, stages } = await untilEnded(gateway, id);
    if (status !== 'SUCCESS') lost.push(`${id} ${status} ${JSON.stringify(stages)}`);
  }
  if (mayNotFail)
    demand(
      failures.length === 0,
      `${what} (${tookSecs} s) fails none of ${requests} requests ${failures.slice(0, 5).join('; ')}`,
    );
  else say(`${what} (${tookSecs} s): ${failures.length} of ${requests} requests failed meanwhile`);
  demand(
    accepted.length > 0 && lost.length === 0,
    `${what} loses none of ${accepted.length} runs ${lost.slice(0, 5).join('; ')}`,
  );
}

/** One after the other, as the budgets let them go; what has no node waits until this one is given back. */
async function drain(): Promise<void> {
  await kubectl(lab, ['cordon', 'node-0']);
  const deadline = Date.now() + DRAIN_MS;
  let refused = 0;
  const evicted = new Set<string>();
  try {
    while (Date.now() < deadline) {
      const names = (await kubectl(lab, ['-n', NAMESPACE, 'get', 'pods', '-o', 'name'])).split('\n').filter(Boolean);
      for (const name of names.map((each) => each.replace('pod/', '')).filter(isDrained(evicted))) {
        const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
        const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
        await kubectl(lab, ['create', '--raw', path, '-f', '-'], JSON.stringify(eviction)).then(
          () => evicted.add(name),
          () => (refused += 1),
        );
      }
      await pause(1_000);
    }
  } finally {
    await kubectl(lab, ['uncordon', 'node-0']);
  }
  say(`the drain ended ${evicted.size} Pods; budgets held ${refused} times`);
  await untilReady(lab);
  await rolledOut(lab, 'statefulset/runner');
}

/** All but the database: the lab's has everything in memory. */
function isDrained(evicted: ReadonlySet<string>): (name: string) => boolean {
  return (name) => !evicted.has(name) && name !== 'mongodb-0';
}

/** What KEDA asks of Prometheus, asked of the services themselves. */
async function scaleByQuery(): Promise<number> {
  const waiting = await sumOf('scheduler', /^penstock_queue_demand(?:\{[^}]*\})? ([\d.e+]+)$/gm);
  const busy = await sumOf('runner', /^penstock_runner_slots\{[^}]*state="busy"[^}]*\} ([\d.e+]+)$/gm);
  const replicas = Math.min(RUNNERS_MAX, Math.ceil((waiting + busy) / SLOTS));
  await kubectl(lab, ['-n', NAMESPACE, 'scale', 'statefulset/runner', `--replicas=${replicas}`]);
  return replicas;
}

async function sumOf(service: string, figure: RegExp): Promise<number> {
  const words = ['-l', `app.kubernetes.io/name=${service}`, '-o', 'jsonpath={.items[*].status.podIP}'];
  const ips = (await kubectl(lab, ['-n', NAMESPACE, 'get', 'pods', ...words])).split(' ').filter(Boolean);
  const pages = await Promise.all(ips.map((ip) => call(`http://${ip}:9090/metrics`, {}).catch(() => ({ body: '' }))));
  return pages.flatMap(({ body }) => [...body.matchAll(figure)]).reduce((sum, [, value]) => sum + Number(value), 0);
}

async function scale(replicas: number): Promise<void> {
  await kubectl(lab, ['-n', NAMESPACE, 'scale', 'statefulset/runner', `--replicas=${replicas}`]);
  await rolledOut(lab, 'statefulset/runner');
}

async function untilNoRunner(deadline: number): Promise<void> {
  const words = ['-n', NAMESPACE, 'get', 'pods', '-l', 'app.kubernetes.io/name=runner', '-o', 'name'];
  while ((await kubectl(lab, words)).trim() !== '' && Date.now() < deadline) await pause(1_000);
}

async function addressOf(service: string): Promise<string> {
  const ip = await kubectl(lab, ['-n', NAMESPACE, 'get', 'service', service, '-o', 'jsonpath={.spec.clusterIP}']);
  return `http://${ip.trim()}:8080`;
}

interface RunState {
  readonly status: string;
  readonly stages?: unknown;
}

async function statusOf(gateway: string, id: string): Promise<RunState> {
  const query = 'query ($id: String!) { run(id: $id) { status stages { name status reason } } }';
  const data = await graphql<{ run: RunState | null }>(gateway, query, { id });
  return data.run ?? { status: 'NOT THERE' };
}

function isOver(status: string): boolean {
  return !['PENDING', 'QUEUED', 'RUNNING', 'NOT THERE'].includes(status);
}

async function untilEnded(gateway: string, id: string): Promise<RunState> {
  const deadline = Date.now() + RUN_MS_MAX;
  let state: RunState = { status: 'not asked yet' };
  while (Date.now() < deadline) {
    state = await statusOf(gateway, id).catch((error: unknown) => ({ status: 'NOT THERE', stages: String(error) }));
    if (isOver(state.status)) break;
    await pause(500);
  }
  return state;
}

async function graphql<T>(gateway: string, query: string, variables: unknown): Promise<T> {
  const { status, body } = await call(`${gateway}/graphql`, {
    authorization: `Bearer ${apiKey}`,
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = JSON.parse(body) as { data: T; errors?: unknown };
  if (status !== 200 || errors !== undefined) throw new Error(`status ${status}: ${body.slice(0, 300)}`);
  return data;
}

/** A connection of its own for each, as from clients that come anew. */
function call(
  url: string,
  { body, ...headers }: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        agent: new Agent({ keepAlive: false }),
        timeout: REQUEST_MS_MAX,
      },
      (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString('utf8') }),
        );
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${REQUEST_MS_MAX} ms`)));
    sent.on('error', reject);
    sent.end(body);
  });
}

function seconds(since: number): number {
  return Math.round((Date.now() - since) / 1_000);
}
