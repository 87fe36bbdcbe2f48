import { wholeNumber } from '../../command-line/arguments.ts';
import type { Command, CommandContext, CommandSpec, ParsedArguments } from '../../command-line/command.ts';
import { EXIT } from '../../process/errors.ts';
import { clientOf } from '../../extensions/file-extensions.ts';
import { searchExtensions } from '../../extensions/registry-client.ts';
import { printableText } from '../../output/printable-text.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';

const LIMIT_DEFAULT = 20;

const spec: CommandSpec = {
  name: 'extension search',
  usage: '[options] [words]...',
  about: 'Finds extensions in the registry of a server, the best first; without words the most used ones.',
  options: {
    category: {
      type: 'string',
      short: 'c',
      value: 'NAME',
      text: 'Only build, test, deploy, notify, security or utility.',
    },
    limit: { type: 'string', short: 'n', value: 'N', text: `How many, 1 to 100; default ${LIMIT_DEFAULT}.` },
    json: { type: 'boolean', text: 'One JSON object a line.' },
    ...SERVER_OPTIONS,
  },
  positionals: { min: 0, max: 20, missing: '' },
  environment: SERVER_ENVIRONMENT,
  examples: [
    ['penstock extension search junit', 'by a word'],
    ['penstock extension search --category notify', 'by a category'],
  ],
  exitCodes: [
    [EXIT.success, 'found, or there is none'],
    [EXIT.usage, 'wrong usage'],
    [EXIT.unreached, 'the server was not reached, or is not available now'],
    [EXIT.refused, 'the server refused'],
  ],
};

export const extensionSearchCommand: Command = { spec, run: search };

async function search(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const wanted = args.text('limit');
  const limit = wanted === undefined ? LIMIT_DEFAULT : wholeNumber(spec, 'limit', wanted, { min: 1, max: 100 });
  const query = args.positionals.length === 0 ? undefined : args.positionals.join(' ');
  const found = await searchExtensions(await clientOf(args, context)(), {
    query,
    category: args.text('category'),
    limit,
  });
  if (args.flag('json')) {
    for (const extension of found) terminal.print(`${JSON.stringify(extension)}\n`);
    return EXIT.success;
  }
  if (found.length === 0) terminal.note('There is no such extension on the server that you may see.');
  const width = Math.max(0, ...found.map(({ id, latestVersion }) => nameOf(id, latestVersion).length));
  for (const { id, latestVersion, description, visibility } of found) {
    terminal.print(
      `${printableText(nameOf(id, latestVersion).padEnd(width))}  ${printableText(description)}${visibility === 'private' ? ' (private)' : ''}\n`,
    );
  }
  return EXIT.success;
}

function nameOf(id: string, version: string | null): string {
  return version === null ? `${id} (yanked)` : `${id}@${version}`;
}
