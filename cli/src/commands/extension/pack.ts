import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, FileError } from '../../process/errors.ts';
import { replaceWhole } from '../../process/whole-file.ts';
import { readableSize, readExtension } from '../../extensions/extension-folder.ts';
import { COLOR_OPTIONS, colorChoice } from '../../command-line/color-options.ts';
import { printableText } from '../../output/printable-text.ts';
import { wantsColor } from '../../output/terminal.ts';

export const extensionPackCommand: Command = {
  spec: {
    name: 'extension pack',
    usage: '[options] [folder]',
    about:
      'Makes the package of an extension and prints its SHA-256. The same files make the same package, byte by byte, on every machine. Folders such as .git and node_modules are left out.',
    options: {
      output: { type: 'string', short: 'o', value: 'FILE', text: 'The package; default <name>-<version>.tar.gz here.' },
      ...COLOR_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [['penstock extension pack hello', 'hello-0.1.0.tar.gz']],
    exitCodes: [
      [EXIT.success, 'the package is written'],
      [EXIT.failure, 'the extension has problems'],
      [EXIT.usage, 'there is no such extension, or wrong usage'],
    ],
  },
  run: pack,
};

async function pack(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const { manifest, bytes, hash, sizeBytes } = await readExtension(
    args.positionals[0] ?? '.',
    cwd,
    wantsColor(colorChoice(args), env, terminal.errIsTerminal),
  );
  const output = args.text('output') ?? `${manifest.id.slice(manifest.id.indexOf('/') + 1)}-${manifest.version}.tar.gz`;
  try {
    await replaceWhole(resolve(cwd, output), bytes);
  } catch (error) {
    throw new FileError(`cannot write ${printableText(output)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
  terminal.note(
    `${printableText(output)}: ${printableText(manifest.id)} ${printableText(manifest.version)}, ${readableSize(sizeBytes)}`,
  );
  terminal.print(`${hash}\n`);
  return EXIT.success;
}
