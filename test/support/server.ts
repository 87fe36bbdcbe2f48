/** `penstock serve` as a user starts it: a process of its own on a data folder, spoken to through the public API only. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { fileOfCommand } from './command.ts';
import { madeFolder } from './made-folders.ts';

const START_MS = 60_000;
/** The bootstrap is plain JavaScript; a user's server is started by it. */
const { withBoundedMemory } = (await import(fileURLToPath(new URL('../../bootstrap/memory.js', import.meta.url)))) as {
  withBoundedMemory(env: NodeJS.ProcessEnv, command: 'serve'): NodeJS.ProcessEnv;
};

/** All clients of a test have one address, and ask more often than a person does. */
export const NO_RATE_LIMITS = {
  SERVICE_STREAMS_PER_USER: '100000',
  SERVICE_RATE_LIMIT_READ: '0',
  SERVICE_RATE_LIMIT_API: '0',
  SERVICE_RATE_LIMIT_WEBHOOK: '0',
};
/** A test that ends with stages running does not wait for them as a person would. */
const SHORT_DRAIN = { SERVICE_DRAIN: '10s' };
/** Stages speak to their tests by files that only the tests' own user can write; `stage-users.test.ts` has it on. */
const OWN_USER = { SERVICE_STAGE_UIDS: 'off' };

export interface RunningServer {
  readonly url: string;
  readonly pid: number;
  readonly dataDir: string;
  readonly apiKey: string;
  readonly child: ChildProcess;
  /** Everything it has written to its output so far. */
  output(): string;
  graphql<T = Record<string, unknown>>(
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<{ data: T; errors?: { message: string; extensions?: { code?: string } }[] }>;
  /** SIGTERM and wait. */
  stop(): Promise<number | null>;
}

export interface ServerOptions {
  readonly dataDir?: string;
  readonly env?: Record<string, string>;
  readonly arguments?: readonly string[];
  /** A command that ends by running the one it is followed by, in its own process. */
  readonly through?: readonly string[] | undefined;
}

/** Where tests and stages see the same files: a stage's /tmp is its run's own. */
const SHARED_TMP = existsSync('/var/tmp') ? '/var/tmp' : tmpdir();

export function temporaryFolder(prefix = 'penstock-test-'): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(SHARED_TMP, prefix));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }) };
}

/** Detached, so that a signal to a whole group is not theirs: who ends before them has to end them. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGTERM');
});

export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const dataDir = options.dataDir ?? madeFolder(join(SHARED_TMP, 'penstock-data-'));
  const serve = [process.execPath, fileOfCommand('serve'), 'serve', '--listen', '127.0.0.1:0', '--data-dir', dataDir];
  const [file = '', ...args] = [...(options.through ?? []), ...serve, ...(options.arguments ?? [])];
  const child = spawn(file, args, {
    env: withBoundedMemory({ ...process.env, ...NO_RATE_LIMITS, ...SHORT_DRAIN, ...OWN_USER, ...options.env }, 'serve'),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`serve did not start:\n${output}`)), START_MS);
    child.once('exit', (code, signal) => reject(new Error(`serve ended (${code ?? signal}):\n${output}`)));
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        if (output.length < 1_000_000) output += `${line}\n`;
        const address = /listens on (http:\/\/\S+)/.exec(line)?.[1];
        if (address === undefined) return;
        clearTimeout(timer);
        resolve(address);
      });
    }
  });
  child.removeAllListeners('exit').once('exit', () => running.delete(child));
  const apiKey = options.env?.['SERVICE_API_KEY'] ?? readFileSync(join(dataDir, 'api-key'), 'utf8').trim();
  return {
    url,
    dataDir,
    apiKey,
    child,
    pid: child.pid ?? -1,
    output: () => output,
    graphql: async (query, variables = {}) => {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({ query, variables }),
      });
      return (await response.json()) as never;
    },
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      return child.exitCode;
    },
  };
}

export const TRIGGER =
  'mutation ($yaml: String!, $waitSeconds: Int) { triggerPipeline(yaml: $yaml, waitSeconds: $waitSeconds) { run { id status stages { name status reason } } summary { passed failed skipped } } }';

/** Starts a run without waiting for its end; its id. */
export async function trigger(server: RunningServer, yaml: string): Promise<string> {
  const answer = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, { yaml, waitSeconds: 0 });
  if (answer.errors !== undefined) throw new Error(JSON.stringify(answer.errors));
  return answer.data.triggerPipeline.run.id;
}
