/**
 * A server that speaks MongoDB's protocol, for tests: the one that SERVICE_TEST_MONGODB_URL names; `mongo:8` where a Docker
 * engine answers; `mongod` on the PATH; mongo-java-server where a JDK 17 and Maven are installed; FerretDB where Go is. The last
 * two stand in for MongoDB: the one decides races and keeps everything in memory, the other decides none and keeps it in files.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { programOnPath } from '@penstock/testkit';
import { MongoClient } from 'mongodb';
import { ferretdbBinary } from './ferretdb-binary.ts';
import { classPathOf, javaServer } from './java-server.ts';

export interface TestMongoServer {
  /** Without a database. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** For titles. */
  readonly name: string;
  /** It decides races as MongoDB does. */
  readonly isAtomic: boolean;
  /** It sorts strings as MongoDB does, by code points; else by UTF-16 units. */
  readonly sortsByCodePoints: boolean;
  /** The address of a database of its own, not made yet. */
  freshDatabase(): { readonly url: string; drop(): Promise<void> };
  stop(): Promise<void>;
}

export type NoServer = { readonly missing: string };

/** What a stand-in may lack. */
type Faithfulness = Pick<TestMongoServer, 'isAtomic' | 'sortsByCodePoints'>;
const MONGODB: Faithfulness = { isAtomic: true, sortsByCodePoints: true };

const START_MS = 60_000;
const IMAGE = 'mongo:8';

/** The first of them that there is; else why there is none, in words for the end of the test run. */
export async function startMongoServer(env: NodeJS.ProcessEnv = process.env): Promise<TestMongoServer | NoServer> {
  const named = env['SERVICE_TEST_MONGODB_URL'];
  if (named) return testServer(named, 'the MongoDB of SERVICE_TEST_MONGODB_URL', MONGODB, async () => undefined);
  const real = (await startContainer(env)) ?? (await startMongod(env));
  if (real !== null) return real;
  const inJava = await startJavaServer(env);
  if (!('missing' in inJava)) return inJava;
  const inGo = await startFerretdb(env);
  if (!('missing' in inGo)) return inGo;
  return {
    missing: `no SERVICE_TEST_MONGODB_URL, no Docker engine, no mongod, ${inJava.missing}, ${inGo.missing} on this machine`,
  };
}

/** Told at the end of `npm test`, where nobody overlooks it. */
export function reportNotRun(line: string): void {
  const file = process.env['PENSTOCK_NOT_RUN_FILE'];
  if (file) appendFileSync(file, `${line}\n`);
}

async function startContainer(env: NodeJS.ProcessEnv): Promise<TestMongoServer | null> {
  const sockets = [
    '/var/run/docker.sock',
    join(env['XDG_RUNTIME_DIR'] ?? '/run/user/0', 'docker.sock'),
    join(homedir(), '.docker', 'run', 'docker.sock'),
  ];
  if (!env['DOCKER_HOST'] && !sockets.some((socket) => existsSync(socket))) return null;
  try {
    const { GenericContainer, Wait } = await import('testcontainers');
    const container = await new GenericContainer(IMAGE)
      .withCommand(['--replSet', 'test', '--bind_ip_all'])
      .withExposedPorts(27017)
      .withWaitStrategy(Wait.forLogMessage(/Waiting for connections/))
      .withStartupTimeout(START_MS)
      .start();
    const url = `mongodb://${container.getHost()}:${container.getMappedPort(27017)}/?directConnection=true`;
    await initiate(url);
    return testServer(url, `${IMAGE} in a container`, MONGODB, async () => void (await container.stop()));
  } catch {
    // No engine behind the socket, or no image to be had: the next of the list.
    return null;
  }
}

