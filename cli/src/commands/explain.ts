import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../command-line/command.ts';
import { explanationOf } from '../output/explanation.ts';
import { wrapped } from '../output/printable-text.ts';
import { EXIT } from '../process/errors.ts';
import { explainedRun } from '../server/explained-run.ts';
import { serverClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { runIdOf } from '../server/run-id.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

const spec: CommandSpec = {
  name: 'explain',
  usage: '[options] <run>',
  about:
    'Says in sentences why a run on a server waits: for which run or stage, at which place in the line, since when, and for how much longer as earlier runs tell. ' +
    'Of a run that failed it says which stages did, shows their last lines, and what has changed since the last run of the pipeline that succeeded: commit, file, ' +
    'extensions, inputs, stages.',
  options: {
    json: { type: 'boolean', text: 'All that is known as JSON on one line, with the sentences.' },
    ...SERVER_OPTIONS,
  },
  positionals: { min: 1, max: 1, missing: 'explain which run? Give its id: penstock explain <run>' },
  environment: SERVER_ENVIRONMENT,
  examples: [
    ['penstock explain 0192f0c1-2b3c-7abc-8def-0123456789ab', 'why it waits, or why it failed'],
    ['penstock explain --json 0192f0c1-… | jq -r .waitingOn[].kind', 'for a program'],
  ],
  exitCodes: [
    [EXIT.success, 'explained, and the run has not failed so far'],
    [EXIT.failure, 'explained, and it ended FAILED or CANCELLED'],
    [EXIT.usage, 'wrong usage'],
    ...SERVER_EXIT_CODES,
  ],
};

export const explainCommand: Command = { spec, run: explain };

async function explain(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { env, terminal } = context;
  const id = runIdOf(args, 'explain');
  const server = serverAddress(args.text('server'), env);
  const client = serverClient(server, await readCredentials(args, context, server));
  const gone = new AbortController();
  void terminal.out.closed.then(() => gone.abort());
  const run = await explainedRun(client, id, gone.signal);
  const sentences = explanationOf(run, Date.now());
  if (args.flag('json')) terminal.print(`${JSON.stringify({ ...run, sentences })}\n`);
  else {
    const columns = terminal.columns(env);
    const lines = sentences.flatMap((line) =>
      columns === undefined || line.startsWith(' ') ? [line] : wrapped(line, columns),
    );
    terminal.print(`${lines.join('\n')}\n`);
  }
  return run.status === 'FAILED' || run.status === 'CANCELLED' ? EXIT.failure : EXIT.success;
}
