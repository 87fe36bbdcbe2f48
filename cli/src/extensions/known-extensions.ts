/** The extensions of a pipeline file as far as they are known without a server, for commands that only look at the file. */
import { usesOf, type ResolvedExtension } from '@penstock/pipeline';
import type { CommandContext } from '../command-line/command.ts';
import type { PipelineFile } from '../command-line/pipeline-file.ts';

/** What the lock and the cache know; of the rest the `uses`. What reads packages is loaded only where a file uses some. */
export async function knownExtensions(
  file: PipelineFile,
  named: string | undefined,
  env: CommandContext['env'],
  cwd: string,
): Promise<{ readonly known: readonly ResolvedExtension[]; readonly unknown: readonly string[] }> {
  const uses = usesOf(file.text);
  if (uses.length === 0) return { known: [], unknown: [] };
  const { resolveFromCache } = await import('./file-extensions.ts');
  const { lockNameOf, readLock } = await import('./lock-of-file.ts');
  const { openPackageCache } = await import('./package-cache.ts');
  const lock = await readLock(lockNameOf(file, named === '-'), cwd);
  const known = await resolveFromCache(file.text, lock, openPackageCache(env));
  return known === undefined ? { known: [], unknown: uses } : { known, unknown: [] };
}
