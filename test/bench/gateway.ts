/**
 * What the gateway costs: GraphQL queries beside a bare Fastify route that parses as much and answers the same bytes, and
 * log lines delivered to 1,000 clients beside a bare server that writes the same bytes. The clients are one process apart.
 */
import { spawn } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import fastify from 'fastify';
import {
  connectBus,
  createLogWriter,
  encodeChunk,
  ensureStreams,
  subjects,
  type Bus,
  type GetReply,
  type GetRequest,
  type WatchReply,
  type WatchRequest,
} from '@penstock/bus';
import { gatewayCollections, startGateway } from '@penstock/gateway';
import { newRunId, type RunEvent, type RunView, type StageView, type StoredRunState } from '@penstock/run';
import { auditCollections, openSqliteStore, runCollections, RunsRepository, type RunDocument } from '@penstock/store';
import { startTestBroker } from '@penstock/testkit';
import { benchIdentity } from './gateway-identity.ts';
import type { LoadPlan, RequestResult, StreamResult } from './gateway-client.ts';

const CONNECTIONS = 20;
const REQUESTS_MS = 2_000;
const REPETITIONS = 3;
const RUNS = 10_000;
const COMMIT_MS = 20;
const CLIENTS = 1_000;
const LINES_A_TICK = 8;
const TICKS = 150;
const TICK_MS = 20;
const LINE = 'x'.repeat(80);
const MIB = 1024 * 1024;
const RUNS_QUERY =
  '{ runs { id pipelineName status startedAt finishedAt stages { name status startedAt finishedAt outputs { key value } } } }';

