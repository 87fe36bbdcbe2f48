import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, UsageError } from '../../process/errors.ts';
import { readExtension } from '../../extensions/extension-folder.ts';
import { signatureWith } from '../../extensions/signing-key.ts';
import { COLOR_OPTIONS, colorChoice } from '../../command-line/color-options.ts';
import { wantsColor } from '../../output/terminal.ts';

export const extensionSignCommand: Command = {
  spec: {
    name: 'extension sign',
    usage: '--key FILE [options] [folder]',
    about:
      'Prints the Ed25519 signature of an extension’s package in base64, for those who keep their key apart from the machine that publishes. Takes a folder or a package.',
    options: {
      key: {
        type: 'string',
        short: 'k',
        value: 'FILE',
        text: 'The private key, as penstock extension keygen writes it.',
      },
      ...COLOR_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    examples: [['penstock extension sign --key extension.key hello-0.1.0.tar.gz', 'the signature of a package']],
    exitCodes: [
      [EXIT.success, 'signed'],
      [EXIT.failure, 'the extension has problems'],
      [EXIT.usage, 'there is no such key or extension, or wrong usage'],
    ],
  },
  run: sign,
};

async function sign(args: ParsedArguments, { cwd, env, terminal }: CommandContext): Promise<number> {
  const key = args.text('key');
  if (key === undefined) throw new UsageError('name the private key: --key FILE', 'extension sign');
  const { hash } = await readExtension(
    args.positionals[0] ?? '.',
    cwd,
    wantsColor(colorChoice(args), env, terminal.errIsTerminal),
  );
  terminal.print(`${await signatureWith(key, cwd, hash)}\n`);
  return EXIT.success;
}
