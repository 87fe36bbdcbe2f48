/**
 * The database of a cluster, with verbs for what can happen to it. A server of MongoDB's protocol stands behind a TCP
 * proxy that cuts or slows the services' connections; a SQLite file is locked against all writers from a connection of
 * our own. `url` is for the services, `directUrl` passes by the proxy.
 */
import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startMongoProxy, startMongoServer } from '../support/mongodb.ts';

export type StoreKind = 'sqlite' | 'mongodb';

export interface ClusterStore {
  readonly kind: StoreKind;
  readonly name: string;
  readonly url: string;
  readonly directUrl: string;
  /** Where it listens; undefined: it is a file. */
  readonly port: number | undefined;
  /** What `url` is by way of this port of a proxy before it. */
  urlAt(port: number): string;
  /** Nothing can be written (SQLite), or nobody is there (MongoDB), until `heal`. */
  down(): Promise<void>;
  /** Each answer takes so much longer (MongoDB), or writers have to wait so long again and again (SQLite). */
  slow(delayMs: number): Promise<void>;
  heal(): Promise<void>;
  stop(): Promise<void>;
}

export async function startClusterStore(kind: StoreKind, folder: string): Promise<ClusterStore> {
  return kind === 'sqlite' ? new SqliteFile(join(folder, 'store.db')) : await startMongo();
}

/** How long a writer of a slow SQLite file can get in, between two times that it cannot. */
const SLOW_GAP_MS = 60;

class SqliteFile implements ClusterStore {
  readonly kind = 'sqlite';
  readonly name = 'SQLite';
  readonly url: string;
  readonly directUrl: string;
  readonly port = undefined;
  readonly #path: string;
  #lock: DatabaseSync | undefined;
  #slowing: { stopped: boolean; done: Promise<void> } | undefined;

  constructor(path: string) {
    this.#path = path;
    this.url = `sqlite:${path}`;
    this.directUrl = this.url;
  }

  urlAt(): string {
    return this.url;
  }

  async down(): Promise<void> {
    await this.heal();
    await this.#take();
  }

  async slow(delayMs: number): Promise<void> {
    await this.heal();
    const slowing = { stopped: false, done: Promise.resolve() };
    slowing.done = (async () => {
      while (!slowing.stopped) {
        await this.#take();
        await pause(delayMs);
        this.#give();
        await pause(SLOW_GAP_MS);
      }
    })();
    this.#slowing = slowing;
  }

  async heal(): Promise<void> {
    const slowing = this.#slowing;
    this.#slowing = undefined;
    if (slowing !== undefined) {
      slowing.stopped = true;
      await slowing.done;
    }
    this.#give();
  }

  stop(): Promise<void> {
    return this.heal();
  }

  /** Without SQLite's own waiting: it would block this process. */
  async #take(): Promise<void> {
    const database = new DatabaseSync(this.#path, { timeout: 0 });
    for (;;) {
      try {
        database.exec('BEGIN IMMEDIATE');
        this.#lock = database;
        return;
      } catch (error) {
        if (!/locked|busy/i.test(String(error))) throw error;
        await pause(2);
      }
    }
  }

  #give(): void {
    const lock = this.#lock;
    this.#lock = undefined;
    lock?.exec('ROLLBACK');
    lock?.close();
  }
}

async function startMongo(): Promise<ClusterStore> {
  const server = await startMongoServer();
  if ('missing' in server) throw new Error(`no server of MongoDB's protocol: ${server.missing}`);
  const proxy = await startMongoProxy(server);
  const directUrl = server.freshDatabase().url;
  const urlAt = (port: number): string => {
    const url = new URL(directUrl);
    url.host = `127.0.0.1:${port}`;
    return url.href;
  };
  return {
    kind: 'mongodb',
    name: server.name,
    url: urlAt(proxy.port),
    directUrl,
    port: proxy.port,
    urlAt,
    down: () => proxy.down(),
    slow: async (delayMs) => proxy.slow(delayMs),
    heal: () => proxy.heal(),
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}
