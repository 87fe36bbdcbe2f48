import { chmod, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { makeFolder } from '@penstock/async';
import { systemReason } from '@penstock/errors';
import { extensionIdFault } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, FileError, UsageError } from '../../process/errors.ts';
import { writeNew } from '../../process/whole-file.ts';
import { exampleFiles } from '../../extensions/example.ts';
import { printableText } from '../../output/printable-text.ts';

export const extensionInitCommand: Command = {
  spec: {
    name: 'extension init',
    usage: '<category>/<name> [folder]',
    about:
      'Begins an extension: a folder with an example that works, to be changed into what is wanted. The folder is called by the name if none is given; it must be empty or not there yet.',
    options: {},
    positionals: { min: 1, max: 2, missing: 'name the extension: <category>/<name>, such as utility/hello' },
    examples: [
      ['penstock extension init utility/hello', 'in the folder hello'],
      ['penstock extension test hello who=world', 'and see what it does'],
    ],
    exitCodes: [
      [EXIT.success, 'the files are written'],
      [EXIT.usage, 'the name is none, or the folder is in use'],
    ],
  },
  run: init,
};

async function init(
  { positionals: [id = '', given] }: ParsedArguments,
  { cwd, terminal }: CommandContext,
): Promise<number> {
  const fault = extensionIdFault(id);
  if (fault !== undefined)
    throw new UsageError(
      `${fault.message}${fault.suggestion === undefined ? '' : ` (${fault.suggestion})`}`,
      'extension init',
    );
  const folder = given ?? id.slice(id.indexOf('/') + 1);
  const place = resolve(cwd, folder);
  const written: string[] = [];
  try {
    await makeFolder(place, 0o777);
    if ((await readdir(place)).length > 0)
      throw new FileError(`${printableText(folder)} is not empty: name another folder`);
    for (const [name, { text, isProgram }] of Object.entries(exampleFiles(id))) {
      await writeNew(join(place, name), text);
      written.push(name);
      if (isProgram === true) await chmod(join(place, name), 0o755);
    }
  } catch (error) {
    // The next try wants an empty folder.
    for (const name of written) await rm(join(place, name), { force: true });
    if (error instanceof FileError) throw error;
    throw new FileError(`cannot write to ${printableText(folder)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
  for (const name of written) terminal.print(`${printableText(join(folder, name))}\n`);
  terminal.note(`Try it: penstock extension test ${printableText(folder)} who=world`);
  return EXIT.success;
}
