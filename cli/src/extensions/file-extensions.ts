/**
 * What the `uses` of a pipeline file stand for on this machine. What the lock names and the cache holds needs nobody; for
 * the rest a server is asked, which honours the lock, and the packages are fetched before the first stage starts.
 */
import { PackageRefused, resolveByLock, type ExtensionCache, type LockEntry } from '@penstock/extension';
import { usesOf, type PipelineDefinition, type ResolvedExtension } from '@penstock/pipeline';
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { ServerError, ServerRefused, ServerUnreached } from '../process/errors.ts';
import { readCredentials } from '../server/read-credentials.ts';
import { serverClient, type ServerClient } from '../server/http-client.ts';
import { serverAddress } from '../server/server-address.ts';
import { cachedManifest, keepPackage, keptPackage } from './package-cache.ts';
import { downloadPackage, NotResolved, resolveExtensions } from './registry-client.ts';

export interface Resolution {
  readonly extensions: readonly ResolvedExtension[];
  /** Why some could not be resolved, by their `uses`. */
  readonly refusals: ReadonlyMap<string, string>;
}

const NOTHING_RESOLVED: Resolution = { extensions: [], refusals: new Map() };

/** Everything that the `uses` of a text lead to, as far as it is known without a server; undefined: something is missing. */
export async function resolveFromCache(
  text: string,
  lock: readonly LockEntry[],
  cache: ExtensionCache,
): Promise<ResolvedExtension[] | undefined> {
  return await resolveByLock(usesOf(text), lock, async (entry) => {
    const manifest = await cachedManifest(cache, entry.hash);
    return manifest === undefined ? undefined : { ...entry, manifest };
  });
}

/** Throws a ServerError that says what a lock is good for, where no server answers. */
export async function resolveFromServer(
  client: ServerClient,
  text: string,
  lock: readonly LockEntry[],
): Promise<Resolution> {
  const uses = usesOf(text);
  if (uses.length === 0) return NOTHING_RESOLVED;
  try {
    return { extensions: await resolveExtensions(client, uses, lock), refusals: new Map() };
  } catch (error) {
    if (error instanceof NotResolved)
      return { extensions: await resolveOthers(client, uses, lock, error.refusals), refusals: error.refusals };
    if (error instanceof ServerError) {
      const Again = error instanceof ServerUnreached ? ServerUnreached : ServerRefused;
      throw new Again(
        `${error.message}\nThe file uses extensions (${uses.slice(0, 5).join(', ')}${uses.length > 5 ? ', …' : ''}), which a server resolves; with a lock ('penstock lock') and once fetched they are used without one.`,
        { cause: error },
      );
    }
    throw error;
  }
}

/** Resolves the rest of a file of which something was refused, so that its other problems are shown, and only those. */
async function resolveOthers(
  client: ServerClient,
  uses: readonly string[],
  lock: readonly LockEntry[],
  refusals: ReadonlyMap<string, string>,
): Promise<ResolvedExtension[]> {
  const others = uses.filter((each) => !refusals.has(each));
  if (others.length === 0 || others.length === uses.length) return [];
  try {
    return await resolveExtensions(client, others, lock);
  } catch (error) {
    if (error instanceof NotResolved) return [];
    throw error;
  }
}

/** The folders of the packages of all stages, by hash; each is fetched where it is not there yet. */
export async function fetchPackages(
  definition: PipelineDefinition,
  cache: ExtensionCache,
  client: () => Promise<ServerClient>,
): Promise<Map<string, string>> {
  const hashes = new Set(
    definition.stages.flatMap(({ extension }) => (extension === undefined ? [] : [extension.hash])),
  );
  const folders = new Map<string, string>();
  for (const hash of hashes) {
    const known = await keptPackage(cache, hash);
    folders.set(hash, known ?? (await fetchOne(hash, cache, await client())));
  }
  return folders;
}

async function fetchOne(hash: string, cache: ExtensionCache, client: ServerClient): Promise<string> {
  try {
    return await keepPackage(cache, hash, () => downloadPackage(client, hash));
  } catch (error) {
    if (error instanceof PackageRefused)
      throw new ServerRefused(`the server ${client.server.base} gave out a package that is refused: ${error.message}`, {
        cause: error,
      });
    throw error;
  }
}

/** Made when it is first needed: most runs ask no server. */
export function clientOf(args: ParsedArguments, context: CommandContext): () => Promise<ServerClient> {
  let made: Promise<ServerClient> | undefined;
  return () => {
    const server = serverAddress(args.text('server'), context.env);
    made ??= readCredentials(args, context, server).then((credentials) => serverClient(server, credentials));
    return made;
  };
}
