import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { formatLock } from '@penstock/extension';
import { parsePipeline, usesOf } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, FileError, RefusedFile, UsageError } from '../process/errors.ts';
import { replaceWhole } from '../process/whole-file.ts';
import { clientOf, fetchPackages, resolveFromServer } from '../extensions/file-extensions.ts';
import { lockNameOf, readLock } from '../extensions/lock-of-file.ts';
import { openPackageCache } from '../extensions/package-cache.ts';
import { COLOR_OPTIONS, colorChoice } from '../command-line/color-options.ts';
import { printableText } from '../output/printable-text.ts';
import { wantsColor } from '../output/terminal.ts';
import { readPipelineFile } from '../command-line/pipeline-file.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../server/server-options.ts';
import { problemsText } from './validate.ts';

export const lockCommand: Command = {
  spec: {
    name: 'lock',
    usage: '[options] [file]',
    about:
      'Asks a server which versions the extensions of a pipeline file are, and writes them with their hashes to .pipeline.lock beside it (for a file of another ' +
      'name, to <file>.lock). What the lock names already stays as it is. The packages are fetched too, so that the file then runs without a server.',
    options: {
      update: {
        type: 'boolean',
        short: 'u',
        text: 'Leave the present lock aside: every extension gets the newest version that its range allows.',
      },
      ...COLOR_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock lock', 'lock what is not locked yet'],
      ['penstock lock --update', 'go to the newest versions'],
    ],
    exitCodes: [
      [EXIT.success, 'the lock is written'],
      [EXIT.usage, 'the file has problems, or wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused'],
    ],
  },
  run: lock,
};

async function lock(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { cwd, env, terminal } = context;
  const file = await readPipelineFile(args.positionals[0], cwd);
  const name = lockNameOf(file, args.positionals[0] === '-');
  if (name === undefined) throw new UsageError('a lock belongs to a file: standard input has none', 'lock');
  const before = args.flag('update') ? [] : await readLock(name, cwd);
  const client = clientOf(args, context);
  const { extensions, refusals } =
    usesOf(file.text).length === 0
      ? { extensions: [], refusals: new Map<string, string>() }
      : await resolveFromServer(await client(), file.text, before);
  const parsed = parsePipeline(file.text, { extensions, refusals });
  if (!parsed.ok)
    throw new RefusedFile(
      problemsText(file, parsed.diagnostics, wantsColor(colorChoice(args), env, terminal.errIsTerminal)).trimEnd(),
      EXIT.usage,
    );
  await fetchPackages(parsed.definition, openPackageCache(env), client);
  try {
    await replaceWhole(resolve(cwd, name), formatLock(extensions));
  } catch (error) {
    throw new FileError(`cannot write ${printableText(name)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
  const old = new Map(before.map((entry) => [entry.uses, entry.version]));
  for (const { uses, id, version } of extensions) {
    const was = old.get(uses);
    terminal.print(
      `${printableText(uses)}  ${printableText(id)} ${printableText(version)}${was === undefined || was === version ? '' : ` (was ${printableText(was)})`}\n`,
    );
  }
  terminal.print(`${printableText(name)}: ${extensions.length} extension${extensions.length === 1 ? '' : 's'}.\n`);
  return EXIT.success;
}
