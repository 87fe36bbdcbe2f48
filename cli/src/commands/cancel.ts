import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT } from '../process/errors.ts';
import { serverClient } from '../server/http-client.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { runIdOf } from '../server/run-id.ts';
import { cancelRun } from '../server/runs.ts';
import { serverAddress } from '../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../server/server-options.ts';

export const cancelCommand: Command = {
  spec: {
    name: 'cancel',
    usage: '[options] <run>',
    about:
      'Cancels a run on a server: nothing of it starts any more, and what runs gets SIGTERM, and SIGKILL after 10 s. The run is CANCELLED when this command ends; ' +
      'its last output may still come.',
    options: { json: { type: 'boolean', text: 'The answer as JSON, on one line.' }, ...SERVER_OPTIONS },
    positionals: { min: 1, max: 1, missing: 'cancel which run? Give its id: penstock cancel <run>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock cancel 0192f0c1-2b3c-7abc-8def-0123456789ab', 'end this run'],
      ['penstock runs --status running --json | jq -r .id | xargs -n1 penstock cancel', 'end all that run'],
    ],
    exitCodes: [[EXIT.success, 'the run is cancelled'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: cancel,
};

async function cancel(args: ParsedArguments, context: CommandContext): Promise<number> {
  const id = runIdOf(args, 'cancel');
  const server = serverAddress(args.text('server'), context.env);
  const cancelled = await cancelRun(serverClient(server, await readCredentials(args, context, server)), id);
  const stages = cancelled.cancelledStages;
  if (args.flag('json')) context.terminal.print(`${JSON.stringify(cancelled)}\n`);
  else
    context.terminal.print(
      `Run ${id} is ${cancelled.status}, with ${stages} ${stages === 1 ? 'stage' : 'stages'} that had not ended.\n`,
    );
  return EXIT.success;
}
