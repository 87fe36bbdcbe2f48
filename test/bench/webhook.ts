/**
 * What the intake costs: signed pushes of 8 KB accepted durably with a wait of 0, beside a bare route that verifies the
 * signature and publishes the body to the same broker, in turn. Processing stands still meanwhile (its clones never come
 * back): it has the rest of the time, and would count as the intake's work. And from the push of a commit whose repository
 * is mirrored to the first act of its first stage, on an idle server. And, as a benchmark of its own, a whole server that pushes
 * of some repositories come to for a minute, faster than it processes them: what it takes in beside that, and how long another
 * pipeline's trigger takes then.
 */
import { spawn } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as rest } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { connectBus, ensureStreams } from '@penstock/bus';
import { loadTiers } from '@penstock/config';
import { buildServer } from '@penstock/http';
import { silentLog } from '@penstock/telemetry/log';
import { openSqliteStore, runCollections } from '@penstock/store';
import { createLogger } from '@penstock/telemetry';
import { startTestBroker } from '@penstock/testkit';
import { ingestCollections, startWebhookIngest } from '@penstock/webhook-ingest';
import { githubPush, githubSignature, makeRepository } from '@penstock/webhook-ingest/testing';
import fastify from 'fastify';
import { startServer, temporaryFolder, trigger, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { quantile } from './trigger.ts';
import type { WebhookLoad, WebhookPlan } from './webhook-client.ts';

const SECRET = 'a webhook secret';
const PUSH_BYTES = 8 * 1024;
/** As many repositories push: of one alone so many would not be taken in. */
const REPOSITORIES = 200;
const CONNECTIONS = 50;
const LOAD_MS = 3_000;
const REPETITIONS = 5;
const MIB = 1024 * 1024;
const PUSHES = 60;
const REST_MS = 60;
const HELD_MS = 60_000;
/** In a minute more come than may wait of one. */
const HELD_REPOSITORIES = 20;
/** Of the million that may wait in all. */
const HELD_MAX = 980_000;
const TRIGGERS = 40;

export async function benchWebhook(): Promise<string[]> {
  return [...(await benchIntake()), ...(await benchFirstStage())];
}

async function benchIntake(): Promise<string[]> {
  const broker = await startTestBroker({ storeBytesMax: 4 * 1024 * MIB });
  const folder = temporaryFolder('penstock-bench-');
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  await ensureStreams(bus, {
    partitions: 1,
    journalBytesMax: 64 * MIB,
    logsBytesMax: 64 * MIB,
    deliveriesBytesMax: 3 * 1024 * MIB,
  });
  const store = await openSqliteStore({
    path: join(folder.path, 'store.db'),
    collections: [...runCollections, ...ingestCollections],
    synchronous: 'normal',
  });
  const ingest = await startWebhookIngest({
    bus,
    store,
    log: createLogger({ service: 'bench', level: 'warn' }),
    partitions: 1,
    mode: 'development',
    allowedHosts: [],
    jwtSecret: 'x'.repeat(32),
    mirrors: { fetch: () => new Promise(() => {}), findRef: () => Promise.resolve(null) },
    baseUrl: () => '',
    secrets: { git_host_a: SECRET },
    waitSecs: 0,
    tiers: loadTiers(),
    waitingMax: { deliveries: 10_000_000, bytes: Infinity },
  });
  const app = buildServer({ corsOrigins: [], connectionsMax: 1_000, log: silentLog });
  await ingest.addRoutes(app);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const bare = await startBareRoute(broker.url);
  try {
    const pushes = Array.from({ length: REPOSITORIES }, (_, index) => {
      const body = pushText(index);
      return { body, headers: [`X-Hub-Signature-256: ${githubSignature(body, SECRET)}`] };
    });
    const ours: WebhookLoad[] = [];
    const theirs: WebhookLoad[] = [];
    for (let repetition = 0; repetition < REPETITIONS; repetition++) {
      const plan = { pushes, connections: CONNECTIONS, durationMs: LOAD_MS };
      ours.push(await load({ ...plan, port: (app.server.address() as AddressInfo).port }));
      theirs.push(await load({ ...plan, port: bare.port }));
    }
    const [our, their] = [median(ours), median(theirs)];
    return [
      `signed 8 KB pushes accepted durably: ${textOf(our)}; bare route: ${textOf(their)}; ratio ${(our.perSecond / their.perSecond).toFixed(2)} (${CONNECTIONS} connections, median of ${REPETITIONS})`,
    ];
  } finally {
    await app.close();
    await ingest.close();
    await bare.close();
    await store.close();
    await bus.close(0);
    await broker.stop();
    folder.remove();
  }
}

/** Filled up to its size as a real one is: with what people write and with addresses that nobody reads. */
function pushText(index: number): string {
  const payload = githubPush({
    repository: `acme/repository-${index}`,
    url: 'file:///nonexistent',
    commit: 'a'.repeat(40),
    message: 'a change',
    changed: ['src/a.ts', 'src/b.ts', 'README.md'],
  });
  const addresses = Array.from({ length: 60 }, (_, each) => [
    `address_${each}_url`,
    `https://api.example.com/repos/acme/repository-${index}/things{/number}/${each}`,
  ]);
  const whole = {
    ...payload,
    repository: { ...(payload['repository'] as object), ...Object.fromEntries(addresses) },
    filler: '',
  };
  return JSON.stringify({ ...whole, filler: 'x'.repeat(Math.max(0, PUSH_BYTES - JSON.stringify(whole).length)) });
}

async function startBareRoute(url: string): Promise<{ readonly port: number; close(): Promise<void> }> {
  const connection = await connect({ servers: url });
  const store = jetstream(connection);
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  let count = 0;
  app.post('/webhook', async (request, reply) => {
    const body = request.body as Buffer;
    const given = Buffer.from(String(request.headers['x-hub-signature-256']).slice('sha256='.length), 'hex');
    if (!timingSafeEqual(given, createHmac('sha256', SECRET).update(body).digest()))
      return await reply.code(401).send();
    await store.publish(`delivery.bare.${(count += 1)}`, body);
    return { accepted: true };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    port: (app.server.address() as AddressInfo).port,
    close: async () => {
      await app.close();
      await connection.close();
    },
  };
}

async function load(plan: WebhookPlan): Promise<WebhookLoad> {
  const client = spawn(process.execPath, [fileURLToPath(new URL('./webhook-client.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  client.stdin.end(JSON.stringify(plan));
  const lines = createInterface({ input: client.stdout });
  const [line] = (await once(lines, 'line')) as [string];
  await once(client, 'exit');
  return JSON.parse(line) as WebhookLoad;
}

function median(loads: readonly WebhookLoad[]): WebhookLoad {
  return (
    loads.toSorted((a, b) => a.perSecond - b.perSecond)[Math.floor(loads.length / 2)] ?? {
      perSecond: Number.NaN,
      seconds: Number.NaN,
      thirds: [],
      msP50: Number.NaN,
      msP99: Number.NaN,
    }
  );
}

function textOf({ perSecond, msP50, msP99 }: WebhookLoad): string {
  return `${Math.round(perSecond)}/s (p50 ${msP50.toFixed(1)} ms, p99 ${msP99.toFixed(1)} ms)`;
}

/** With its thirds: whether it slows down. */
function heldText(held: WebhookLoad): string {
  return `${textOf(held)}, by thirds ${held.thirds.map((each) => Math.round(each)).join(', ')}`;
}

// --- Beside the processing -------------------------------------------------------------------------------------------

export async function benchBacklog(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const repository = makeRepository();
  const broker = await startTestBroker({ storeBytesMax: 4 * 1024 * MIB });
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  await ensureStreams(bus, {
    partitions: 1,
    journalBytesMax: 64 * MIB,
    logsBytesMax: 64 * MIB,
    deliveriesBytesMax: 3 * 1024 * MIB,
    deliveriesMax: 10_000_000,
  });
  const bare = await startBareRoute(broker.url);
  const server = await startServer({
    env: { SERVICE_WEBHOOK_SECRET: SECRET, SERVICE_WEBHOOK_WAIT_SECS: '0', SERVICE_RATE_LIMIT_WEBHOOK: '0' },
  });
  try {
    const commit = repository.commit({
      '.pipeline.yaml': 'pipeline:\n  name: pushed\nstages:\n  only:\n    run: true\n',
    });
    const pushes = Array.from({ length: HELD_REPOSITORIES }, (_, index) => {
      const names = { repository: `acme/repository-${index}`, url: repository.url };
      const body = JSON.stringify(githubPush({ ...names, commit, message: 'a change' }));
      return { body, headers: [`X-Hub-Signature-256: ${githubSignature(body, SECRET)}`] };
    });
    const triggers = async (): Promise<number> => {
      const took: number[] = [];
      for (let index = 0; index < TRIGGERS; index++) {
        took.push(await triggerToStart(server, folder.path));
        await rest(REST_MS);
      }
      return quantile(took, 0.5);
    };
    const idle = await triggers();
    const plan = { pushes, connections: CONNECTIONS };
    // As long as the other: heaps, the broker's subjects and the disk's caches fill up for both.
    const their = await load({ ...plan, durationMs: HELD_MS, port: bare.port });
    const our = await load({
      ...plan,
      durationMs: HELD_MS,
      pushesMax: HELD_MAX,
      port: Number(new URL(server.url).port),
    });
    const behind = await triggers();
    return [
      `pushes of ${HELD_REPOSITORIES} repositories accepted by a whole server for ${our.seconds.toFixed(0)} s, none refused: ${heldText(our)}; bare route: ${heldText(their)}; ratio ${(our.perSecond / their.perSecond).toFixed(2)}`,
      `another pipeline's trigger to its first act, idle: p50 ${idle.toFixed(1)} ms; with that backlog: p50 ${behind.toFixed(1)} ms`,
    ];
  } finally {
    await server.stop();
    await bare.close();
    await bus.close(0);
    await broker.stop();
    repository.remove();
    folder.remove();
  }
}

// --- To the first stage ----------------------------------------------------------------------------------------------

async function benchFirstStage(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const repository = makeRepository();
  const server = await startServer({
    env: {
      SERVICE_WEBHOOK_SECRET: SECRET,
      SERVICE_WEBHOOK_WAIT_SECS: '0',
      SERVICE_RATE_LIMIT_WEBHOOK: '0',
      SERVICE_SLOTS: '2',
    },
  });
  try {
    const triggered: number[] = [];
    const again: number[] = [];
    const fetched: number[] = [];
    let commit = '';
    for (let index = 0; index <= PUSHES; index++) {
      // Every second push is of the commit before, which the mirror has.
      if (index % 2 === 0)
        commit = repository.commit({ '.pipeline.yaml': stampingPipeline(folder.path), index: String(index) });
      const took = await pushToStart(server, repository.url, commit, folder.path);
      if (index > 1) (index % 2 === 0 ? fetched : again).push(took);
      await rest(REST_MS);
      triggered.push(await triggerToStart(server, folder.path));
      await rest(REST_MS);
    }
    return [
      `push received to its first stage's first act, mirror warm: p50 ${quantile(again, 0.5).toFixed(1)} ms, p99 ${quantile(again, 0.99).toFixed(1)} ms; with one new commit to fetch: p50 ${quantile(fetched, 0.5).toFixed(1)} ms; the same file triggered, without a repository: p50 ${quantile(triggered, 0.5).toFixed(1)} ms`,
    ];
  } finally {
    await server.stop();
    repository.remove();
    folder.remove();
  }
}

/** The stage writes the time at which it began, by a shell that knows it without a fork, into a file that its run names. */
function stampingPipeline(folder: string): string {
  const file = `${folder}/$PENSTOCK_RUN_ID`;
  return [
    'pipeline:',
    '  name: latency',
    'stages:',
    '  only:',
    '    shell: bash',
    `    run: 'echo "$EPOCHREALTIME" > "${file}.part"; mv "${file}.part" "${file}"'`,
  ].join('\n');
}

async function pushToStart(server: RunningServer, url: string, commit: string, folder: string): Promise<number> {
  const body = JSON.stringify(githubPush({ url, commit, message: 'a change' }));
  const start = performance.timeOrigin + performance.now();
  const response = await fetch(`${server.url}/webhook`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-hub-signature-256': githubSignature(body, SECRET),
    },
    body,
  });
  const { run_id: runId } = (await response.json()) as { readonly run_id: string };
  return (await stampOf(folder, runId)) - start;
}

async function triggerToStart(server: RunningServer, folder: string): Promise<number> {
  const start = performance.timeOrigin + performance.now();
  return (await stampOf(folder, await trigger(server, stampingPipeline(folder)))) - start;
}

async function stampOf(folder: string, runId: string): Promise<number> {
  const file = join(folder, runId);
  await until('the stage has begun', () => existsSync(file));
  return Number((await readFile(file, 'utf8')).replace(',', '.')) * 1000;
}
