/** What can go wrong between a clone address and a workspace; the code is what callers decide by. */
import { TaggedError } from '@penstock/errors';

export type GitErrorCode =
  /** The address, or what its name resolves to, is not allowed: nothing was started. */
  | 'address_not_allowed'
  /** No such repository, or no such commit in it. */
  | 'not_found'
  /** The host does not answer, or does not answer as a git server. */
  | 'unreachable'
  | 'timeout'
  /** The repository, or the tree of the commit, is over its limit. */
  | 'too_large'
  /** The host wants other credentials than it was given. */
  | 'denied'
  /** The repository holds objects that git refuses to keep: damaged, or made to do harm. */
  | 'bad_objects'
  /** A file that is not to be read: a link, a folder, too large, no text. */
  | 'bad_file'
  /** There is no git on this machine, or one that is too old. */
  | 'git_unusable';

/**
 * The message is for the owner of the run: it names the address without any credential and holds nothing that a server
 * said. What git wrote is in `cause`, for the operator's log.
 */
export class GitError extends TaggedError {
  readonly tag = 'GitError';
  readonly code: GitErrorCode;

  constructor(code: GitErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** `bad_file`, of the file at this path of the commit. */
export class BadFile extends GitError {
  readonly path: string;

  /** `what`: the end of a sentence that begins with the path. */
  constructor(path: string, what: string, options?: ErrorOptions) {
    super('bad_file', `${path} ${what}`, options);
    this.path = path;
  }
}

/** A git process that ended with another exit code than 0. */
export class GitCommandFailed extends TaggedError {
  readonly tag = 'GitCommandFailed';
  readonly exitCode: number | null;
  /** Without the values of credentials. */
  readonly stderr: string;

  constructor(command: string, exitCode: number | null, stderr: string) {
    super(`git ${command} ended with ${exitCode === null ? 'a signal' : `code ${exitCode}`}: ${stderr}`);
    this.exitCode = exitCode;
    this.stderr = stderr;
  }
}
