/** Where this machine keeps the packages of extensions: the user's cache folder, shared by all runs. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemReason } from '@penstock/errors';
import { CacheFull, ExtensionCache, MANIFEST_NAME } from '@penstock/extension';
import type { CommandContext } from '../command-line/command.ts';
import { printableText } from '../output/printable-text.ts';
import { cacheFolder } from '../process/cache-folder.ts';
import { FileError } from '../process/errors.ts';

const CACHE_BYTES_MAX = 1024 * 1024 * 1024;

export function openPackageCache(env: CommandContext['env']): ExtensionCache {
  return new ExtensionCache(cacheFolder(env, 'extensions'), { bytesMax: CACHE_BYTES_MAX });
}

/** Fetches a package where it is not there yet. Throws a FileError where this machine cannot keep it, and what `fetch` throws. */
export async function keepPackage(
  cache: ExtensionCache,
  hash: string,
  fetch: () => AsyncIterable<Uint8Array>,
): Promise<string> {
  try {
    return await cache.ensure(hash, fetch);
  } catch (error) {
    throw told(error);
  }
}

/** The folder of a package that is there already. Its use is written down, so this too throws a FileError where nothing can be. */
export async function keptPackage(cache: ExtensionCache, hash: string): Promise<string | undefined> {
  try {
    return await cache.find(hash);
  } catch (error) {
    throw told(error);
  }
}

/** The manifest of a package that is there already. */
export async function cachedManifest(cache: ExtensionCache, hash: string): Promise<string | undefined> {
  const folder = await keptPackage(cache, hash);
  return folder === undefined ? undefined : await readFile(join(folder, MANIFEST_NAME), 'utf8');
}

function told(error: unknown): unknown {
  if (error instanceof CacheFull) return new FileError(error.message, { cause: error });
  const { code, path } = error as NodeJS.ErrnoException;
  if (path === undefined || !['EACCES', 'ENOENT', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'ENOTDIR'].includes(code ?? ''))
    return error;
  return new FileError(
    `the extension cannot be kept: ${printableText(path)} cannot be written (${systemReason(error)}): let XDG_CACHE_HOME name a folder that can be`,
    { cause: error },
  );
}
