import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { ConfigurationError, defaultDataFolder, parseDuration } from '@penstock/config';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { readSecretValue } from '../command-line/secret-value.ts';
import { EXIT, FileError, ServerRefused, UsageError } from '../process/errors.ts';
import { letStagesIn } from '../process/file-modes.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_OPTIONS } from '../server/server-options.ts';

const STANDARD_INPUT = '-';
const IDLE = { minMs: 1_000, maxMs: 30 * 24 * 60 * 60_000 };

export const runnerCommand: Command = {
  spec: {
    name: 'runner',
    usage: '--server <URL> [options]',
    about:
      'Makes this machine a runner of a server, by a runner token (mutation createRunnerToken): its stages run here from then on, and it needs nothing but the ' +
      "server's own address. SIGTERM takes no further stage but those of open runs that have their working folder here, and gives these and the running ones SERVICE_DRAIN. What stages run in, slots, labels and limits are said by " +
      'the same variables as of any runner. Where the token is revoked or over the command ends.',
    options: {
      server: SERVER_OPTIONS.server,
      token: {
        type: 'string',
        value: 'TOKEN',
        text: 'The runner token itself, where nobody else is on the machine: others can read it in the list of processes. Better is --token-file or SERVICE_RUNNER_TOKEN.',
      },
      'token-file': {
        type: 'string',
        value: 'FILE',
        text: 'A file that holds the runner token; - for standard input. Without either SERVICE_RUNNER_TOKEN.',
      },
      'data-dir': {
        type: 'string',
        value: 'DIR',
        text: 'Where the runner keeps its key, the folders of runs and what is not sent yet; default SERVICE_DATA_DIR, else penstock-runner beside the folder of a server.',
      },
      once: {
        type: 'boolean',
        text: 'Serve the run of the first stage that comes, with all slots and no other run, and end with it.',
      },
      'idle-timeout': {
        type: 'string',
        value: 'TIME',
        text: 'End when there has been nothing to do for so long, such as 5m: no stage, and no open run with a folder here.',
      },
    },
    positionals: { min: 0, max: 0, missing: '' },
    environment: [
      ['SERVICE_RUNNER_TOKEN', 'the runner token, where neither --token nor --token-file is given'],
      ['SERVICE_URL', 'the address of the server'],
      ['SERVICE_SLOTS', 'how many stages at a time'],
      ['SERVICE_RUNNER_LABELS', 'of the labels that the token names, those that this machine has; default all'],
      ['SERVICE_DRAIN', 'how long running stages, and runs with their folder here, have after SIGTERM; default 10m'],
    ],
    examples: [
      ['penstock runner --server https://ci.example.org --token-file token', 'until it is told to stop'],
      [
        'penstock runner --server https://ci.example.org --token-file - --idle-timeout 5m < token',
        'until there is nothing to do',
      ],
      [
        'penstock runner --server https://ci.example.org --token-file token --once',
        'for one run, on a machine that is made for it',
      ],
    ],
    exitCodes: [
      [EXIT.success, 'stopped by a signal after it had drained, idle for long enough, or its one run has ended'],
      [EXIT.usage, 'wrong usage or configuration'],
      [EXIT.refused, 'the token is not taken any more, or this machine cannot keep stages apart'],
    ],
  },
  async run(args: ParsedArguments, { env, terminal }: CommandContext) {
    const server = serverAddress(args.text('server'), env);
    if (!server.isEncrypted && !server.isLoopback)
      terminal.note(
        `penstock: warning: ${server.base} is not encrypted: whoever listens reads the token, and the output of stages`,
      );
    const idleMs = idleTime(args.text('idle-timeout'));
    const token = await tokenOf(args, env, terminal);
    const dataDir = resolve(
      args.text('data-dir') ?? (env['SERVICE_DATA_DIR'] || join(dirname(defaultDataFolder(env)), 'penstock-runner')),
    );
    const [{ runFleetRunner }, { makeDataFolder }, { lockDataFolder, DataFolderInUse }] = await Promise.all([
      import('@penstock/runner'),
      import('@penstock/standalone/data-folder'),
      import('@penstock/standalone/data-lock'),
    ]);
    letStagesIn();
    makeDataFolder(dataDir);
    const lock = locked(() => lockDataFolder(dataDir, 'penstock runner or serve'), DataFolderInUse);
    try {
      const end = await runFleetRunner({
        server: server.base,
        token,
        dataDir,
        idleMs,
        once: args.flag('once'),
        env,
        stopping: stopSignal(),
        print: (line) => terminal.print(`${line}\n`),
      });
      if (end.kind === 'refused') throw new ServerRefused(end.why);
      if (end.kind === 'served') terminal.note('Its one run has ended, and so has this runner.');
      if (end.kind === 'idle') terminal.note('There was nothing to do for long enough: this runner has ended.');
      return EXIT.success;
    } catch (error) {
      if (error instanceof ConfigurationError) throw new UsageError(error.message, 'runner');
      throw error;
    } finally {
      lock.release();
    }
  },
};

function idleTime(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const parsed = parseDuration(text, IDLE);
  if ('problem' in parsed) throw new UsageError(`--idle-timeout ${parsed.problem}`, 'runner');
  return parsed.value;
}

async function tokenOf(
  args: ParsedArguments,
  env: CommandContext['env'],
  terminal: CommandContext['terminal'],
): Promise<string> {
  const [inArguments, file] = [args.text('token'), args.text('token-file')];
  if (inArguments !== undefined && file !== undefined)
    throw new UsageError("'--token' and '--token-file' both name a runner token: give one", 'runner');
  if (inArguments !== undefined) {
    terminal.note(
      'penstock: warning: others on this machine can read --token in the list of processes; --token-file and SERVICE_RUNNER_TOKEN they cannot',
    );
    // It stands in place of the arguments there from now on.
    process.title = 'penstock runner';
  }
  const given =
    inArguments ??
    (file === undefined
      ? (env['SERVICE_RUNNER_TOKEN'] ?? '')
      : file === STANDARD_INPUT
        ? await readSecretValue(process.stdin, terminal, 'the runner token')
        : readTokenFile(file));
  const token = given.trim();
  if (token === '')
    throw new UsageError(
      'there is no runner token: name a file that holds one with --token-file, or set SERVICE_RUNNER_TOKEN',
      'runner',
    );
  // A header takes no other; a server that is asked with one looks as if it were away.
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new UsageError('the runner token is none: a token is one line of visible characters', 'runner');
  return token;
}

function readTokenFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new FileError(`the token file ${file} cannot be read`, { cause: error });
  }
}

function locked<T>(lock: () => T, InUse: new (...args: never[]) => Error): T {
  try {
    return lock();
  } catch (error) {
    if (error instanceof InUse) throw new FileError(error.message);
    throw error;
  }
}

/** A second signal ends the process at once. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort();
    });
  return stopping.signal;
}
