import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT } from '../../process/errors.ts';
import { readableSize, readExtension } from '../../extensions/extension-folder.ts';
import { COLOR_OPTIONS, colorChoice } from '../../command-line/color-options.ts';
import { printableText } from '../../output/printable-text.ts';
import { wantsColor } from '../../output/terminal.ts';

export const extensionCheckCommand: Command = {
  spec: {
    name: 'extension check',
    usage: '[options] [folder]',
    about:
      'Checks an extension as a registry would: its extension.yaml, with the place of every problem, and that a package can be made of its files. Also takes a package.',
    options: { ...COLOR_OPTIONS },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [
      ['penstock extension check hello', 'the extension in the folder hello'],
      ['penstock extension check', 'the one in this folder'],
    ],
    exitCodes: [
      [EXIT.success, 'it is good'],
      [EXIT.failure, 'it has problems'],
      [EXIT.usage, 'there is no such extension, or wrong usage'],
    ],
  },
  run: check,
};

async function check(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const { manifest, hash, sizeBytes, files, readme, changelog } = await readExtension(
    args.positionals[0] ?? '.',
    cwd,
    wantsColor(colorChoice(args), env, terminal.errIsTerminal),
  );
  terminal.print(
    `${printableText(manifest.id)} ${printableText(manifest.version)}: ${printableText(manifest.description)}\n`,
  );
  terminal.print(`${files} files, ${readableSize(sizeBytes)}, SHA-256 ${hash}\n`);
  if (readme === null)
    terminal.note('penstock: there is no README.md, which is what the registry shows of an extension.');
  if (changelog === null) terminal.note('penstock: there is no CHANGELOG.md, which says what is new in a version.');
  return EXIT.success;
}
