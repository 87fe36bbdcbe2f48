/**
 * Three real nats-servers in a cluster on the loopback interface, each with the verbs of a `TestBroker`. The ports of
 * clients and of routes stay the same over `kill` and `restart`.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { startTestBroker, type TestBroker, type TestBrokerOptions } from './broker.ts';
import { startProxy, type Proxy } from './proxy.ts';

export interface TestCluster {
  readonly brokers: readonly TestBroker[];
  /** Of all three, comma-separated. */
  readonly url: string;
  /** The broker that leads the stream. Waits for one; throws after 20 s. */
  leaderOf(stream: string): Promise<TestBroker>;
  /** Resolves when every copy of the stream is current, so that another broker may be lost. Throws after 20 s. */
  inStep(stream: string): Promise<void>;
  /** Cuts the broker off from the others, not from its clients, until `rejoin`. */
  isolate(broker: TestBroker): void;
  rejoin(broker: TestBroker): void;
  /** The leader of the stream lets another one lead. False: there was none to do so. */
  stepDown(stream: string): Promise<boolean>;
  stop(): Promise<void>;
}

export interface TestClusterOptions extends TestBrokerOptions {
  /** For `leaderOf` and `inStep`, where the configuration asks for it. */
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
}

const SIZE = 3;
const WAIT_MS_MAX = 20_000;
/** Between two looks at the state of a stream: nothing tells of an election. */
const LOOK_MS = 50;
const ASK_TIMEOUT_MS = 500;
const STREAM_NOT_FOUND = 10059;
const NO_SUITABLE_PEERS = 10005;
const PORT_MIN = 10_240;
const EPHEMERAL_PORT_MIN = 32_768;
const PORT_TRIES = 50;
/** A port that nobody listens on. */
const NOWHERE = 1;

/**
 * Resolves when JetStream has a leader. Before that the brokers take connections, and leave requests to JetStream without
 * any answer.
 */
export async function startTestCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  const { user, pass, config = '', ...rest } = options;
  const routePorts: number[] = [];
  while (routePorts.length < SIZE) {
    const port = await freePort();
    if (!routePorts.includes(port)) routePorts.push(port);
  }
  const routes = await startRoutes(routePorts);
  const started = await Promise.allSettled(
    routePorts.map((port, index) =>
      startTestBroker({
        ...rest,
        // What the others hear of it is no way to it: they know the proxies. Clients know what they were told.
        config: `server_name: "${nameOf(index)}"\ncluster { name: "test", listen: "127.0.0.1:${port}", advertise: "127.0.0.1:${NOWHERE}", no_advertise: true, routes: [${routes
          .filter(({ ends }) => ends[1] === index)
          .map(({ proxy }) => `"${proxy.url}"`)
          .join(', ')}] }\n${config}`,
      }),
    ),
  );
  const brokers = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failed = started.find((result) => result.status === 'rejected');
  if (failed !== undefined) {
    await Promise.all([...brokers, ...routes.map(({ proxy }) => proxy)].map((one) => one.stop()));
    throw failed.reason;
  }
  const cluster = new Cluster(brokers, routes, { user, pass });
  try {
    await cluster.elected();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Between two brokers: the second dials the first. Of two that dial each other one is kept. */
interface Route {
  readonly ends: readonly [number, number];
  readonly proxy: Proxy;
}

async function startRoutes(ports: readonly number[]): Promise<Route[]> {
  const routes: Route[] = [];
  for (const [first, port] of ports.entries())
    for (const second of ports.keys())
      if (second !== first) routes.push({ ends: [first, second], proxy: await startProxy(port) });
  return routes;
}

/**
 * Does `work`, again and again while JetStream finds no brokers for three copies: a leader is elected before it has heard of all of
 * the others. Throws the last refusal after 20 s.
 */
export async function oncePlaced<T>(work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + WAIT_MS_MAX;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isUnplaced = error instanceof Error && 'code' in error && error.code === NO_SUITABLE_PEERS;
      if (!isUnplaced || Date.now() > deadline) throw error;
    }
    await sleep(LOOK_MS);
  }
}

interface StreamInfo {
  readonly error?: { readonly err_code?: number | undefined; readonly description: string } | undefined;
  readonly cluster?:
    | {
        readonly leader?: string | undefined;
        readonly replicas?:
          | readonly {
              readonly current: boolean;
              readonly lag?: number | undefined;
              readonly offline?: boolean | undefined;
            }[]
          | undefined;
      }
    | undefined;
}

class Cluster implements TestCluster {
  readonly brokers: readonly TestBroker[];
  readonly #routes: readonly Route[];
  readonly #credentials: { readonly user?: string | undefined; readonly pass?: string | undefined };
  #connection: Promise<NatsConnection> | null = null;

