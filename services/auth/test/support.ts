/** Auth on a real broker and a real store, listening; a clock that can be put forward. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootMs } from '@penstock/async';
import { connectBus, ensureStreams, type Bus } from '@penstock/bus';
import { buildServer } from '@penstock/http';
import { silentLog } from '@penstock/telemetry/log';
import {
  cloneSecretsSpec,
  openSqliteStore,
  type AuditEntry,
  type CollectionSpec,
  type DocumentStore,
} from '@penstock/store';
import {
  asked,
  Browser,
  startFakeGitHost,
  startTestBroker,
  type Answer,
  type FakeGitHost,
  type TestBroker,
} from '@penstock/testkit';
import { authCollections, startAuth } from '../src/index.ts';
import type { AuthOptions } from '../src/start.ts';

export { Browser, type Answer };

export const JWT_SECRET = 'a-test-secret-of-more-than-32-bytes!';
export const CLIENT = { clientId: 'client-1', clientSecret: 'client-secret-1' } as const;
export const ALICE = {
  id: 7,
  login: 'alice',
  name: 'Alice A.',
  email: 'alice@example.org',
  avatarUrl: 'https://host.example/alice.png',
} as const;
const MEBIBYTE = 1024 * 1024;

export interface World {
  readonly broker: TestBroker;
  readonly bus: Bus;
  readonly store: DocumentStore;
  readonly host: FakeGitHost;
  readonly audit: AuditEntry[];
  /** Milliseconds that the server's clock is ahead of ours. */
  aheadMs: number;
  /** Milliseconds that have passed unseen: what counts them by a clock that nobody sets takes these for passed too. */
  passedMs: number;
  /** A server of its own on the same store; with the fake host as GitHub unless told otherwise. */
  server(options?: Partial<AuthOptions>): Promise<TestServer>;
  /** Closes the servers of the last test and forgets what it set. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export interface TestServer {
  readonly url: string;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
}

export async function makeWorld(): Promise<World> {
  const broker = await startTestBroker();
  const folder = await mkdtemp(join(tmpdir(), 'penstock-auth-'));
  const bus = await connectBus({ servers: broker.url, name: 'auth' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MEBIBYTE, logsBytesMax: 64 * MEBIBYTE });
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...authCollections, cloneSecretsSpec],
    synchronous: 'normal',
  });
  const host = await startFakeGitHost({ ...CLIENT, account: ALICE });
  const closing: (() => Promise<unknown>)[] = [];
  const audit: AuditEntry[] = [];
  const world: World = {
    broker,
    bus,
    store,
    host,
    audit,
    aheadMs: 0,
    passedMs: 0,
    async server(options = {}) {
      const app = buildServer({ corsOrigins: [], connectionsMax: 1_000, log: silentLog });
      let url = '';
      const auth = startAuth({
        bus,
        store,
        jwtSecret: JWT_SECRET,
        mode: 'development',
        baseUrl: () => url,
        log: silentLog,
        provider: { provider: 'github', baseUrl: host.url, apiUrl: host.url, ...CLIENT },
        admins: ['root@example.org', 'boss'],
        defaultTier: 'free',
        audit: { record: (entry) => void audit.push(entry) },
        now: () => Date.now() + world.aheadMs,
        bootNow: () => bootMs() + world.passedMs,
        ...options,
      });
      await auth.addRoutes(app);
      url = await app.listen({ host: '127.0.0.1', port: 0 });
      closing.push(
        () => app.close(),
        () => auth.close(),
      );
      return {
        url,
        post: (path, body = {}, headers = {}) =>
          asked(`${url}${path}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...headers },
            body: JSON.stringify(body),
          }),
        get: (path, headers = {}) => asked(`${url}${path}`, { headers }),
      };
    },
    async reset() {
      for (const close of closing.splice(0)) await close();
      Object.assign(host, {
        device: 'pending',
        consent: 'granted',
        broken: false,
        isPublicClient: false,
        idTokenFault: 'none',
        account: ALICE,
      });
      host.requests.length = 0;
      audit.length = 0;
      world.aheadMs = world.passedMs = 0;
    },
    async close() {
      await world.reset();
      await host.stop();
      await bus.close();
      await store.close();
      await broker.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return world;
}

/** The tokens of an address like `…/auth/callback#access_token=…`. */
export function fragmentOf(url: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(new URL(url).hash.slice(1)));
}

export const isArrival = (url: string): boolean => new URL(url).pathname === '/auth/callback';

/** A login through the browser, to the address with the tokens. */
export async function loginByWeb(server: TestServer, browser = new Browser()): Promise<Record<string, string>> {
  const { url } = await browser.follow(`${server.url}/auth/web/login`, {}, isArrival);
  return fragmentOf(url);
}

/** The same, but for some methods. */
export function instead<T extends object>(of: T, methods: object): T {
  return new Proxy(of, {
    get: (target, name) => {
      const value: unknown = Reflect.get(name in methods ? methods : target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The same store, in which `meanwhile` comes between a list of that collection and what is made of it. */
export function afterEachList(
  store: DocumentStore,
  name: string,
  meanwhile: (rows: readonly { readonly id: string }[]) => Promise<unknown>,
): DocumentStore {
  return afterEach(store, name, 'list', (rows) => meanwhile(rows as readonly { readonly id: string }[]));
}

/** The same for the reading of one. */
export function afterEachGet(store: DocumentStore, name: string, meanwhile: () => Promise<unknown>): DocumentStore {
  return afterEach(store, name, 'get', meanwhile);
}

function afterEach(
  store: DocumentStore,
  name: string,
  method: 'get' | 'list',
  meanwhile: (found: unknown) => Promise<unknown>,
): DocumentStore {
  return instead(store, {
    collection: (spec: CollectionSpec) => {
      const collection = store.collection(spec);
      if (spec.name !== name) return collection;
      const read = async (...asked: never[]): Promise<unknown> => {
        const found = await (collection[method] as (...asked: never[]) => Promise<unknown>)(...asked);
        await meanwhile(found);
        return found;
      };
      return instead(collection, { [method]: read });
    },
  });
}
