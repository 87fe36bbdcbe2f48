/** Whether a repository has a ref: asked of its server, with nothing fetched and nothing kept. */
import { unlessAborted } from '@penstock/async';
import { connectionTo, type Lookup } from './connection.ts';
import { credentialsFor, type CloneCredential } from './credentials.ts';
import { failureOf } from './failure.ts';
import { runGit } from './git-command.ts';
import type { CloneAddress, GitPolicy } from './policy.ts';

export interface FindRefDependencies {
  readonly policy: GitPolicy;
  readonly lookup: Lookup;
  readonly sshSettings: readonly string[];
  readonly credentialsFile: string | undefined;
  /** Of the repository's own, in place of the machine's. */
  readonly credential: CloneCredential | undefined;
  /** A folder that is no repository. */
  readonly folder: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A server lists what ends like the name; beyond this the answer is not that of an honest one. */
const LISTED_BYTES_MAX = 64 * 1024;

/** The commit that the ref names, also by a tag with a message; null where there is no such ref. @throws GitError; the signal's reason */
export async function findRef(
  address: CloneAddress,
  ref: string,
  { policy, lookup, sshSettings, credentialsFile, credential, folder, timeoutMs, signal }: FindRefDependencies,
): Promise<string | null> {
  const connection = await connectionTo(address, policy, {
    lookup: (host) => unlessAborted(lookup(host), signal),
    sshSettings,
    hasOwnCredential: credential !== undefined,
  });
  const credentials = credentialsFor(address, credential, credentialsFile);
  const listed = await runGit({
    cwd: folder,
    signal,
    credentials,
    timeoutMs,
    stdoutBytesMax: LISTED_BYTES_MAX,
    options: connection.options,
    env: connection.env,
    args: ['ls-remote', '--quiet', '--end-of-options', address.url, ref, `${ref}^{}`],
  }).catch((error: unknown) => {
    throw failureOf(error);
  });
  // A pattern matches the ends of names too: refs/heads/x also names refs/pull/refs/heads/x.
  const objects = new Map(
    listed
      .toString('utf8')
      .split('\n')
      .map((line) => line.split('\t'))
      .map(([object = '', name = '']) => [name, object]),
  );
  return objects.get(`${ref}^{}`) ?? objects.get(ref) ?? null;
}
