/**
 * One service of a cluster as a process of its own. It owns the process, its log file and what the log says of it: the
 * internal port, the API's address, the identities that it has taken in the cluster.
 *
 * SERVICE-PROCESS-1. At most one process at a time; a start while one lives is a mistake of the caller (asserted).
 * SERVICE-PROCESS-2. Processes die with the process that started them, however that ends.
 */
import assert from 'node:assert';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, type WriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileOfCommand } from '../support/command.ts';
import { until } from '../support/wait.ts';

/** Of eight services that start on two busy processors. */
const READY_MS_MAX = 60_000;
const PROBE_MS_MAX = 2_500;

export type ServiceName = 'scheduler' | 'runner' | 'gateway' | 'auth' | 'registry' | 'webhook-ingest';

export interface ServiceProcessOptions {
  readonly service: ServiceName;
  readonly index: number;
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
}

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A name that this process had in the cluster: a scheduler's member id, a runner's session. */
export interface Identity {
  readonly id: string;
  readonly pid: number;
  readonly at: number;
}

export class ServiceProcess {
  readonly service: ServiceName;
  readonly index: number;
  readonly name: string;
  readonly identities: Identity[] = [];
  /** Lines of the levels error and fatal, newest last; for reports. */
  readonly complaints: string[] = [];
  frozen = false;
  #options: ServiceProcessOptions;
  #child: ChildProcess | null = null;
  #log: WriteStream;
  #internalPort: number | undefined;
  #apiUrl: string | undefined;

  constructor(options: ServiceProcessOptions) {
    this.#options = options;
    this.service = options.service;
    this.index = options.index;
    this.name = `${options.service}-${options.index}`;
    this.#log = createWriteStream(options.logFile, { flags: 'a' });
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  get lives(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Where it answers /health and /ready; undefined before it listens. */
  get internalUrl(): string | undefined {
    return this.lives && this.#internalPort !== undefined ? `http://127.0.0.1:${this.#internalPort}` : undefined;
  }

  /** Of a gateway, once it listens. */
  get apiUrl(): string | undefined {
    return this.lives ? this.#apiUrl : undefined;
  }

  start(): void {
    assert(!this.lives, `${this.name} lives already (SERVICE-PROCESS-1)`);
    this.#internalPort = undefined;
    this.#apiUrl = undefined;
    this.frozen = false;
    const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find((file) => existsSync(file));
    const [file = '', ...args] = [
      ...(setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--']),
      process.execPath,
      fileOfCommand('service'),
      'service',
      this.service,
    ];
    // In a session of its own: ^C in a terminal is for the one who started the cluster, who then stops it in order.
    const child = spawn(file, args, {
      env: { ...process.env, ...this.#options.env },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    });
    this.#child = child;
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      this.#log.write(`${line}\n`);
      if (this.#child === child) this.#read(line, child.pid ?? -1);
    });
  }

  /** Resolves when it can do its work. */
  async ready(): Promise<void> {
    await until(
      `${this.name} is ready`,
      async () => {
        if (!this.lives)
          throw new Error(`${this.name} ended before it was ready: ${this.complaints.at(-1) ?? 'see its log'}`);
        return (await this.probe()) === 'ready';
      },
      READY_MS_MAX,
    );
  }

  async probe(): Promise<'ready' | 'not ready' | 'silent'> {
    if (this.internalUrl === undefined) return 'silent';
    try {
      const response = await fetch(`${this.internalUrl}/ready`, { signal: AbortSignal.timeout(PROBE_MS_MAX) });
      await response.arrayBuffer();
      return response.status === 200 ? 'ready' : 'not ready';
    } catch {
      return 'silent';
    }
  }

  /** Resolves when it is gone: with SIGTERM after it has drained. A frozen one is woken for any signal but SIGKILL. */
  async kill(signal: NodeJS.Signals): Promise<ProcessEnd> {
    const child = this.#child;
    if (child === null || !this.lives) return { code: null, signal: null };
    const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
    if (this.frozen && signal !== 'SIGKILL') this.resume();
    child.kill(signal);
    const [code, by] = await ended;
    this.frozen = false;
    return { code, signal: by };
  }

  /** SIGSTOP: the process alone, not what it has started. */
  freeze(): void {
    if (this.lives) this.frozen = this.#child?.kill('SIGSTOP') ?? false;
  }

  resume(): void {
    if (this.lives) this.#child?.kill('SIGCONT');
    this.frozen = false;
  }

  async close(): Promise<void> {
    await this.kill('SIGKILL');
    this.#log.end();
  }

  #read(line: string, pid: number): void {
    let record: { level?: number; msg?: string; port?: number; url?: string; session?: string; member?: string };
    try {
      record = JSON.parse(line) as typeof record;
    } catch {
      this.#complain(line);
      return;
    }
    if (record.msg === 'the internal port is open') this.#internalPort = record.port;
    if (record.msg === 'listens') this.#apiUrl = record.url;
    if (record.msg === 'the runner takes stages' && record.session !== undefined)
      this.identities.push({ id: record.session, pid, at: Date.now() });
    if (record.msg === 'joined' && record.member !== undefined)
      this.identities.push({ id: record.member, pid, at: Date.now() });
    if ((record.level ?? 0) >= 50) this.#complain(line);
  }

  #complain(line: string): void {
    this.complaints.push(line.slice(0, 2_000));
    if (this.complaints.length > 100) this.complaints.shift();
  }
}
