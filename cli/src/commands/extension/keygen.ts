import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { generateSigningKeys } from '@penstock/extension';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, FileError } from '../../process/errors.ts';
import { writeNew } from '../../process/whole-file.ts';
import { clientOf } from '../../extensions/file-extensions.ts';
import { registerKey } from '../../extensions/registry-client.ts';
import { printableText } from '../../output/printable-text.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';

const NAME_DEFAULT = 'extension.key';

export const extensionKeygenCommand: Command = {
  spec: {
    name: 'extension keygen',
    usage: '[options] [file]',
    about:
      `Makes an Ed25519 key to sign packages with: the private key in a file that only you can read (default ${NAME_DEFAULT}), the public key on standard output. A ` +
      'server takes a signature for what it is once it knows the public key.',
    options: { register: { type: 'boolean', text: 'Tell the server the public key.' }, ...SERVER_OPTIONS },
    positionals: { min: 0, max: 1, missing: '' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock extension keygen ~/.config/extension.key --register', 'once'],
      ['penstock extension publish hello --key ~/.config/extension.key', 'then sign what you publish'],
    ],
    exitCodes: [
      [EXIT.success, 'the key is written'],
      [EXIT.usage, 'the file is there already, or cannot be written'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused it'],
    ],
  },
  run: keygen,
};

async function keygen(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { cwd, terminal } = context;
  const name = args.positionals[0] ?? NAME_DEFAULT;
  const keys = generateSigningKeys();
  try {
    // A key that is there is never overwritten: what it has signed could not be signed again.
    await writeNew(resolve(cwd, name), keys.privateKey, 0o600);
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw new FileError(
      isThere
        ? `${printableText(name)} is there already: name another file`
        : `cannot write ${printableText(name)}: ${printableText(systemReason(error))}`,
      { cause: error },
    );
  }
  terminal.print(`${keys.publicKey}\n`);
  if (args.flag('register')) {
    const id = await registerKey(await clientOf(args, context)(), keys.publicKey);
    terminal.note(`penstock: the server knows it as ${printableText(id)}.`);
  }
  return EXIT.success;
}
