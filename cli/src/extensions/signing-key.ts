/** Signs with a private key in a file; nothing of the key is in any message. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { BadKey, signPackage } from '@penstock/extension';
import { FileError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';

/** Throws FileError. */
export async function signatureWith(file: string, cwd: string, packageHash: string): Promise<string> {
  try {
    return signPackage(packageHash, await readFile(resolve(cwd, file), 'utf8'));
  } catch (error) {
    if (error instanceof BadKey) throw new FileError(`${printableText(file)}: ${error.message}`);
    throw new FileError(`cannot read the key ${printableText(file)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
}