export async function benchGateway(): Promise<string[]> {
  const broker = await startTestBroker();
  const folder = await mkdtemp(join(tmpdir(), 'penstock-bench-gateway-'));
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  const ownerBus = await connectBus({ servers: broker.url, name: 'bench-owner' });
  await ensureStreams(ownerBus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 512 * MIB });
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...runCollections, ...gatewayCollections, ...auditCollections],
    synchronous: 'normal',
  });
  const runs = new RunsRepository(store);
  const owner = new BenchOwner(ownerBus);
  const jwtSecret = randomBytes(32).toString('hex');
  const gateway = await startGateway({
    bus,
    runs,
    store,
    jwtSecret,
    partitions: 1,
    publicRead: true,
    streamsPerUser: 100_000,
    listen: { host: '127.0.0.1', port: 0 },
  });
  const lines: string[] = [];
  try {
    await runs.saveBatch(Array.from({ length: RUNS }, (_, index) => endedRun(index)));
    await ownerBus.flush();
    const health = '{ pipelineHealth(pipelineName: "bench") { totalRuns successRate stages { name runs failures } } }';
    const one = `{ run(id: "${endedRun(RUNS - 1).state.id}") { id status stages { name status } } }`;
    const committing = setInterval(() => void (owner.changed += owner.commits ? 1 : 0), COMMIT_MS);
    const changing = async (name: string, query: string): Promise<string> => {
      owner.commits = true;
      try {
        return await benchQuery(`${name}, a commit each ${COMMIT_MS} ms`, gateway.port, query);
      } finally {
        owner.commits = false;
      }
    };
    try {
      lines.push(
        await benchQuery('GraphQL health', gateway.port, '{ health }'),
        await benchQuery(`GraphQL runs, 20 of 5 stages, of ${RUNS}`, gateway.port, RUNS_QUERY),
        await changing('the same', RUNS_QUERY),
        await benchQuery(`GraphQL pipelineHealth over 50 of ${RUNS} runs`, gateway.port, health),
        await changing('the same', health),
        await benchQuery('GraphQL run(id), ended', gateway.port, one),
      );
    } finally {
      clearInterval(committing);
    }
    return [
      ...lines,
      ...(await benchIdentity({
        port: gateway.port,
        bus: ownerBus,
        runs,
        jwtSecret,
        foreignRun: (tenant) => endedRun(RUNS + 1_000, tenant),
        load,
      })),
      await benchDeliveries(gateway.port, owner),
    ];
  } finally {
    await gateway.close();
    await Promise.all([bus.close(), ownerBus.close()]);
    await store.close();
    await broker.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function benchQuery(name: string, port: number, query: string): Promise<string> {
  const body = JSON.stringify({ query });
  const answer = await (
    await fetch(`http://127.0.0.1:${port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
  ).text();
  if (answer.includes('"errors"')) throw new Error(answer);
  const bare = fastify();
  bare.post('/graphql', (_request, reply) => reply.type('application/json').send(answer));
  await bare.listen({ host: '127.0.0.1', port: 0 });
  const plan = { kind: 'requests', path: '/graphql', body, connections: CONNECTIONS, durationMs: REQUESTS_MS } as const;
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition++) {
    ours.push((await load<RequestResult>({ ...plan, port })).perSecond);
    theirs.push((await load<RequestResult>({ ...plan, port: (bare.server.address() as AddressInfo).port })).perSecond);
  }
  await bare.close();
  return `${name}: ${rate(median(ours))}/s, bare Fastify answering the same ${rate(median(theirs))}/s (${percent(median(ours), median(theirs))})`;
}

async function benchDeliveries(port: number, owner: BenchOwner): Promise<string> {
  const lines = LINES_A_TICK * TICKS;
  const deliveries = lines * CLIENTS;

  const ours = await load<StreamResult>(
    {
      kind: 'streams',
      port,
      path: `/pipeline/${owner.runId}/logs`,
      clients: CLIENTS,
      last: 'event: pipeline_completed',
    },
    async () => {
      await owner.start();
      await everyTick((tick) => owner.write(tick));
      await owner.finish();
    },
  );

  const open = new Set<ServerResponse>();
  const bare = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('retry: 2000\n\n');
    open.add(response);
  });
  bare.listen(0, '127.0.0.1');
  await once(bare, 'listening');
  const theirs = await load<StreamResult>(
    {
      kind: 'streams',
      port: (bare.address() as AddressInfo).port,
      path: '/',
      clients: CLIENTS,
      last: 'event: pipeline_completed',
    },
    async () => {
      await everyTick((tick) => {
        const frame = `id: MTIuMTIzNDUuMTIuMC5iZWVm\nevent: stage_log\ndata: ${JSON.stringify({ type: 'stage_log', stage: 'build', stream: 'stdout', line: `${tick} ${LINE}`, timestamp: new Date().toISOString() })}\n\n`;
        const bytes = Buffer.from(frame.repeat(LINES_A_TICK));
        for (const response of open) response.write(bytes);
      });
      for (const response of open) response.write('event: pipeline_completed\n\n');
    },
  );
  bare.closeAllConnections();
  bare.close();
  const per = (result: { readonly seconds: number }): string => rate(deliveries / result.seconds);
  return (
    `log lines delivered to ${CLIENTS} clients, ${LINES_A_TICK} each ${TICK_MS} ms offered: ${per(ours)}/s, lag p50 ${ours.lagMsP50} ms, p99 ${ours.lagMsP99} ms; ` +
    `bare batched writes ${per(theirs)}/s, p50 ${theirs.lagMsP50} ms, p99 ${theirs.lagMsP99} ms (${percent(theirs.seconds, ours.seconds)})`
  );
}

async function everyTick(act: (tick: number) => void | Promise<void>): Promise<void> {
  const from = performance.now();
  for (let tick = 0; tick < TICKS; tick++) {
    const waitMs = from + tick * TICK_MS - performance.now();
    await new Promise<void>((resolve) => (waitMs > 0 ? setTimeout(resolve, waitMs) : setImmediate(resolve)));
    await act(tick);
  }
}

/** Runs the client process; `act` begins when all of its streams are open, and `seconds` counts from then. */
async function load<R>(plan: LoadPlan, act?: () => Promise<void>): Promise<R & { readonly seconds: number }> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('gateway-client.ts', import.meta.url)), JSON.stringify(plan)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let from = performance.now();
  let acting: Promise<void> | undefined;
  let result: R | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line !== 'open') result = JSON.parse(line) as R;
    else {
      from = performance.now();
      acting = act?.();
    }
  }
  const seconds = (performance.now() - from) / 1000;
  await acting;
  if (result === undefined) throw new Error('the client process gave no result');
  return { ...result, seconds };
}

/** Owns one live run, whose log it writes; of the store's runs it knows none. */
class BenchOwner {
  readonly runId = newRunId({ now: Date.now(), key: 'service/bench', random: new Uint8Array(8).fill(7) });
  /** The last commit about anything, as an owner says it. */
  changed = 1;
  /** Whether something is committed all the time. */
  commits = false;
  readonly #bus: Bus;
  readonly #writer;
  readonly #events: RunEvent[];
  #bytes = 0;

  constructor(bus: Bus) {
    this.#bus = bus;
    this.#writer = createLogWriter(bus);
    this.#events = [
      {
        type: 'run_created',
        at: Date.now(),
        tenant: 'service',
        key: 'service/bench',
        pipelineName: 'bench',
        yaml: '',
        priority: 0,
        origin: { kind: 'api' },
      },
    ];
    bus.respond<GetRequest, GetReply>(subjects.owner(0, 'get'), ({ runIds }) => ({
      ok: true,
      epoch: 1,
      runs: runIds.includes(this.runId) ? [viewOfRun(this.runId, 'RUNNING', 1)] : [],
      changed: this.changed,
    }));
    bus.respond<WatchRequest, WatchReply>(subjects.owner(0, 'watch'), ({ after }) => ({
      ok: true,
      epoch: 1,
      run: { tenant: 'service', version: this.#events.length, events: this.#events.slice(after), more: false },
    }));
  }

  start(): void {
    this.#commit({
      type: 'stage_started',
      at: Date.now(),
      stage: 'build',
      attempt: 1,
      runner: 'r1',
      session: 's',
      credit: 1,
    });
  }

  async write(tick: number): Promise<void> {
    const output = Buffer.from(`${tick} ${LINE}\n`.repeat(LINES_A_TICK));
    const bytes = encodeChunk({
      stage: 'build',
      attempt: 1,
      offset: this.#bytes,
      at: Date.now(),
      parts: [['stdout', output.length]],
      output,
    });
    this.#bytes += output.length;
    await this.#writer.publish(subjects.log(this.runId, 'r1'), bytes);
  }

  finish(): void {
    this.#commit({
      type: 'stage_completed',
      at: Date.now(),
      stage: 'build',
      attempt: 1,
      status: 'SUCCESS',
      logBytes: this.#bytes,
    });
    this.#commit({ type: 'run_completed', at: Date.now(), status: 'SUCCESS' });
  }

  #commit(event: RunEvent): void {
    this.#events.push(event);
    this.#bus.publish(subjects.events(this.runId), {
      runId: this.runId,
      epoch: 1,
      version: this.#events.length,
      events: [event],
    });
  }
}

function viewOfRun(id: string, status: RunView['status'], index: number): RunView {
  const time = new Date(Date.UTC(2026, 10, 21) + index * 1000).toISOString();
  const stages = Array.from({ length: 5 }, (_, stage): StageView => ({
    name: `stage-${stage}`,
    status,
    startedAt: time,
    finishedAt: time,
    outputs: [{ key: 'version', value: '1.2.3' }],
    reason: null,
    exitCode: 0,
    attempt: 1,
  }));
  return {
    id,
    tenant: 'service',
    key: 'service/bench',
    pipelineName: 'bench',
    status,
    startedAt: time,
    finishedAt: time,
    outcome: null,
    reason: null,
    version: 20,
    cancelledStages: null,
    stages,
  };
}

export function endedRun(index: number, tenant = 'service'): RunDocument {
  const createdAt = Date.UTC(2026, 10, 20) + index * 1000;
  const id = newRunId({ now: createdAt, key: 'service/bench', random: new Uint8Array(8).fill(index) });
  const state: StoredRunState = {
    id,
    tenant,
    key: 'service/bench',
    pipelineName: 'bench',
    yaml: '',
    priority: 0,
    origin: { kind: 'api' },
    createdAt,
    version: 20,
    eventBytes: 0,
    status: 'SUCCESS',
    held: false,
    finishedAt: createdAt,
    stages: [],
    openStages: 0,
    liveAttempts: 0,
    workspaces: {},
  };
  return {
    partition: 0,
    open: false,
    incarnation: 1,
    sequence: index + 1,
    state,
    events: [],
    view: { ...viewOfRun(id, 'SUCCESS', index), tenant },
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en');
}

function percent(part: number, whole: number): string {
  return `${Math.round((part / whole) * 100)} %`;
}
