/** `penstock runner` as a user starts it on a machine: a process with a folder of its own, attached to a server by a token (P37). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileOfCommand } from './command.ts';

export interface RunnerMachine {
  readonly child: ChildProcess;
  readonly dataDir: string;
  /** Its exit code. */
  readonly ended: Promise<unknown>;
}

export interface RunnerMachineOptions {
  /** Holds the folder and the token file of each machine. */
  readonly folder: string;
  readonly name: string;
  readonly server: string;
  readonly token: string;
  /** The token itself stands in the command line. Default: it is read from a file. */
  readonly isTokenTyped?: boolean;
  readonly arguments?: readonly string[];
  /** A command that ends by running the one it is followed by, in its own process. */
  readonly through?: readonly string[];
  /** Called at once, so that it can be ended whatever comes. */
  started(child: ChildProcess): void;
}

/** Resolves once it says that it is a runner; rejects where it ends before. */
export async function attachMachine(options: RunnerMachineOptions): Promise<RunnerMachine> {
  const { folder, name, server, token } = options;
  const [tokenFile, dataDir] = [join(folder, `${name}.token`), join(folder, name)];
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  const given = options.isTokenTyped === true ? ['--token', token] : ['--token-file', tokenFile];
  const run = [
    process.execPath,
    fileOfCommand('runner'),
    'runner',
    '--server',
    server,
    ...given,
    '--data-dir',
    dataDir,
  ];
  const [file = '', ...args] = [...(options.through ?? []), ...run, ...(options.arguments ?? [])];
  const child = spawn(file, args, {
    env: {
      ...process.env,
      SERVICE_MODE: 'development',
      SERVICE_STAGE_UIDS: 'off',
      SERVICE_SLOTS: '1',
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  options.started(child);
  const ended = once(child, 'exit').then(([code]) => code as unknown);
  let output = '';
  const { promise, resolve } = Promise.withResolvers<void>();
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes('This machine is the runner')) resolve();
  });
  await Promise.race([
    promise,
    ended.then((code) => {
      throw new Error(`penstock runner ended with ${String(code)}: ${output}`);
    }),
  ]);
  return { child, dataDir, ended };
}
