/**
 * The cluster as the executor sees it: one namespace of it, by `@kubernetes/client-node`. Every call has a deadline, and every
 * refusal is a `ClusterError`.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { PassThrough, type Readable } from 'node:stream';
import {
  ApiException,
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type V1Pod,
  type V1Secret,
} from '@kubernetes/client-node';
import { WebSocketHandler } from '@kubernetes/client-node/dist/web-socket-handler.js';
import { within } from '@penstock/async';
import { ClusterError, NoCluster } from '../errors.ts';

const REQUEST_MS = 10_000;
/** An exec that is not open by then: its node is slow, or gone. */
const OPEN_MS = 10_000;
/** Watches end by themselves after this, before the client takes 30 s of silence for a dead connection. */
const WATCH_SECS = 25;

export interface ExecSocket {
  /** Resolves when the connection has taken it. */
  send(bytes: Uint8Array): Promise<void>;
  /** Of the command's standard input. */
  endInput(): Promise<void>;
  /** Nothing more is read until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

interface ExecHandlers {
  onStdout(bytes: Buffer): void;
  onStderr(bytes: Buffer): void;
  /** `status`: what the API server said of the command's ending, if anything. Called once. */
  onClose(status: ExecStatus | null): void;
}

export interface ExecStatus {
  readonly status?: string;
  readonly message?: string;
}

type PodEvent = { readonly type: 'put' | 'gone'; readonly pod: V1Pod };

interface PodList {
  readonly pods: readonly V1Pod[];
  readonly version: string;
}

interface LogOptions {
  readonly sinceTime: string | undefined;
  /** Also what comes from now on. */
  readonly follow: boolean;
  readonly signal: AbortSignal;
}

export interface Cluster {
  createPod(pod: V1Pod): Promise<V1Pod>;
  readPod(name: string): Promise<V1Pod>;
  /** Gone already is well. */
  deletePod(name: string, graceSecs: number): Promise<void>;
  listPods(selector: string): Promise<PodList>;
  /** Events after a version, until the server ends it or the signal does. @throws ClusterError; 410: the version is too old */
  watchPods(selector: string, version: string, onEvent: (event: PodEvent) => void, signal: AbortSignal): Promise<void>;
  createSecret(secret: V1Secret): Promise<void>;
  /** So that it goes with its Pod. */
  giveSecret(name: string, owner: V1Pod): Promise<void>;
  deleteSecrets(selector: string): Promise<void>;
  exec(pod: string, container: string, command: readonly string[], handlers: ExecHandlers): Promise<ExecSocket>;
  /** With a timestamp before each line. */
  readLog(pod: string, container: string, how: LogOptions): Promise<Readable>;
}

export interface ClusterSettings {
  readonly namespace: string;
  /** Absent: as `kubectl` finds it, and in a Pod its service account. */
  readonly kubeconfig?: string | undefined;
}

/** @throws NoCluster */
export function openCluster({ namespace, kubeconfig }: ClusterSettings): Cluster {
  return new KubernetesCluster(kubeConfigOf(kubeconfig), namespace);
}

/** Of that file, or as `kubectl` finds it, and in a Pod its service account. @throws NoCluster */
export function kubeConfigOf(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
  } catch (error) {
    // What is behind the first line are lines of the file, which may have a token in them.
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new NoCluster(`the kubeconfig cannot be read: ${reason}`);
  }
  if (config.getCurrentCluster() === null) throw new NoCluster('the kubeconfig names no cluster');
  return config;
}

class KubernetesCluster implements Cluster {
  readonly #config: KubeConfig;
  readonly #namespace: string;
  readonly #api: CoreV1Api;

  constructor(config: KubeConfig, namespace: string) {
    this.#config = config;
    this.#namespace = namespace;
    this.#api = config.makeApiClient(CoreV1Api);
  }

