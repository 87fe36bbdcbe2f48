/** A gateway on a real broker and a real store, with a fake owner. One broker serves a test file. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { connectBus, createLogWriter, encodeChunk, ensureStreams, subjects, type Bus, type Chunk } from '@penstock/bus';
import { newRunId, type RunEvent } from '@penstock/run';
import { auditCollections, openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import type { FastifyInstance } from 'fastify';
import { buildGateway } from '../src/app.ts';
import { gatewayCollections } from '../src/collections.ts';
import type { GatewayOptions } from '../src/ports.ts';
import { FakeAuth, JWT_SECRET } from './fake-auth.ts';
import { FakeOwner } from './fake-owner.ts';

export const API_KEY = 'test-api-key-with-enough-length';
export const PARTITIONS = 4;
const MEBIBYTE = 1024 * 1024;

export const YAML = `
engine: any
pipeline:
  name: demo
stages:
  build:
    run: make
  test:
    run: make test
    after: [build]
`;

export interface World {
  readonly broker: TestBroker;
  readonly bus: Bus;
  /** Of the owner and the runners. */
  readonly ownerBus: Bus;
  readonly store: DocumentStore;
  readonly runs: RunsRepository;
  readonly owner: FakeOwner;
  readonly auth: FakeAuth;
  gateway(options?: Partial<GatewayOptions>): Promise<FastifyInstance>;
  /** Ends what the last test began. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function makeWorld(): Promise<World> {
  const broker = await startTestBroker();
  const folder = await mkdtemp(join(tmpdir(), 'penstock-gateway-'));
  const bus = await connectBus({ servers: broker.url, name: 'gateway' });
  const ownerBus = await connectBus({ servers: broker.url, name: 'owner' });
  await ensureStreams(ownerBus, {
    partitions: PARTITIONS,
    journalBytesMax: 64 * MEBIBYTE,
    logsBytesMax: 256 * MEBIBYTE,
  });
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...runCollections, ...gatewayCollections, ...auditCollections],
    synchronous: 'normal',
  });
  const runs = new RunsRepository(store);
  let owner = new FakeOwner(ownerBus, runs, PARTITIONS);
  await owner.open();
  const auth = new FakeAuth(ownerBus);
  await auth.open();
  const apps: FastifyInstance[] = [];
  return {
    broker,
    bus,
    ownerBus,
    store,
    runs,
    auth,
    get owner() {
      return owner;
    },
    async gateway(options = {}) {
      const app = await buildGateway({
        bus,
        runs,
        store,
        partitions: PARTITIONS,
        apiKey: API_KEY,
        jwtSecret: JWT_SECRET,
        publicRead: true,
        ...options,
      });
      apps.push(app);
      return app;
    },
    async reset() {
      await Promise.all(apps.splice(0).map((app) => app.close()));
      await owner.leave();
      owner = new FakeOwner(ownerBus, runs, PARTITIONS);
      await owner.open();
    },
    async close() {
      await Promise.all(apps.splice(0).map((app) => app.close()));
      await bus.close();
      await ownerBus.close();
      await store.close();
      await broker.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

let clock = Date.now() - 60_000;

/** A new id of a run of `service/demo`, later than those before it. */
export function runIdFor(key = 'service/demo'): string {
  clock += 1;
  return newRunId({ now: clock, key, random: randomBytes(10) });
}

export interface GraphqlAnswer {
  readonly status: number;
  readonly data: Record<string, unknown> | null;
  readonly errors: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

export async function graphql(
  app: FastifyInstance,
  query: string,
  options: {
    readonly variables?: Record<string, unknown>;
    readonly token?: string | null;
    readonly operationName?: string;
  } = {},
): Promise<GraphqlAnswer> {
  const token = options.token === undefined ? API_KEY : options.token;
  const response = await app.inject({
    method: 'POST',
    url: '/graphql',
    headers: { 'content-type': 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) },
    payload: JSON.stringify({ query, variables: options.variables, operationName: options.operationName }),
  });
  const body = response.json<{ data: Record<string, unknown> | null; errors?: GraphqlAnswer['errors'] }>();
  return { status: response.statusCode, data: body.data, errors: body.errors ?? [] };
}

/** Events as an owner commits them, at the time of now. */
export const happened = {
  queued: (...stages: string[]): RunEvent => ({ type: 'stages_queued', at: Date.now(), stages }),
  started: (stage: string, attempt = 1, runner = 'r1'): RunEvent => ({
    type: 'stage_started',
    at: Date.now(),
    stage,
    attempt,
    runner,
    session: 's',
    credit: 1,
  }),
  completed: (
    stage: string,
    logBytes = 0,
    fields: Partial<Extract<RunEvent, { type: 'stage_completed' }>> = {},
  ): RunEvent => ({
    type: 'stage_completed',
    at: Date.now(),
    stage,
    attempt: 1,
    status: 'SUCCESS',
    logBytes,
    ...fields,
  }),
  skipped: (stage: string): RunEvent => ({ type: 'stage_skipped', at: Date.now(), stage, reason: 'dependency' }),
  runCompleted: (status: 'SUCCESS' | 'FAILED' = 'SUCCESS'): RunEvent => ({
    type: 'run_completed',
    at: Date.now(),
    status,
  }),
};

/** A runner that writes an attempt's log. */
export class LogSource {
  readonly #writer;
  readonly #runId: string;
  readonly #offsets = new Map<string, number>();

  constructor(bus: Bus, runId: string) {
    this.#writer = createLogWriter(bus);
    this.#runId = runId;
  }

  /** Resolves with the attempt's bytes so far, when the chunk is stored. */
  async write(
    stage: string,
    text: string,
    fields: Partial<Pick<Chunk, 'attempt' | 'at' | 'offset'>> & { readonly runner?: string } = {},
  ): Promise<number> {
    const output = Buffer.from(text);
    const attempt = fields.attempt ?? 1;
    const key = `${attempt} ${stage}`;
    const offset = fields.offset ?? this.#offsets.get(key) ?? 0;
    const bytes = encodeChunk({
      stage,
      attempt,
      offset,
      at: fields.at ?? Date.now(),
      parts: [['stdout', output.length]],
      output,
    });
    await this.#writer.publish(subjects.log(this.#runId, fields.runner ?? 'r1'), bytes);
    this.#offsets.set(key, offset + output.length);
    return offset + output.length;
  }

  close(): void {
    this.#writer.close();
  }
}

/** All that a run says of itself without fields of its own. */
export const RUN_FIELDS =
  'id pipelineName status startedAt finishedAt outcome reason stages { name status startedAt finishedAt attempt exitCode reason outputs { key value } }';

/** A run of tenant `service` that has ended, in the store and out of its owner's memory. */
export async function endedRun(world: World, outputs: Record<string, string> = {}): Promise<string> {
  const id = runIdFor();
  world.owner.adopt(id, YAML);
  world.owner.commit(id, [
    happened.queued('build'),
    happened.started('build'),
    happened.completed('build', 0, { outputs }),
    happened.queued('test'),
    happened.started('test'),
    happened.completed('test', 0, { status: 'FAILED', reason: 'exit', exitCode: 2 }),
    happened.runCompleted('FAILED'),
  ]);
  await world.owner.project(id);
  return id;
}