  constructor(
    brokers: readonly TestBroker[],
    routes: readonly Route[],
    credentials: { readonly user?: string | undefined; readonly pass?: string | undefined },
  ) {
    this.brokers = brokers;
    this.#routes = routes;
    this.#credentials = credentials;
  }

  get url(): string {
    return this.brokers.map(({ url }) => url).join(',');
  }

  async leaderOf(stream: string): Promise<TestBroker> {
    const info = await this.#until(
      stream,
      'a leader',
      ({ cluster }) => cluster?.leader !== undefined && cluster.leader !== '',
    );
    const broker = this.brokers.find((_, index) => nameOf(index) === info.cluster?.leader);
    if (broker === undefined)
      throw new Error(`${stream} is led by ${String(info.cluster?.leader)}, which is none of ours`);
    return broker;
  }

  /** Only a leader of JetStream knows that a stream does not exist. One that users of the bus may ask about. */
  async elected(): Promise<void> {
    await this.#until('JOURNAL', 'a leader of JetStream', ({ error }) => error?.err_code === STREAM_NOT_FOUND);
  }

  async inStep(stream: string): Promise<void> {
    await this.#until(stream, 'all copies current', ({ cluster }) => {
      const replicas = cluster?.replicas ?? [];
      return replicas.length === SIZE - 1 && replicas.every(({ current, offline }) => current && offline !== true);
    });
  }

  isolate(broker: TestBroker): void {
    for (const { proxy } of this.#routesOf(broker)) proxy.shut();
  }

  rejoin(broker: TestBroker): void {
    for (const { proxy } of this.#routesOf(broker)) proxy.cut();
  }

  async stepDown(stream: string): Promise<boolean> {
    try {
      const connection = await this.#connected();
      const answer = await connection.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, '', {
        timeout: WAIT_MS_MAX / 4,
      });
      return answer.json<{ readonly success?: boolean }>().success === true;
    } catch {
      return false;
    }
  }

  async stop(): Promise<void> {
    await (await this.#connection?.catch(() => null))?.close();
    await Promise.all(this.brokers.map((broker) => broker.stop()));
    await Promise.all(this.#routes.map(({ proxy }) => proxy.stop()));
  }

  #routesOf(broker: TestBroker): readonly Route[] {
    const index = this.brokers.indexOf(broker);
    return this.#routes.filter(({ ends }) => ends.includes(index));
  }

  async #until(stream: string, what: string, isSo: (info: StreamInfo) => boolean): Promise<StreamInfo> {
    const deadline = performance.now() + WAIT_MS_MAX;
    for (let last = 'no answer'; ;) {
      try {
        const info = await this.#infoOf(stream);
        if (isSo(info)) return info;
        last = JSON.stringify(info.error ?? info.cluster);
      } catch (error) {
        last = (error as Error).message;
      }
      if (performance.now() > deadline)
        throw new Error(`${stream} did not have ${what} within ${WAIT_MS_MAX} ms: ${last}`);
      await sleep(LOOK_MS);
    }
  }

  async #infoOf(stream: string): Promise<StreamInfo> {
    const connection = await this.#connected();
    return (
      await connection.request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: ASK_TIMEOUT_MS })
    ).json<StreamInfo>();
  }

  #connected(): Promise<NatsConnection> {
    const { user, pass } = this.#credentials;
    this.#connection ??= connect({
      servers: this.brokers.map(({ url }) => url),
      maxReconnectAttempts: -1,
      reconnectTimeWait: LOOK_MS,
      noAsyncTraces: true,
      ...(user === undefined ? {} : { user, inboxPrefix: `_INBOX_${user}` }),
      ...(pass === undefined ? {} : { pass }),
    });
    return this.#connection;
  }
}

function nameOf(index: number): string {
  return `n${index + 1}`;
}

/** Below the range that outgoing connections are given: a client that dials a killed broker must not be given its port. */
async function freePort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '');
  const ephemeralMin = Number.parseInt(range, 10) || EPHEMERAL_PORT_MIN;
  const below = ephemeralMin > PORT_MIN + 1_000 ? ephemeralMin : EPHEMERAL_PORT_MIN;
  for (let attempt = 0; attempt < PORT_TRIES; attempt += 1) {
    const port = randomInt(PORT_MIN, below);
    const server = createServer();
    try {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      return port;
    } catch {
      // Taken: another one.
    } finally {
      server.close();
    }
  }
  throw new Error(`no free port between ${PORT_MIN} and ${below} on 127.0.0.1`);
}
