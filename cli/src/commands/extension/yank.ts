import { extensionIdFault } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, UsageError } from '../../process/errors.ts';
import { clientOf } from '../../extensions/file-extensions.ts';
import { yankVersion } from '../../extensions/registry-client.ts';
import { printableText } from '../../output/printable-text.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';

export const extensionYankCommand: Command = {
  spec: {
    name: 'extension yank',
    usage: '[options] <category>/<name>@<version>',
    about:
      'Keeps a version of an extension of yours from being used anew. Nothing is deleted: what has it in a lock, and runs that have begun, still work.',
    options: { undo: { type: 'boolean', text: 'Let it be used again.' }, ...SERVER_OPTIONS },
    positionals: { min: 1, max: 1, missing: 'name the version: <category>/<name>@<version>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock extension yank utility/hello@0.1.0', 'no new pipeline gets 0.1.0'],
      ['penstock extension yank --undo utility/hello@0.1.0', 'they do again'],
    ],
    exitCodes: [
      [EXIT.success, 'done'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused'],
    ],
  },
  run: yank,
};

async function yank(args: ParsedArguments, context: CommandContext): Promise<number> {
  const [given = ''] = args.positionals;
  const at = given.indexOf('@');
  const [id, version] = at === -1 ? [given, ''] : [given.slice(0, at), given.slice(at + 1)];
  const fault =
    extensionIdFault(id)?.message ??
    (version === '' ? `'${printableText(given)}' names no version: ${printableText(id)}@1.0.0` : undefined);
  if (fault !== undefined) throw new UsageError(fault, 'extension yank');
  const yanked = !args.flag('undo');
  await yankVersion(await clientOf(args, context)(), id, version, yanked);
  context.terminal.print(
    `${printableText(id)} ${printableText(version)} is ${yanked ? 'yanked: locks that have it still work' : 'no longer yanked'}.\n`,
  );
  return EXIT.success;
}
