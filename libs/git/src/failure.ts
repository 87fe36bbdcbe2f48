/** What a failed fetch means, from what git wrote: in English, as its environment asks for. */
import { GitCommandFailed, GitError, type GitErrorCode } from './errors.ts';

/** The first that fits. Servers' own words (`remote:`) are not looked at: they say what they like. */
const MEANINGS: readonly (readonly [pattern: RegExp, code: GitErrorCode, message: string])[] = [
  [/requested URL returned error: 3\d\d|unable to update url base from redirection/u, 'unreachable', 'the server sends git to another address, which is not followed; use the address it sends to'],
  [/Authentication failed|could not read (?:Username|Password)|requested URL returned error: 40[13]|terminal prompts disabled|Permission denied|Host key verification failed|no matching host key/u, 'denied', 'the server refuses the credentials, or wants some'],
  [/detected dubious ownership/u, 'denied', 'the repository belongs to another user of this machine'],
  [/requested URL returned error: 4(?:04|10)|repository '[^']*' not found|does not appear to be a git repository|does not exist|Repository not found|not valid: is this a git repository/u, 'not_found', 'there is no such repository'],
  [/not our ref|couldn't find remote ref|could not find remote ref|unadvertised object|no such remote ref/u, 'not_found', 'the repository has no such commit'],
  [/No space left on device|Disk quota exceeded/u, 'unreachable', 'there is no room left on the disk'],
  [/fsck error|error in (?:packed )?object|invalid (?:author|committer|tree)|remote did not send all necessary objects/u, 'bad_objects', 'the repository holds objects that git refuses'],
];

export function failureOf(error: unknown): unknown {
  if (!(error instanceof GitCommandFailed)) return error;
  const own = error.stderr.split('\n').filter((line) => !line.startsWith('remote:')).join('\n');
  for (const [pattern, code, message] of MEANINGS) {
    if (pattern.test(own)) return new GitError(code, message, { cause: error });
  }
  return new GitError('unreachable', 'the repository could not be read from its server', { cause: error });
}

/** A server that gives commits only by the names of its refs, and so has to be asked for those. */
export function refusesBareCommit(error: unknown): boolean {
  return error instanceof GitCommandFailed && /unadvertised object/u.test(error.stderr);
}

export function doesNotKnowCommit(error: unknown): boolean {
  return error instanceof GitCommandFailed && /not our ref/u.test(error.stderr);
}

/** Plain files behind a web server: there is nobody to make a shallow answer. */
export function isDumb(error: unknown): boolean {
  return error instanceof GitCommandFailed && /dumb http transport does not support/u.test(error.stderr);
}

/**
 * Whether a mirror itself may be at fault: git says so, or says neither that nor anything about a network. A host that is
 * away must not cost the mirrors of its repositories.
 */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof GitCommandFailed) || isDiskFull(error)) return false;
  if (/corrupt|bad object|loose object|unable to (?:read|parse|create|unpack)|missing (?:blob|tree|commit|object)|not a git repository|bad config|inflate|sha1 pointer|packfile|index file|shallow file|unresolved deltas/iu.test(error.stderr)) return true;
  const failure = failureOf(error);
  const isUnclear = failure instanceof GitError && failure.code === 'unreachable' && failure.cause === error;
  return isUnclear && !/unable to access|resolve|connect|timed out|hung up|early EOF|RPC failed|HTTP|curl|ssh|SSL|TLS|redirect/iu.test(error.stderr);
}

export function isDiskFull(error: GitCommandFailed): boolean {
  return /No space left on device|Disk quota exceeded/u.test(error.stderr);
}