async function startMongod(env: NodeJS.ProcessEnv): Promise<TestMongoServer | null> {
  const binary = programOnPath('mongod', env);
  if (binary === undefined) return null;
  const folder = await mkdtemp(join(tmpdir(), 'penstock-mongod-'));
  const port = await freePort();
  const child = new ServerProcess(
    spawn(binary, ['--dbpath', folder, '--port', String(port), '--bind_ip', '127.0.0.1', '--replSet', 'test'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  );
  const url = `mongodb://127.0.0.1:${port}/?directConnection=true`;
  await child.firstLine((line) => (line.includes('Waiting for connections') ? url : undefined));
  await initiate(url, `127.0.0.1:${port}`);
  return testServer(url, 'mongod', MONGODB, async () => {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  });
}

/** Its heap is small: a test keeps some megabytes. */
const JAVA_OPTIONS = ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];

async function startJavaServer(env: NodeJS.ProcessEnv): Promise<TestMongoServer | NoServer> {
  const [java, javac, maven] = ['java', 'javac', 'mvn'].map((tool) => programOnPath(tool, env));
  if (java === undefined || javac === undefined || maven === undefined)
    return { missing: 'no JDK 17 with Maven (for mongo-java-server)' };
  const built = await javaServer(maven, javac, env);
  if ('problem' in built) return { missing: `mongo-java-server cannot be built: ${built.problem}` };
  // It ends with its standard input, and so with this process.
  const argv = [...JAVA_OPTIONS, '-cp', classPathOf(built.path), 'TestServer'];
  const child = new ServerProcess(spawn(java, argv, { stdio: ['pipe', 'pipe', 'ignore'] }));
  const url = await child.firstLine((line) => (line.startsWith('mongodb://') ? line : undefined));
  return testServer(url, 'mongo-java-server', { isAtomic: true, sortsByCodePoints: false }, () => child.stop());
}

async function startFerretdb(env: NodeJS.ProcessEnv): Promise<TestMongoServer | NoServer> {
  const go = programOnPath('go', env);
  if (go === undefined) return { missing: 'no Go (to build FerretDB)' };
  const built = await ferretdbBinary(go, env);
  if ('problem' in built) return { missing: `FerretDB cannot be built: ${built.problem}` };
  const folder = await mkdtemp(join(tmpdir(), 'penstock-ferretdb-'));
  // It ends with its standard input, and so with this process.
  const child = new ServerProcess(spawn(built.path, [folder], { stdio: ['pipe', 'pipe', 'ignore'] }));
  const url = await child.firstLine((line) => (line.startsWith('mongodb://') ? line : undefined));
  return testServer(url, 'FerretDB', { isAtomic: false, sortsByCodePoints: true }, async () => {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  });
}

function testServer(url: string, name: string, faithfulness: Faithfulness, stop: () => Promise<void>): TestMongoServer {
  const parsed = new URL(url);
  return {
    url,
    name,
    ...faithfulness,
    stop,
    host: parsed.hostname,
    port: Number(parsed.port || 27017),
    freshDatabase: () => {
      const database = new URL(url);
      database.pathname = `/penstock_test_${crypto.randomUUID().replaceAll('-', '')}`;
      return {
        url: database.href,
        drop: async () => {
          const client = new MongoClient(database.href);
          await client.db().dropDatabase();
          await client.close();
        },
      };
    },
  };
}

/** A replica set of one: what production has, as far as one process goes. `host` is what it calls itself, from within. */
async function initiate(url: string, host = '127.0.0.1:27017'): Promise<void> {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: START_MS });
  try {
    await client.db('admin').command({ replSetInitiate: { _id: 'test', members: [{ _id: 0, host }] } });
    const deadline = Date.now() + START_MS;
    while ((await client.db('admin').command({ hello: 1 }))['isWritablePrimary'] !== true) {
      if (Date.now() > deadline) throw new Error(`the replica set has no primary after ${START_MS} ms`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    await client.close();
  }
}

class ServerProcess {
  readonly #child: ChildProcess;
  readonly #killWithUs = (): void => void this.#child.kill('SIGKILL');

  constructor(child: ChildProcess) {
    this.#child = child;
    process.on('exit', this.#killWithUs);
  }

  async firstLine(read: (line: string) => string | undefined): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const timer = setTimeout(
      () => reject(new Error(`${this.#child.spawnfile} did not start within ${START_MS} ms`)),
      START_MS,
    );
    this.#child
      .once('error', reject)
      .once('exit', (code, signal) => reject(new Error(`${this.#child.spawnfile} ended with ${code ?? signal}`)));
    // Read to the end, or the server would block once the pipe is full.
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const found = read(line);
      if (found !== undefined) resolve(found);
    });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async stop(): Promise<void> {
    process.off('exit', this.#killWithUs);
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
