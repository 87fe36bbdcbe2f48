import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { INPUT_OPTIONS, inputValues } from '../command-line/input-values.ts';
import { readPipelineFile, type PipelineFile } from '../command-line/pipeline-file.ts';
import { colorChoice } from '../command-line/color-options.ts';
import { EXIT, RefusedFile, UsageError } from '../process/errors.ts';
import { wantsColor } from '../output/terminal.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { FOLLOW_OPTIONS, followNewRun } from '../server/follow-run.ts';
import { FileRefusedByServer, rerunPipeline } from '../server/graphql.ts';
import { serverClient } from '../server/http-client.ts';
import { runIdOf } from '../server/run-id.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';
import { problemsText } from './validate.ts';

export const rerunCommand: Command = {
  spec: {
    name: 'rerun',
    usage: '[options] <run>',
    about:
      'Runs a run on a server again, at its commit and with its extensions: all of it, or a part, with what has succeeded taken over. Says the id of the new ' +
      'run and follows its logs to the end. The earlier run is not changed, and may go on. ^C ends the watching, not the run.',
    options: {
      failed: { type: 'boolean', text: 'Only the stages that did not succeed, and all that come after them.' },
      from: {
        type: 'string',
        value: 'STAGE',
        text: 'Only this stage and all that come after it; may be given several times. The name of a matrix, of an extension or of a stage that has added others means all of it; one of these has its full name, as plan/api.',
      },
      file: {
        type: 'string',
        short: 'f',
        value: 'FILE',
        text: 'This pipeline file in place of the run’s own (- is standard input).',
      },
      detach: { type: 'boolean', short: 'd', text: 'Do not follow: print the new run’s id on standard output and go.' },
      ...INPUT_OPTIONS,
      ...FOLLOW_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 1, max: 1, missing: 'run which run again? Give its id: penstock rerun <run>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      [
        'penstock rerun 0192f3c1-7a5e-7b4c-8d21-3f9a5b6c7d8e --failed',
        'what failed, and what would have come after it',
      ],
      [
        'penstock rerun 0192f3c1-7a5e-7b4c-8d21-3f9a5b6c7d8e --from deploy --input target=production',
        'the end of it, with another input',
      ],
      ['penstock rerun 0192f3c1-7a5e-7b4c-8d21-3f9a5b6c7d8e --failed --file fixed.yaml', 'with a file that is mended'],
    ],
    exitCodes: [
      [EXIT.success, 'the new run ended SUCCESS; with --detach: it was accepted'],
      [EXIT.failure, 'the new run ended otherwise'],
      [EXIT.usage, 'the file has problems, or wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused: there is no such run, or nothing of it to run again'],
      [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
    ],
  },
  run: rerun,
};

async function rerun(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal, env, cwd } = context;
  const server = serverAddress(args.text('server'), env);
  const id = runIdOf(args, 'rerun');
  const [from, onlyFailed, inputs] = [args.texts('from'), args.flag('failed'), inputValues(args, 'rerun')];
  if (from.length > 0 && onlyFailed) throw new UsageError('--from and --failed exclude each other', 'rerun');
  const named = args.text('file');
  const file = named === undefined ? undefined : await readPipelineFile(named, cwd);
  const client = serverClient(server, await readCredentials(args, context, server));
  const asked = { id, from, onlyFailed, inputs, yaml: file?.text };
  const run = await rerunPipeline(client, asked, (line) => terminal.note(line)).catch((error: unknown) => {
    if (file === undefined || !(error instanceof FileRefusedByServer)) throw error;
    throw refusedFile(file, error, wantsColor(colorChoice(args), env, terminal.errIsTerminal));
  });
  return await followNewRun({ client, run, args, context });
}

function refusedFile(file: PipelineFile, { diagnostics }: FileRefusedByServer, color: boolean): RefusedFile {
  return new RefusedFile(problemsText(file, diagnostics, color).trimEnd(), EXIT.usage);
}
