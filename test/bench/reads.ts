/**
 * Looking back on a pipeline that has run 100,000 times: its health and its newest runs as the gateway answers them, beside the store's
 * own indexed query for the same documents, by turns. Another run has ended before each of them, so that no earlier answer is given again;
 * what the gateway keeps are documents that it has read before. The store's query keeps nothing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connectBus, ensureStreams, subjects, type GetReply, type GetRequest } from '@penstock/bus';
import { gatewayCollections, startGateway } from '@penstock/gateway';
import {
  auditCollections,
  KEPT_VIEW_CHARACTERS,
  openSqliteStore,
  runCollections,
  RunsRepository,
} from '@penstock/store';
import { startTestBroker } from '@penstock/testkit';
import { randomBytes } from 'node:crypto';
import { endedRun } from './gateway.ts';

const RUNS = 100_000;
const BATCH = 1_000;
const ASKED = 300;
const TIMES_MAX = 2;
const MIB = 1024 * 1024;

export async function benchReads(): Promise<string[]> {
  const broker = await startTestBroker();
  const folder = await mkdtemp(join(tmpdir(), 'penstock-bench-reads-'));
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  const ownerBus = await connectBus({ servers: broker.url, name: 'bench-owner' });
  await ensureStreams(ownerBus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...runCollections, ...gatewayCollections, ...auditCollections],
    synchronous: 'normal',
  });
  const runs = new RunsRepository(store);
  const keeping = new RunsRepository(store, { viewCharactersMax: KEPT_VIEW_CHARACTERS });
  let changed = 0;
  // Something has been committed since, whenever it is asked.
  ownerBus.respond<GetRequest, GetReply>(subjects.owner(0, 'get'), () => ({
    ok: true,
    epoch: 1,
    runs: [],
    changed: (changed += 1),
  }));
  const gateway = await startGateway({
    bus,
    runs: keeping,
    store,
    jwtSecret: randomBytes(32).toString('hex'),
    partitions: 1,
    publicRead: true,
    listen: { host: '127.0.0.1', port: 0 },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (query: string) => () => asked(agent, gateway.port, query);
  const tenants = ['service'];
  try {
    for (let from = 0; from < RUNS; from += BATCH)
      await runs.saveBatch(Array.from({ length: BATCH }, (_, index) => endedRun(from + index)));
    await ownerBus.flush();
    const health = `{ pipelineHealth(pipelineName: "bench") { totalRuns succeeded failed flaky successRate p50DurationSecs stages { name runs failures flakeRate } } }`;
    const page = `{ runs(limit: 20, pipelineName: "bench") { id status startedAt finishedAt } }`;
    const name = { tenants, pipelineName: 'bench' };
    let next = RUNS;
    const runEnds = async (): Promise<unknown> => await runs.saveBatch([endedRun(next++)]);
    const floor = await byTurns(ask('{ version }'), () => ownerBus.flush(), runEnds);
    return [
      `a question that reads nothing: p50 ${floor.answerMs.toFixed(2)} ms; a round trip to the broker, of which each answer below takes one at least: ${floor.queryMs.toFixed(2)} ms`,
      line('pipelineHealth', await byTurns(ask(health), () => runs.page({ ...name, limit: 50 }), runEnds)),
      line('runs, 20', await byTurns(ask(page), () => runs.page({ ...name, limit: 20, withStages: false }), runEnds)),
    ];
  } finally {
    agent.destroy();
    await gateway.close();
    await Promise.all([bus.close(), ownerBus.close()]);
    await store.close();
    await broker.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Medians {
  readonly answerMs: number;
  readonly queryMs: number;
}

async function byTurns(
  answer: () => Promise<unknown>,
  query: () => Promise<unknown>,
  before: () => Promise<unknown>,
): Promise<Medians> {
  const [answers, queries]: [number[], number[]] = [[], []];
  for (let index = 0; index < ASKED; index++)
    for (const [act, times] of [
      [answer, answers],
      [query, queries],
    ] as const) {
      await before();
      const begin = performance.now();
      await act();
      times.push(performance.now() - begin);
    }
  return { answerMs: median(answers), queryMs: median(queries) };
}

function line(what: string, { answerMs, queryMs }: Medians): string {
  const times = answerMs / queryMs;
  return `${what} over ${RUNS} runs of one pipeline: p50 ${answerMs.toFixed(2)} ms, the store's indexed query ${queryMs.toFixed(2)} ms: ${times.toFixed(1)} times (${times <= TIMES_MAX ? 'within' : 'ABOVE'} ${TIMES_MAX})`;
}

async function asked(agent: Agent, port: number, query: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = httpRequest(
    {
      host: '127.0.0.1',
      port,
      path: '/graphql',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    },
    (response) => void text(response).then(resolve, reject),
  );
  request.on('error', reject);
  request.end(JSON.stringify({ query }));
  const body = await promise;
  if (body.includes('"errors"')) throw new Error(body);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
