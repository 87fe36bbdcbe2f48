/** The run that a command is about, from its first argument. */
import type { ParsedArguments } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { ServerRefused, UsageError } from '../process/errors.ts';
import type { ServerAddress } from './server-address.ts';

export function runIdOf(args: ParsedArguments, command: string): string {
  const id = args.positionals[0]?.toLowerCase() ?? '';
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id))
    throw new UsageError(
      `'${printableText(id)}' is no run id; one looks like 0192f0c1-2b3c-7abc-8def-0123456789ab, and 'penstock runs' lists them`,
      command,
    );
  return id;
}

export function noSuchRun(id: string, server: ServerAddress): ServerRefused {
  return new ServerRefused(
    `there is no run ${printableText(id)} on ${server.base}, or the token has no right to it; 'penstock runs' lists those that you may see`,
  );
}