  createPod(pod: V1Pod): Promise<V1Pod> {
    return called('creating a Pod', this.#api.createNamespacedPod({ namespace: this.#namespace, body: pod }));
  }

  readPod(name: string): Promise<V1Pod> {
    return called('reading a Pod', this.#api.readNamespacedPod({ namespace: this.#namespace, name }));
  }

  async deletePod(name: string, graceSecs: number): Promise<void> {
    try {
      await called(
        'deleting a Pod',
        this.#api.deleteNamespacedPod({ namespace: this.#namespace, name, gracePeriodSeconds: graceSecs }),
      );
    } catch (error) {
      if (!(error instanceof ClusterError) || error.code !== 404) throw error;
    }
  }

  async listPods(labelSelector: string): Promise<PodList> {
    const list = await called(
      'listing Pods',
      this.#api.listNamespacedPod({ namespace: this.#namespace, labelSelector }),
    );
    return { pods: list.items, version: list.metadata?.resourceVersion ?? '0' };
  }

  watchPods(
    labelSelector: string,
    resourceVersion: string,
    onEvent: (event: PodEvent) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const watch = new Watch(this.#config);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const query = { labelSelector, resourceVersion, timeoutSeconds: WATCH_SECS };
    const begun = watch.watch(
      `/api/v1/namespaces/${this.#namespace}/pods`,
      query,
      (type, object: unknown) => {
        if (type === 'ADDED' || type === 'MODIFIED') onEvent({ type: 'put', pod: object as V1Pod });
        else if (type === 'DELETED') onEvent({ type: 'gone', pod: object as V1Pod });
        else if (type === 'ERROR') {
          const { code, message } = object as { code?: number; message?: string };
          reject(new ClusterError(code ?? 0, message ?? 'the watch failed'));
        }
      },
      (error: unknown) => (error ? reject(asClusterError('watching Pods', error)) : resolve()),
    );
    const abort = (): void => void begun.then((controller) => controller.abort()).catch(() => {});
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    return promise.finally(() => {
      signal.removeEventListener('abort', abort);
      abort();
    });
  }

  async createSecret(secret: V1Secret): Promise<void> {
    await called('creating a Secret', this.#api.createNamespacedSecret({ namespace: this.#namespace, body: secret }));
  }

  async giveSecret(name: string, { metadata }: V1Pod): Promise<void> {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: metadata?.name, uid: metadata?.uid }];
    await called(
      'changing a Secret',
      this.#api.patchNamespacedSecret(
        { namespace: this.#namespace, name, body: { metadata: { ownerReferences } } },
        setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
      ),
    );
  }

  async deleteSecrets(labelSelector: string): Promise<void> {
    await called(
      'deleting Secrets',
      this.#api.deleteCollectionNamespacedSecret({ namespace: this.#namespace, labelSelector }),
    );
  }

  async exec(pod: string, container: string, command: readonly string[], handlers: ExecHandlers): Promise<ExecSocket> {
    // The client ends these streams when a server closes one: they must not be those of this process.
    const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    const query = new URLSearchParams([
      ['container', container],
      ...command.map((word): [string, string] => ['command', word]),
      ['stdin', 'true'],
      ['stdout', 'true'],
      ['stderr', 'true'],
    ]);
    let status: ExecStatus | null = null;
    const opening = new WebSocketHandler(this.#config, undefined, streams).connect(
      `/api/v1/namespaces/${this.#namespace}/pods/${encodeURIComponent(pod)}/exec?${query}`,
      null,
      (stream, bytes) => {
        if (stream === WebSocketHandler.StdoutStream) handlers.onStdout(bytes);
        else if (stream === WebSocketHandler.StderrStream) handlers.onStderr(bytes);
        else if (stream === WebSocketHandler.StatusStream) status = parseStatus(bytes);
        return true;
      },
    );
    const socket = await within(
      OPEN_MS,
      opening.catch((error: unknown) => {
        throw asClusterError('opening a line to a Pod', error);
      }),
      () => {
        opening.then(
          (late) => late.terminate(),
          () => {},
        );
        throw new ClusterError(0, `a line to a Pod was not open within ${OPEN_MS / 1000} s`);
      },
    );
    socket.onerror = () => socket.terminate();
    if (socket.readyState > socket.OPEN) handlers.onClose(status);
    else socket.onclose = () => handlers.onClose(status);
    const send = (message: Buffer): Promise<void> =>
      new Promise((resolve, reject) => {
        socket.send(message, (error?: Error) =>
          error ? reject(asClusterError('writing to a Pod', error)) : resolve(),
        );
      });
    return {
      send: (bytes) => send(Buffer.concat([Buffer.of(WebSocketHandler.StdinStream), bytes])),
      endInput: () => send(Buffer.of(WebSocketHandler.CloseStream, WebSocketHandler.StdinStream)),
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      close: () => socket.terminate(),
    };
  }

  /** By a request of our own: that of the client ends this process when a connection breaks, for nobody hears its error. */
  async readLog(pod: string, container: string, { sinceTime, follow, signal }: LogOptions): Promise<Readable> {
    const query = new URLSearchParams({ container, follow: String(follow), timestamps: 'true' });
    if (sinceTime !== undefined) query.set('sinceTime', sinceTime);
    const path = `/api/v1/namespaces/${this.#namespace}/pods/${encodeURIComponent(pod)}/log?${query}`;
    const url = new URL(`${this.#config.getCurrentCluster()?.server ?? ''}${path}`);
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request =
      url.protocol === 'http:' ? httpRequest(url, { ...options, signal }) : httpsRequest(url, { ...options, signal });
    request.once('response', resolve);
    request.on('error', reject);
    request.end();
    const response = await called('reading a log', promise).catch((error: unknown) => {
      request.destroy();
      throw error;
    });
    if (response.statusCode === 200) return response;
    response.resume();
    throw new ClusterError(response.statusCode ?? 0, `reading a log: status ${response.statusCode}`);
  }
}

/** With a deadline. @throws ClusterError */
export function called<T>(what: string, call: Promise<T>): Promise<T> {
  return within(
    REQUEST_MS,
    call.catch((error: unknown) => {
      throw asClusterError(what, error);
    }),
    () => {
      throw new ClusterError(0, `${what}: no answer of the API server within ${REQUEST_MS / 1000} s`);
    },
  );
}

/** The client leaves the body of a refusal as text; what people are told is its message alone. */
function asClusterError(what: string, error: unknown): ClusterError {
  if (error instanceof ClusterError) return error;
  if (error instanceof ApiException)
    return new ClusterError(error.code, `${what}: ${messageOf(error.body) ?? `status ${error.code}`}`, {
      cause: error,
    });
  const { statusCode, error: inner } = error as { statusCode?: unknown; error?: unknown };
  const cause = inner ?? error;
  const code = typeof statusCode === 'number' ? statusCode : 0;
  return new ClusterError(code, `${what}: ${sayOf(cause)}`, { cause });
}

function sayOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}

function messageOf(body: unknown): string | undefined {
  try {
    const value: unknown = typeof body === 'string' ? JSON.parse(body) : body;
    const { message } = value as { message?: unknown };
    return typeof message === 'string' ? message : undefined;
  } catch {
    return undefined;
  }
}

function parseStatus(bytes: Buffer): ExecStatus | null {
  try {
    return JSON.parse(bytes.toString('utf8')) as ExecStatus;
  } catch {
    return null;
  }
}
