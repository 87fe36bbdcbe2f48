import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, ServerError, UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { FOLLOW_OPTIONS, followRun } from '../server/follow-run.ts';
import { findRun } from '../server/graphql.ts';
import { serverClient } from '../server/http-client.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';

export const logsCommand: Command = {
  spec: {
    name: 'logs',
    usage: '[options] <run id>',
    about:
      'Shows the logs of a run on a server from their beginning, and follows them to the run’s end. When the connection is cut it comes back and continues where ' +
      'it was: no line is missing and none comes twice.',
    options: {
      'no-follow': { type: 'boolean', text: 'Show what there is so far and go.' },
      ...FOLLOW_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 1, max: 1, missing: 'logs of which run? Give its id: penstock logs <run id>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock logs 0192f0c1-2b3c-7abc-8def-0123456789ab', 'everything, then live'],
      ['penstock logs --json --no-follow 0192f0c1-… | jq .', 'what there is so far, for a program'],
    ],
    exitCodes: [
      [EXIT.success, 'the run ended SUCCESS; with --no-follow also: it still runs'],
      [EXIT.failure, 'it ended otherwise, there is no such run, or the server refused'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.interrupted, 'stopped watching after ^C; the run goes on'],
    ],
  },
  run: logs,
};

async function logs(args: ParsedArguments, context: CommandContext): Promise<number> {
  const id = args.positionals[0]?.toLowerCase() ?? '';
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id))
    throw new UsageError(
      `'${printableText(id)}' is no run id; one looks like 0192f0c1-2b3c-7abc-8def-0123456789ab`,
      'logs',
    );
  const server = serverAddress(args.text('server'), context.env);
  const client = serverClient(server, await readCredentials(args, context, server));
  // The run is also asked for the names of all stages, which align the prefixes.
  const run = await findRun(client, id);
  if (run === undefined)
    throw new ServerError(`there is no run ${printableText(id)} on ${server.base}, or the token may not see it`);
  return await followRun({ client, run, follow: !args.flag('no-follow'), args, context });
}
