/**
 * A container engine as this package uses it: podman or docker, by the API that both speak. What one of them alone can do, or
 * takes in another form, is behind the dialect.
 */
import { unlessAborted } from '@penstock/async';
import type { EngineClient } from './engine-client.ts';
import { complaintOf } from './engine-client.ts';
import { EngineFailed, ImageFailed } from './errors.ts';
import type { StageImage, StageUser } from '../contract/port.ts';

interface ContainerMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

export interface ContainerLimits {
  readonly cpu?: number | undefined;
  readonly memoryBytes?: number | undefined;
  readonly processesMax: number;
  readonly openFilesMax: number;
  /** Of one file. */
  readonly fileBytesMax?: number | undefined;
  readonly userProcessesMax: number;
}

export interface ContainerRequest {
  readonly name: string;
  /** The id of an image that is there. */
  readonly image: string;
  readonly labels: Readonly<Record<string, string>>;
  /** In the place of the image's own entrypoint and command. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** `uid:gid`, or absent for the image's own. */
  readonly user?: string | undefined;
  /** The number that the engine's owner has inside, where the engine maps users; absent: root's. */
  readonly isOwnerInside?: StageUser | undefined;
  readonly mounts: readonly ContainerMount[];
  readonly network: { readonly kind: 'own' | 'none' } | { readonly kind: 'of'; readonly container: string };
  /** Names that mean this container itself. */
  readonly hosts: readonly string[];
  readonly capabilities: readonly string[];
  readonly limits: ContainerLimits;
  /** A file; absent: the engine's own profile. */
  readonly seccompProfile?: string | undefined;
}

export interface ContainerState {
  readonly pid: number;
  readonly isRunning: boolean;
  readonly exitCode: number;
  readonly isOutOfMemory: boolean;
}

/** What an image starts by itself. */
export interface ImageDescription {
  readonly id: string;
  readonly argv: readonly string[];
  readonly user: string;
}

export interface EngineDialect {
  readonly createPath: (name: string) => string;
  readonly createBody: (request: ContainerRequest) => unknown;
  /** Whether no two such containers may be asked for at a time. */
  readonly isMadeAlone?: ((request: ContainerRequest) => boolean) | undefined;
  /** Makes the container's first process without starting it. Absent: it has none before it starts. */
  readonly initPath?: ((name: string) => string) | undefined;
}

const VERSION = '/v1.40';
/** A large image over a slow line. */
/** One that says nothing for so long to a look may answer the next one. */
const LOOK_MS_MAX = 10_000;
const PULL_MS_MAX = 15 * 60_000;

export class Engine {
  readonly #client: EngineClient;
  readonly #dialect: EngineDialect;
  /** The end of the last turn of those that are made one at a time. Never rejects. */
  #lastAlone: Promise<unknown> = Promise.resolve();

  constructor(client: EngineClient, dialect: EngineDialect) {
    this.#client = client;
    this.#dialect = dialect;
  }

  /**
   * `onAsked`: it may be there from now on. An answer is waited for then, whatever the signal says: a call that is broken off may make one
   * all the same. @throws the signal's reason, before it is asked for
   */
  async create(request: ContainerRequest, signal: AbortSignal, onAsked: () => void = () => {}): Promise<void> {
    const { createPath, createBody, isMadeAlone } = this.#dialect;
    const make = async (): Promise<void> => {
      signal.throwIfAborted();
      onAsked();
      await this.#client.json({ method: 'POST', path: createPath(request.name), body: createBody(request) }, [201]);
    };
    await (isMadeAlone?.(request) === true ? this.#alone(make, signal) : make());
  }

  /** Once all before it are over; who is not wanted any more leaves at once. */
  async #alone(make: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const before = this.#lastAlone;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    this.#lastAlone = before.then(() => over);
    try {
      await unlessAborted(before, signal);
      await make();
    } finally {
      resolve();
    }
  }

  /** Where the engine can: the container's first process is there afterwards, and waits for `start`. */
  async init(name: string): Promise<void> {
    const { initPath } = this.#dialect;
    if (initPath !== undefined) await this.#client.json({ method: 'POST', path: initPath(name) }, [204, 304]);
  }

  async start(name: string): Promise<void> {
    await this.#client.json({ method: 'POST', path: `${VERSION}/containers/${name}/start` }, [204, 304]);
  }

  /** Null: there is no such container. */
  async inspect(name: string): Promise<ContainerState | null> {
    const path = `${VERSION}/containers/${name}/json`;
    const { status, text } = await this.#client.call({ method: 'GET', path, timeoutMs: LOOK_MS_MAX });
    if (status === 404) return null;
    if (status !== 200)
      throw new EngineFailed(`a container could not be looked at: ${complaintOf(status, text)}`, status);
    const { State: state } = JSON.parse(text) as { State: Record<string, unknown> };
    return {
      pid: Number(state['Pid'] ?? 0),
      isRunning: state['Running'] === true,
      exitCode: Number(state['ExitCode'] ?? 0),
      isOutOfMemory: state['OOMKilled'] === true,
    };
  }

