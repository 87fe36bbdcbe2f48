/**
 * A real nats-server for a test, with verbs for what can happen to it. It owns a process, its port and a temporary
 * folder; the port stays the same over `kill` and `restart`, so that clients find it again.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { once } from 'node:events';
import { watch } from 'node:fs';

export interface TestBrokerOptions {
  /** More lines for the configuration file, e.g. `authorization { token: t }`. */
  readonly config?: string | undefined;
  /** JetStream's `max_file_store`. Default 1 GiB. */
  readonly storeBytesMax?: number | undefined;
  /** `always`: acknowledged means on disk. Default: the server's own. */
  readonly sync?: 'always' | undefined;
  /** Where its store is; default a folder that ends with it. */
  readonly storeDir?: string | undefined;
}

export interface TestBroker {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly storeDir: string;
  /** SIGTERM, waits for the end, removes the folder. */
  stop(): Promise<void>;
  /** SIGKILL, waits for the end; the store stays. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port and store; resolves when it takes connections. */
  restart(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause(): void;
  resume(): void;
}

const READY_TIMEOUT_MS = 15_000;
/** Each takes about a tenth of a millisecond, and the signal less than one. */
const STOP_LOOKS_MAX = 20_000;
const GIBIBYTE = 1024 ** 3;

/** `SERVICE_NATS_SERVER`, else `nats-server` on the PATH, else what the bootstrap has put into the cache. */
export function brokerBinary(): string {
  const named = process.env['SERVICE_NATS_SERVER'];
  if (named) return named;
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'nats-server'));
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const cached = globSync(join(cache, 'penstock', '**', 'nats-server*'))
    .toSorted()
    .toReversed();
  const found = [...onPath, ...cached].find(isExecutable);
  if (found === undefined) throw new Error('no nats-server: set SERVICE_NATS_SERVER to one, or put it on the PATH');
  return found;
}

export async function startTestBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-broker-'));
  const broker = new Broker(folder, options);
  await broker.start();
  return broker;
}

class Broker implements TestBroker {
  port = -1;
  readonly #folder: string;
  readonly #options: TestBrokerOptions;
  #child: ChildProcess | null = null;
  readonly #killWithUs = (): void => void this.#child?.kill('SIGKILL');

  constructor(folder: string, options: TestBrokerOptions) {
    this.#folder = folder;
    this.#options = options;
    process.on('exit', this.#killWithUs);
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  get storeDir(): string {
    return this.#options.storeDir ?? join(this.#folder, 'store');
  }

  async start(): Promise<void> {
    const ports = join(this.#folder, 'ports');
    await rm(ports, { recursive: true, force: true });
    await mkdir(ports);
    const configFile = join(this.#folder, 'nats.conf');
    await writeFile(configFile, this.#configuration(ports), { mode: 0o600 });
    const [command, ...before] = dyingWithUs();
    const child = spawn(
      command ?? brokerBinary(),
      [...before, ...(command === undefined ? [] : [brokerBinary()]), '-c', configFile],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    this.#child = child;
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4_000);
    });
    this.port = await Promise.race([
      portFrom(ports),
      once(child, 'exit').then(([code]) => {
        throw new Error(`nats-server ended with ${String(code)}: ${output}`);
      }),
    ]);
  }

  async stop(): Promise<void> {
    process.off('exit', this.#killWithUs);
    this.resume();
    await this.#end('SIGTERM');
    await rm(this.#folder, { recursive: true, force: true });
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL');
  }

  restart(): Promise<void> {
    return this.start();
  }

  pause(): void {
    const pid = this.#child?.pid;
    this.#child?.kill('SIGSTOP');
    // The signal is on its way when kill returns: a request that is sent at once could still be answered.
    for (let looks = 0; pid !== undefined && !isStopped(pid) && looks < STOP_LOOKS_MAX; looks += 1);
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  #configuration(ports: string): string {
    return [
      `listen: "127.0.0.1:${this.port}"`,
      `ports_file_dir: ${JSON.stringify(ports)}`,
      `jetstream { store_dir: ${JSON.stringify(this.storeDir)}, max_file_store: ${this.#options.storeBytesMax ?? GIBIBYTE}, max_memory_store: 67108864${this.#options.sync === undefined ? '' : `, sync_interval: ${this.#options.sync}`} }`,
      this.#options.config ?? '',
    ].join('\n');
  }
}

/** Where the kernel can do it, the broker is killed with the test process, however that ends. */
function dyingWithUs(): readonly string[] {
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(isExecutable);
  return setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--'];
}

/** The server writes the file when it takes connections. */
async function portFrom(folder: string): Promise<number> {
  const read = async (): Promise<number | null> => {
    const file = (await readdir(folder)).find((name) => name.endsWith('.ports'));
    if (file === undefined) return null;
    const text = await readFile(join(folder, file), 'utf8');
    const url = /"nats":\s*\[\s*"nats:\/\/[^"]*:(\d+)"/.exec(text)?.[1];
    return url === undefined ? null : Number(url);
  };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const look = (): void => void read().then((port) => port !== null && resolve(port), reject);
  const watcher = watch(folder, look);
  const timer = setTimeout(
    () => reject(new Error(`nats-server was not ready within ${READY_TIMEOUT_MS} ms`)),
    READY_TIMEOUT_MS,
  );
  look();
  try {
    return await promise;
  } finally {
    watcher.close();
    clearTimeout(timer);
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return existsSync(file);
  } catch {
    return false;
  }
}

/** Whether none of its threads runs; true where the machine does not say. */
function isStopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((task) => {
      const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1');
      return 'TtZX'.includes(stat.charAt(stat.lastIndexOf(')') + 2));
    });
  } catch {
    return true;
  }
}
