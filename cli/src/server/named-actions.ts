/** Commands whose second word says what is done on a server, to something that the third names: `penstock cache rm <ID>`. */
import { actionOf } from '../command-line/actions.ts';
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, UsageError } from '../process/errors.ts';
import { serverClient, type ServerClient } from './http-client.ts';
import { readCredentials } from './read-credentials.ts';
import { serverAddress } from './server-address.ts';

export type NamedAction = (
  client: ServerClient,
  name: string,
  args: ParsedArguments,
  context: CommandContext,
) => Promise<void>;

interface NamedActionOf {
  readonly takesName: boolean;
  /** What this one takes, where that is another thing than what the command's others take. */
  readonly names?: string;
  readonly act: NamedAction;
}

export type NamedActions = Readonly<Record<string, NamedActionOf>>;

export interface NamedCommand {
  readonly actions: NamedActions;
  /** What the third word is, such as `the id of a cache`. */
  readonly names: string;
  /** Whose token is shown to the server; default that of anybody who uses it. */
  readonly credentials?: typeof readCredentials;
}

/** Throws `UsageError`. */
export async function runNamedAction(
  command: string,
  { actions, names, credentials = readCredentials }: NamedCommand,
  args: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  const [word = '', name] = args.positionals;
  const action = actionOf(command, word, actions);
  if (action.takesName !== (name !== undefined))
    throw new UsageError(
      action.takesName
        ? `'${command} ${word}' needs ${action.names ?? names}`
        : `'${command} ${word}' takes no argument`,
      command,
    );
  const server = serverAddress(args.text('server'), context.env);
  await action.act(serverClient(server, await credentials(args, context, server)), name ?? '', args, context);
  return EXIT.success;
}
