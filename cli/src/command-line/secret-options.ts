/** Values of secrets for runs on this machine: from a file, or from the environment; never from an argument. */
import { isUtf8 } from 'node:buffer';
import { open, type FileHandle } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { systemReason } from '@penstock/errors';
import { FileError, UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import type { CommandContext, OptionSpec, ParsedArguments } from './command.ts';

export const SECRET_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  secret: {
    type: 'string',
    value: 'NAME',
    text: 'A secret whose value is that of the environment variable of this name; several times if need be.',
  },
  'secret-file': {
    type: 'string',
    value: 'FILE',
    text: 'Secrets as NAME=value lines, quotes around values of several lines; those of --secret stand above them.',
  },
};

const FILE_BYTES_MAX = 1024 * 1024;
/** As a server takes them. */
const NAME = /^[A-Z_][A-Z0-9_]*$/;
const VALUE_CHARACTERS_MIN = 4;

/** By name. Throws UsageError and FileError, without a value in them. */
export async function secretValues(
  args: ParsedArguments,
  { cwd, env }: Pick<CommandContext, 'cwd' | 'env'>,
  command: string,
): Promise<Map<string, string>> {
  const file = args.text('secret-file');
  const values = new Map(file === undefined ? [] : await valuesIn(resolve(cwd, file)));
  for (const name of args.texts('secret')) {
    if (name.includes('='))
      throw new UsageError(
        '--secret takes a name and no value, which others could read in the list of processes: set the variable first',
        command,
      );
    const value = env[name];
    if (value === undefined)
      throw new UsageError(`--secret ${printableText(name)}: there is no such variable in the environment`, command);
    values.set(name, value);
  }
  for (const [name, value] of values) {
    if (!NAME.test(name))
      throw new UsageError(
        `a secret is called by capital letters, digits and '_', no digit first, not '${printableText(name)}'`,
        command,
      );
    if (value.includes('\0'))
      throw new UsageError(`the secret ${name} holds a NUL, which no variable can hold: give bytes as base64`, command);
    if ([...value.trim()].length < VALUE_CHARACTERS_MIN)
      throw new UsageError(
        `the secret ${name} has fewer than ${VALUE_CHARACTERS_MIN} characters: it could not be masked`,
        command,
      );
  }
  return values;
}

async function valuesIn(path: string): Promise<[string, string][]> {
  try {
    const file = await open(path, 'r');
    try {
      const bytes = await readBounded(file);
      if (bytes.length > FILE_BYTES_MAX)
        throw new FileError(`${printableText(path)} has more than ${FILE_BYTES_MAX} bytes`);
      if (!isUtf8(bytes))
        throw new FileError(`${printableText(path)} is no UTF-8 text: give secrets that are bytes as base64`);
      const parsed: Readonly<Record<string, string | undefined>> = parseEnv(bytes.toString('utf8'));
      return Object.entries(parsed).map(([name, value = '']) => [name, value]);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof FileError) throw error;
    throw new FileError(
      `cannot read secrets from ${printableText(path)}: ${printableText(systemReason(error as NodeJS.ErrnoException))}`,
      { cause: error },
    );
  }
}

/** One byte more than is allowed at the most. A pipe gives what it has a piece at a time. */
async function readBounded(file: FileHandle): Promise<Buffer> {
  const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}
