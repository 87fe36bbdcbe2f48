import { wholeNumber } from '../command-line/arguments.ts';
import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../command-line/command.ts';
import { nearestWord } from '../command-line/nearest.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { FOLLOW_OPTIONS, followRun } from '../server/follow-run.ts';
import { findRun } from '../server/graphql.ts';
import { serverClient } from '../server/http-client.ts';
import { noSuchRun, runIdOf } from '../server/run-id.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const TAIL_LINES_MAX = 100_000;

const spec: CommandSpec = {
  name: 'logs',
  usage: '[options] <run> [stage]',
  about:
    'Shows the logs of a run on a server from their beginning, and with `--follow` goes on to its end. When the connection is cut it comes back and continues where ' +
    'it was: no line is missing and none comes twice. Of one stage it prints that stage’s lines and nothing else; the name of a matrix or of a use of an extension ' +
    'stands for all that came of it.',
  options: {
    follow: { type: 'boolean', short: 'f', text: 'Go on as the run does, until it has ended, or the stage has.' },
    tail: { type: 'string', short: 'n', value: 'N', text: 'Of what there is so far, only the last N lines.' },
    ...FOLLOW_OPTIONS,
    ...SERVER_OPTIONS,
  },
  positionals: { min: 1, max: 2, missing: 'logs of which run? Give its id: penstock logs <run>' },
  environment: SERVER_ENVIRONMENT,
  examples: [
    ['penstock logs -f 0192f0c1-2b3c-7abc-8def-0123456789ab', 'everything, then live'],
    ['penstock logs 0192f0c1-… build > build.log', 'the output of one stage, in a file'],
    ['penstock logs -f -n 20 -t 0192f0c1-…', 'the last 20 lines and what comes, with times'],
    ['penstock logs --json 0192f0c1-… | jq .', 'what there is so far, for a program'],
  ],
  exitCodes: [
    [EXIT.success, 'the run (with a stage: the stage) has not failed so far'],
    [EXIT.failure, 'it ended otherwise'],
    [EXIT.usage, 'wrong usage, or the run has no such stage'],
    ...SERVER_EXIT_CODES,
    [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
  ],
};

export const logsCommand: Command = { spec, run: logs };

async function logs(args: ParsedArguments, context: CommandContext): Promise<number> {
  const id = runIdOf(args, 'logs');
  const given = args.text('tail');
  const tail = given === undefined ? undefined : wholeNumber(spec, 'tail', given, { min: 0, max: TAIL_LINES_MAX });
  const server = serverAddress(args.text('server'), context.env);
  const client = serverClient(server, await readCredentials(args, context, server));
  // The run is also asked for the names of all stages, which align the prefixes.
  const run = await findRun(client, id);
  if (run === undefined) throw noSuchRun(id, server);
  const only = stagesNamed(args.positionals[1], run.stages);
  return await followRun({ client, run, follow: args.flag('follow'), args, context, only, tail });
}

/** The stage of that name, else the expansions of the matrix or the steps of the extension that bears it. */
function stagesNamed(name: string | undefined, stages: readonly string[]): readonly string[] | undefined {
  if (name === undefined) return undefined;
  if (stages.includes(name)) return [name];
  const family = stages.filter((stage) => stage.startsWith(`${name} (`) || stage.startsWith(`${name}/`));
  if (family.length > 0) return family;
  const close = nearestWord(name, stages);
  const hint = close === undefined ? `its stages are ${stages.slice(0, 20).join(', ')}` : `did you mean '${close}'?`;
  throw new UsageError(
    `the run has no stage '${printableText(name)}'; ${stages.length === 0 ? 'it has none at all' : printableText(hint)}`,
    'logs',
  );
}