  /** The folder of this machine that holds what a container writes into its own file system; undefined: the engine does not say. */
  async coverOf(name: string): Promise<string | undefined> {
    const found = await this.#client.json({ method: 'GET', path: `${VERSION}/containers/${name}/json` });
    const folder = (found as { GraphDriver?: { Data?: { UpperDir?: unknown } | null } }).GraphDriver?.Data?.UpperDir;
    return typeof folder === 'string' && folder !== '' ? folder : undefined;
  }

  /** Bytes that a container has written into its own file system: it takes a walk over them. */
  async writtenBytes(name: string): Promise<number> {
    const found = await this.#client.json({ method: 'GET', path: `${VERSION}/containers/${name}/json?size=true` });
    return Number((found as { SizeRw?: number | null }).SizeRw ?? 0);
  }

  async kill(name: string): Promise<void> {
    // 409: it does not run.
    await this.#client.json(
      { method: 'POST', path: `${VERSION}/containers/${name}/kill?signal=KILL` },
      [204, 404, 409, 500],
    );
  }

  /** Also one that runs. Resolves when it is not there. */
  async remove(name: string): Promise<void> {
    await this.#client.json(
      { method: 'DELETE', path: `${VERSION}/containers/${name}?force=true&v=true` },
      [200, 204, 404],
    );
  }

  /** Names of the containers with this label, whether they run or not, and their labels. */
  async list(
    label: string,
  ): Promise<readonly { readonly name: string; readonly labels: Readonly<Record<string, string>> }[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
    const found = await this.#client.json({
      method: 'GET',
      path: `${VERSION}/containers/json?all=true&filters=${filters}`,
    });
    return (found as { Id: string; Labels: Record<string, string> | null }[]).map(({ Id, Labels }) => ({
      name: Id,
      labels: Labels ?? {},
    }));
  }

  /** The exit code of a command inside a container that runs. What it prints is read and dropped: detached, podman does not tell its end. */
  async exec(name: string, argv: readonly string[], signal: AbortSignal): Promise<number> {
    const body = { Cmd: argv, AttachStdout: true, AttachStderr: true };
    const created = await this.#client.json({
      method: 'POST',
      path: `${VERSION}/containers/${name}/exec`,
      body,
      signal,
    });
    const path = `${VERSION}/exec/${(created as { Id: string }).Id}`;
    const status = await this.#client.read(
      { method: 'POST', path: `${path}/start`, body: { Detach: false }, signal },
      () => {},
    );
    if (status !== 200) throw new EngineFailed('a command could not be started in a container', status);
    const state = await this.#client.json({ method: 'GET', path: `${path}/json`, signal });
    return (state as { ExitCode: number | null }).ExitCode ?? 0;
  }

  /** Null: it is not there. */
  async imageOf(name: string): Promise<ImageDescription | null> {
    const { status, text } = await this.#client.call({
      method: 'GET',
      path: `${VERSION}/images/${encodeURIComponent(name)}/json`,
    });
    if (status === 404) return null;
    if (status !== 200) throw new ImageFailed(`the image ${name} could not be looked at: ${complaintOf(status, text)}`);
    const { Id: id, Config: config } = JSON.parse(text) as {
      Id: string;
      Config?: { Entrypoint?: string[] | null; Cmd?: string[] | null; User?: string } | null;
    };
    return { id, argv: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])], user: config?.User ?? '' };
  }

  /** Throws ImageFailed with what the registry says. */
  async pull(name: string, auth: StageImage['auth'], signal: AbortSignal): Promise<void> {
    const [reference, tag] = splitTag(name);
    const query = `fromImage=${encodeURIComponent(reference)}${tag === '' ? '' : `&tag=${encodeURIComponent(tag)}`}`;
    const headers = auth === undefined ? {} : { 'x-registry-auth': authHeader(auth) };
    let refused = '';
    const { status, text } = await this.#client.lines(
      { method: 'POST', path: `${VERSION}/images/create?${query}`, headers, timeoutMs: PULL_MS_MAX, signal },
      (line) => {
        const said = errorIn(line);
        if (said !== '') refused = said;
      },
    );
    if (status !== 200) throw new ImageFailed(complaintOf(status, text));
    if (refused !== '') throw new ImageFailed(refused);
  }

  async tag(id: string, repository: string, tag: string): Promise<void> {
    const query = `repo=${encodeURIComponent(repository)}&tag=${encodeURIComponent(tag)}`;
    await this.#client.json({ method: 'POST', path: `${VERSION}/images/${encodeURIComponent(id)}/tag?${query}` });
  }

  async untag(name: string): Promise<void> {
    await this.#client.json(
      { method: 'DELETE', path: `${VERSION}/images/${encodeURIComponent(name)}` },
      [200, 404, 409],
    );
  }

  close(): void {
    this.#client.close();
  }
}

/** Engines want it padded. */
function authHeader(auth: NonNullable<StageImage['auth']>): string {
  return Buffer.from(JSON.stringify(auth)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** Without a tag the API would bring all of them. */
function splitTag(name: string): [string, string] {
  if (name.includes('@')) return [name, ''];
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') ? [name.slice(0, colon), name.slice(colon + 1)] : [name, 'latest'];
}

function errorIn(line: string): string {
  try {
    const { error } = JSON.parse(line) as { error?: unknown };
    return typeof error === 'string' ? error : '';
  } catch {
    return '';
  }
}
