/**
 * An API server that is none, on HTTP: as much of it as the executor asks for. Pods run at once, and what their stages do is the test's
 * to say. Each client has a token of its own, so that one of them can be cut off: that is how its process dies.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeGuard } from './fake-guard.ts';
import { FakeSocket } from './web-socket.ts';

interface StoredPod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly labels: Record<string, string> };
  readonly spec: { readonly initContainers?: readonly { readonly name: string }[] };
  status: unknown;
}

interface FakePod {
  readonly pod: StoredPod;
  readonly guard: FakeGuard;
}

export class FakeApi {
  /** Names of Pods in the order in which they were created, and deleted. */
  readonly created: string[] = [];
  readonly deleted: string[] = [];
  /** No Pod can be deleted; how often that was tried. */
  isAway = false;
  refused = 0;
  /** False: guards on a slow node, whose first question comes only when they are asked for it. */
  asksAtOnce = true;
  /** What a service has printed: lines with their stamps. */
  readonly logs = new Map<string, string[]>();
  readonly #server: Server;
  readonly #folder = mkdtempSync(join(tmpdir(), 'penstock-fake-api-'));
  readonly #pods = new Map<string, FakePod>();
  readonly #watchers = new Set<ServerResponse>();
  readonly #sockets = new Map<string, Set<Socket>>();
  readonly #dead = new Set<string>();
  #version = 1;
  readonly #events: { readonly version: number; readonly text: string }[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      if (this.#isOfLiving(request)) void this.#answer(request, response);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
      if (!this.#isOfLiving(request)) return;
      const name = /\/pods\/([^/]+)\/exec/.exec(request.url ?? '')?.[1] ?? '';
      const held = this.#pods.get(name);
      if (held === undefined) socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
      else held.guard.connect(new FakeSocket(request, socket));
    });
  }

  static async start(): Promise<FakeApi> {
    const api = new FakeApi();
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  /** The path of a kubeconfig whose client can be cut off by its name. */
  kubeconfig(client: string): string {
    const path = join(this.#folder, client);
    const { port } = this.#server.address() as AddressInfo;
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      // The client speaks plain HTTP only where nothing is to be verified.
      clusters: [{ name: 'fake', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'runner', user: { token: client } }],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'runner' } }],
      'current-context': 'fake',
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }

  /** Nothing of this client arrives any more, and it hears nothing. */
  cutOff(client: string): void {
    this.#dead.add(client);
    for (const socket of this.#sockets.get(client) ?? []) socket.destroy();
  }

  get pods(): string[] {
    return [...this.#pods.keys()];
  }

  guardOf(name: string): FakeGuard {
    const held = this.#pods.get(name);
    if (held === undefined) throw new Error(`there is no Pod ${name}`);
    return held.guard;
  }

  /** As somebody else does it: at once, and with all that runs in it. */
  remove(name: string): void {
    const held = this.#pods.get(name);
    if (held === undefined) return;
    this.#pods.delete(name);
    this.#tell('DELETED', held.pod);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    for (const client of this.#sockets.keys()) this.cutOff(client);
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #isOfLiving(request: IncomingMessage): boolean {
    const client = (request.headers.authorization ?? '').replace('Bearer ', '');
    const { socket } = request;
    const sockets = this.#sockets.get(client) ?? new Set();
    this.#sockets.set(client, sockets);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    if (this.#dead.has(client)) socket.destroy();
    return !this.#dead.has(client);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request;
    const { pathname, searchParams } = new URL(url, 'http://fake');
    const [, kind, name, part] = /\/namespaces\/[^/]+\/(pods|secrets)(?:\/([^/]+))?(?:\/(\w+))?$/.exec(pathname) ?? [];
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const say = (code: number, body: unknown): void => {
      response.writeHead(code, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    };
    const body = (): unknown => JSON.parse(Buffer.concat(pieces).toString('utf8'));
    if (kind !== 'pods') say(200, { kind: 'Status', status: 'Success' });
    else if (method === 'POST') this.#create(body() as StoredPod, say);
    else if (part === 'log') this.#log(searchParams, response);
    else if (name === undefined && searchParams.has('watch'))
      this.#watch(response, Number(searchParams.get('resourceVersion')));
    else if (name === undefined) {
      const items = [...this.#pods.values()]
        .map(({ pod }) => pod)
        .filter((pod) => isSelected(pod, searchParams.get('labelSelector')));
      say(200, { kind: 'PodList', metadata: { resourceVersion: String(this.#version) }, items });
    } else if (!this.#pods.has(name)) say(404, { kind: 'Status', code: 404, message: `pods "${name}" not found` });
    else if (method === 'DELETE' && this.isAway) {
      this.refused += 1;
      say(503, { kind: 'Status', code: 503, message: 'the server is away' });
    } else if (method === 'DELETE') {
      this.deleted.push(name);
      this.#terminate(name, 137, 'killed');
      this.remove(name);
      say(200, { kind: 'Status', status: 'Success' });
    } else say(200, this.#pods.get(name)?.pod);
  }

  #create(pod: StoredPod, say: (code: number, body: unknown) => void): void {
    const { name } = pod.metadata;
    if (this.#pods.has(name)) return say(409, { kind: 'Status', code: 409, message: `pods "${name}" already exists` });
    const uid = randomUUID();
    const running = { running: { startedAt: new Date().toISOString() } };
    const stored: StoredPod = {
      ...pod,
      metadata: { ...pod.metadata, uid },
      status: {
        containerStatuses: ['guard', 'stage'].map((each) => ({
          name: each,
          image: '',
          restartCount: 0,
          state: running,
        })),
        initContainerStatuses: (pod.spec.initContainers ?? []).map((each) => ({
          name: each.name,
          image: '',
          restartCount: 0,
          started: true,
          state: running,
        })),
      },
    };
    const onEnd = (code: number, message: string): void => this.#terminate(name, code, message);
    const guard = new FakeGuard(uid, onEnd, this.asksAtOnce);
    this.#pods.set(name, { pod: stored, guard });
    this.created.push(name);
    this.#tell('ADDED', stored);
    say(201, stored);
  }

  #terminate(name: string, exitCode: number, message: string): void {
    const held = this.#pods.get(name);
    if (held === undefined) return;
    const terminated = { exitCode, message, reason: exitCode === 0 ? 'Completed' : 'Error' };
    held.pod.status = { containerStatuses: [{ name: 'stage', image: '', restartCount: 0, state: { terminated } }] };
    this.#tell('MODIFIED', held.pod);
  }

  /** From that version on, as a real one. */
  #watch(response: ServerResponse, version: number): void {
    response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
    for (const event of this.#events) if (event.version > version) response.write(event.text);
    this.#watchers.add(response);
    response.once('close', () => this.#watchers.delete(response));
  }

  #tell(type: string, pod: StoredPod): void {
    this.#version += 1;
    const text = `${JSON.stringify({ type, object: pod })}\n`;
    this.#events.push({ version: this.#version, text });
    for (const watcher of this.#watchers) watcher.write(text);
  }

  /** All that it has by now; a follower comes again. */
  #log(query: URLSearchParams, response: ServerResponse): void {
    const since = Date.parse(query.get('sinceTime') ?? '') || 0;
    const lines = (this.logs.get(query.get('container') ?? '') ?? []).filter(
      (line) => Date.parse(line.split(' ')[0] ?? '') >= since,
    );
    response.writeHead(200).end(lines.map((line) => `${line}\n`).join(''));
  }
}

/** Of selectors only equality. */
function isSelected({ metadata }: StoredPod, selector: string | null): boolean {
  return (selector ?? '')
    .split(',')
    .filter(Boolean)
    .every((term) => {
      const [label = '', value] = term.split('=');
      return metadata.labels[label] === value;
    });
}
