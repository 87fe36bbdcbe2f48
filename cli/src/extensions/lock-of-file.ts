/** The lock that belongs to a pipeline file: `.pipeline.lock` for the file of a folder, `<file>.lock` for any other. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { BadLock, LOCK_NAME, parseLock, type LockEntry } from '@penstock/extension';
import { FileError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { PIPELINE_FILES } from '@penstock/pipeline';
import type { PipelineFile } from '../command-line/pipeline-file.ts';

/** Undefined for a file that came by standard input. */
export function lockNameOf({ name }: Pick<PipelineFile, 'name'>, isFromInput: boolean): string | undefined {
  if (isFromInput) return undefined;
  return PIPELINE_FILES.some((known) => known === name) ? LOCK_NAME : `${name}.lock`;
}

/** Empty where there is none. Throws a FileError for one that cannot be read. */
export async function readLock(lockName: string | undefined, cwd: string): Promise<LockEntry[]> {
  if (lockName === undefined) return [];
  try {
    return parseLock(await readFile(resolve(cwd, lockName), 'utf8'));
  } catch (error) {
    if (error instanceof BadLock)
      throw new FileError(
        `${printableText(lockName)} cannot be used: ${error.message}; write it anew with 'penstock lock --update'`,
        { cause: error },
      );
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return [];
    throw new FileError(`cannot read ${printableText(lockName)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
}
