import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT } from '../../process/errors.ts';
import { readableSize, readExtension } from '../../extensions/extension-folder.ts';
import { clientOf } from '../../extensions/file-extensions.ts';
import { publishPackage, uploadPackage } from '../../extensions/registry-client.ts';
import { signatureWith } from '../../extensions/signing-key.ts';
import { COLOR_OPTIONS, colorChoice } from '../../command-line/color-options.ts';
import { printableText } from '../../output/printable-text.ts';
import { wantsColor } from '../../output/terminal.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';

export const extensionPublishCommand: Command = {
  spec: {
    name: 'extension publish',
    usage: '[options] [folder]',
    about:
      'Sends an extension to the registry of a server, where it stays as it is: a version never changes, and publishing the same one again does nothing. Also ' +
      'takes a package. Needs an account or a token with the scope publish.',
    options: {
      private: { type: 'boolean', text: 'Only you may see and use it.' },
      public: {
        type: 'boolean',
        text: 'Everybody may. Without either it is as the versions before, and public for the first.',
      },
      key: {
        type: 'string',
        short: 'k',
        value: 'FILE',
        text: 'Sign the package with this private key; its public key must be known to the server.',
      },
      signature: {
        type: 'string',
        value: 'BASE64',
        text: 'The signature that penstock extension sign has printed for this very package.',
      },
      ...COLOR_OPTIONS,
      ...SERVER_OPTIONS,
    },
    positionals: { min: 0, max: 1, missing: '' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock extension publish hello', 'on the server of this machine'],
      ['penstock extension publish hello --key ~/.config/extension.key', 'signed'],
    ],
    exitCodes: [
      [EXIT.success, 'it is published'],
      [EXIT.failure, 'the extension has problems'],
      [EXIT.usage, 'there is no such extension, or wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused'],
    ],
  },
  run: publish,
};

async function publish(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { cwd, env, terminal } = context;
  const { manifest, bytes, hash, sizeBytes } = await readExtension(
    args.positionals[0] ?? '.',
    cwd,
    wantsColor(colorChoice(args), env, terminal.errIsTerminal),
  );
  const key = args.text('key');
  const signature = key === undefined ? args.text('signature') : await signatureWith(key, cwd, hash);
  const client = await clientOf(args, context)();
  await uploadPackage(client, bytes);
  const visibility = args.flag('private') ? 'private' : args.flag('public') ? 'public' : undefined;
  const { created, isSigned } = await publishPackage(client, { packageHash: hash, visibility, signature });
  terminal.print(
    `${created ? 'Published' : 'Was published already:'} ${printableText(manifest.id)} ${printableText(manifest.version)}, ${readableSize(sizeBytes)}${isSigned ? ', signed' : ''}, SHA-256 ${hash}\n`,
  );
  return EXIT.success;
}
