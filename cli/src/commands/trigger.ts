import type { LockEntry } from '@penstock/extension';
import { parsePipeline, resolveInputs, usesOf } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, RefusedFile } from '../process/errors.ts';
import { lockNameOf, readLock } from '../extensions/lock-of-file.ts';
import { badInput, INPUT_OPTIONS, inputValues } from '../command-line/input-values.ts';
import { colorChoice } from '../command-line/color-options.ts';
import { wantsColor } from '../output/terminal.ts';
import { readPipelineFile, type PipelineFile } from '../command-line/pipeline-file.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { FOLLOW_OPTIONS, followNewRun } from '../server/follow-run.ts';
import { FileRefusedByServer, triggerPipeline, type RunOnServer } from '../server/graphql.ts';
import { serverClient, type ServerClient } from '../server/http-client.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';
import { problemsText } from './validate.ts';

export const triggerCommand: Command = {
  spec: {
    name: 'trigger',
    usage: '[options] [file]',
    about:
      'Sends a pipeline file to a server, says the id of its run and follows its logs to the end. The run is durable before its id is shown and needs nobody ' +
      'who watches: ^C ends the watching, not the run.',
    options: {
      detach: { type: 'boolean', short: 'd', text: 'Do not follow: print the run’s id on standard output and go.' },
      ...INPUT_OPTIONS,
      ...FOLLOW_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock trigger', 'the pipeline file of this folder, on the server of this machine'],
      ['penstock trigger --server https://ci.example.org --token-file ~/.config/ci-token', 'on another server'],
      ['id=$(penstock trigger --detach) && penstock logs -f "$id"', 'start now, look later'],
    ],
    exitCodes: [
      [EXIT.success, 'the run ended SUCCESS; with --detach: it was accepted'],
      [EXIT.failure, 'the run ended otherwise'],
      [EXIT.usage, 'the file has problems, or wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused'],
      [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
    ],
  },
  run: trigger,
};

async function trigger(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal, env, cwd } = context;
  const server = serverAddress(args.text('server'), env);
  const inputs = inputValues(args, 'trigger');
  const file = await readPipelineFile(args.positionals[0], cwd);
  const color = wantsColor(colorChoice(args), env, terminal.errIsTerminal);
  // The server says the same, and more of the extensions; here it costs no connection, and the places can be shown.
  const parsed = parsePipeline(file.text, { unresolved: 'accept' });
  if (!parsed.ok) throw new RefusedFile(problemsText(file, parsed.diagnostics, color).trimEnd(), EXIT.usage);
  const resolved = resolveInputs(parsed.definition, inputs);
  if (!resolved.ok) throw badInput(resolved, inputs, 'trigger');
  const client = serverClient(server, await readCredentials(args, context, server));
  const lock = usesOf(file.text).length === 0 ? [] : await readLock(lockNameOf(file, args.positionals[0] === '-'), cwd);
  const run = await send(client, { file, lock, inputs, color }, (line) => terminal.note(line));
  return await followNewRun({ client, run, args, context });
}

interface Sending {
  readonly file: PipelineFile;
  readonly lock: readonly LockEntry[];
  readonly inputs: ReadonlyMap<string, string>;
  readonly color: boolean;
}

async function send(
  client: ServerClient,
  { file, lock, inputs, color }: Sending,
  note: (line: string) => void,
): Promise<RunOnServer> {
  try {
    return await triggerPipeline(client, { yaml: file.text, lock, inputs }, note);
  } catch (error) {
    if (!(error instanceof FileRefusedByServer)) throw error;
    throw new RefusedFile(problemsText(file, error.diagnostics, color).trimEnd(), EXIT.usage);
  }
}
