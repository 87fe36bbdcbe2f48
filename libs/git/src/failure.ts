/** What a failed fetch means, from what git wrote: in English, as its environment asks for. */
import { GitCommandFailed, GitError, type GitErrorCode } from './errors.ts';

/** What git wrote fits nothing that is known. */
class UnclearFailure extends GitError {}

/** The first that fits. Servers' own words (`remote:`) are not looked at: they say what they like. */
const MEANINGS: readonly (readonly [pattern: RegExp, code: GitErrorCode, message: string])[] = [
  [
    /requested URL returned error: 3\d\d|unable to update url base from redirection/u,
    'unreachable',
    'the server sends git to another address, which is not followed; use the address it sends to',
  ],
  [
    /Host key verification failed|no matching host key/u,
    'denied',
    'the key of the server is not known here, or is another than the one that is',
  ],
  [
    /Authentication failed|could not read (?:Username|Password)|requested URL returned error: 40[13]|terminal prompts disabled|Permission denied/u,
    'denied',
    'the server refuses the credentials, or wants some',
  ],
  [
    /Error loading key|Bad passphrase|Enter passphrase/u,
    'denied',
    'the key is none that ssh can use: a private key is given whole, and without a passphrase',
  ],
  [/detected dubious ownership/u, 'denied', 'the repository belongs to another user of this machine'],
  [
    /requested URL returned error: 4(?:04|10)|repository '[^']*' not found|does not appear to be a git repository|does not exist|Repository not found|not valid: is this a git repository/u,
    'not_found',
    'there is no such repository',
  ],
  [
    /not our ref|couldn't find remote ref|could not find remote ref|unadvertised object|no such remote ref/u,
    'not_found',
    'the repository has no such commit',
  ],
  [/No space left on device|Disk quota exceeded/u, 'unreachable', 'there is no room left on the disk'],
  [
    /File name too long|[Ii]nvalid path|unable to create (?:file|symlink)|cannot create directory/u,
    'bad_objects',
    'the commit holds a file that cannot be written here',
  ],
  [
    /fsck error|error in (?:packed )?object|invalid (?:author|committer|tree)|remote did not send all necessary objects/u,
    'bad_objects',
    'the repository holds objects that git refuses',
  ],
];

export function failureOf(error: unknown): unknown {
  if (!(error instanceof GitCommandFailed)) return error;
  const own = ownWords(error);
  for (const [pattern, code, message] of MEANINGS) {
    if (pattern.test(own)) return new GitError(code, message, { cause: error });
  }
  return new UnclearFailure('unreachable', 'the repository could not be read', { cause: error });
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
  if (!(error instanceof GitCommandFailed)) return false;
  const own = ownWords(error);
  if (
    /corrupt|bad object|loose object|unable to (?:read|parse|unpack)|unable to create '[^']*\.lock'|missing (?:blob|tree|commit|object)|not a git repository|bad config|inflate|sha1 pointer|packfile|index file|shallow file|unresolved deltas/iu.test(
      own,
    )
  )
    return true;
  return (
    failureOf(error) instanceof UnclearFailure &&
    !/unable to access|resolve|connect|timed out|hung up|early EOF|RPC failed|HTTP|curl|ssh|SSL|TLS|redirect/iu.test(
      own,
    )
  );
}

function ownWords(error: GitCommandFailed): string {
  return error.stderr
    .split('\n')
    .filter((line) => !line.startsWith('remote:'))
    .join('\n');
}
