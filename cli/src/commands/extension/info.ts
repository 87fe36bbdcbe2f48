import { extensionIdFault, parseManifest, type ExtensionManifest } from '@penstock/pipeline';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, ServerRefused, UsageError } from '../../process/errors.ts';
import { clientOf } from '../../extensions/file-extensions.ts';
import { resolveExtensions, showExtension, type FoundVersion } from '../../extensions/registry-client.ts';
import { readableSize } from '../../extensions/extension-folder.ts';
import { printableText } from '../../output/printable-text.ts';
import { SERVER_ENVIRONMENT, SERVER_OPTIONS } from '../../server/server-options.ts';

export const extensionInfoCommand: Command = {
  spec: {
    name: 'extension info',
    usage: '[options] <category>/<name>[@<version or range>]',
    about:
      'Shows an extension of a server: what it does, its versions, and the inputs and outputs of the newest one, or of the one that is named.',
    options: { json: { type: 'boolean', text: 'One JSON object.' }, ...SERVER_OPTIONS },
    positionals: { min: 1, max: 1, missing: 'name the extension: <category>/<name>' },
    environment: SERVER_ENVIRONMENT,
    examples: [
      ['penstock extension info build/node', 'the newest version'],
      ['penstock extension info build/node@1.0.0', 'another one'],
    ],
    exitCodes: [
      [EXIT.success, 'shown'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'there is none, or the server refused'],
    ],
  },
  run: info,
};

async function info(args: ParsedArguments, context: CommandContext): Promise<number> {
  const { terminal } = context;
  const [given = ''] = args.positionals;
  const id = given.split('@', 1)[0] ?? '';
  const fault = extensionIdFault(id);
  if (fault !== undefined)
    throw new UsageError(
      `${fault.message}${fault.suggestion === undefined ? '' : ` (${fault.suggestion})`}`,
      'extension info',
    );
  const client = await clientOf(args, context)();
  const found = await showExtension(client, id);
  if (found === undefined)
    throw new ServerRefused(
      `there is no extension ${printableText(id)} on ${client.server.base}; look for one with 'penstock extension search'`,
    );
  const wanted = given === id ? found.extension.latestVersion : given.slice(id.length + 1);
  const resolved =
    wanted === null
      ? undefined
      : (await resolveExtensions(client, [`${id}@${wanted}`], [])).find((entry) => entry.id === id);
  const parsed = resolved === undefined ? undefined : parseManifest(resolved.manifest);
  const manifest = parsed?.ok === true ? parsed.manifest : undefined;
  if (args.flag('json')) {
    terminal.print(
      `${JSON.stringify({ ...found.extension, versions: found.versions, version: resolved?.version ?? null, inputs: manifest?.inputs ?? [], outputs: manifest?.outputs ?? [] })}\n`,
    );
    return EXIT.success;
  }
  terminal.print(
    `${printableText(id)}${resolved === undefined ? '' : ` ${printableText(resolved.version)}`}: ${printableText(manifest?.description ?? found.extension.description)}\n`,
  );
  if (manifest !== undefined) for (const line of signatureLines(manifest)) terminal.print(`${printableText(line)}\n`);
  terminal.print('\nVersions:\n');
  for (const version of found.versions) terminal.print(`  ${printableText(versionLine(version))}\n`);
  return EXIT.success;
}

function signatureLines({ inputs, outputs }: ExtensionManifest): string[] {
  const lines: string[] = [];
  if (inputs.length > 0) lines.push('', 'Inputs:');
  for (const input of inputs) {
    const type = input.type === 'choice' ? input.options.join(' | ') : input.type;
    const rest = input.required
      ? ', required'
      : input.default === undefined || input.default === ''
        ? ''
        : `, default ${input.default}`;
    lines.push(`  ${input.name} (${type}${rest})${input.description === '' ? '' : `: ${input.description}`}`);
  }
  if (outputs.length > 0) lines.push('', 'Outputs:');
  for (const { name, description } of outputs) lines.push(`  ${name}${description === '' ? '' : `: ${description}`}`);
  return lines;
}

function versionLine({ version, publishedAt, sizeBytes, yanked, signed, packageHash }: FoundVersion): string {
  return `${version}  ${publishedAt.slice(0, 10)}  ${readableSize(Number(sizeBytes))}  sha256:${packageHash.slice(0, 12)}${signed ? '  signed' : ''}${yanked ? '  yanked' : ''}`;
}
