/** The port to a git host's webhooks: which headers are its own, and what its payloads say. */
import type { IncomingHttpHeaders } from 'node:http';
import { BadUserInput } from '@penstock/errors';
import type { PullRequest } from '@penstock/pipeline';

const ACTOR_CHARACTERS_MAX = 255;

export type ProviderName = 'git_host_a' | 'git_host_b';

type PullRequestType = PullRequest['type'];

export interface PushEvent {
  readonly repository: string;
  /** The full name: `refs/heads/main`. Any text git takes, and more: it is data, everywhere. */
  readonly ref: string;
  /** 40 or 64 hexadecimal digits in lower case. */
  readonly commit: string;
  /** What the payload offers to clone from, the best first. */
  readonly cloneUrls: readonly [string, ...string[]];
  readonly message: string | null;
  readonly paths: readonly string[] | null;
  /** The login of who pushed, as the host says; null: it does not say. */
  readonly actor: string | null;
  /** Of the repository, by its short name; absent: the payload does not say. */
  readonly defaultBranch?: string | undefined;
  /** Absent: it is a push. */
  readonly pullRequest?: PullRequestEvent | undefined;
}

/** Of a pull request that has something to run: `ref` and `commit` of its event are those of its head. */
export interface PullRequestEvent {
  readonly number: number;
  /** What it would go into, by its short name. */
  readonly branch: string;
  readonly type: PullRequestType;
  /** Its commits come from another repository, or nobody knows from which. */
  readonly fork: boolean;
  /** Where its head was; absent: it was nowhere, or the payload does not say. */
  readonly before?: string | undefined;
}

export type Reading =
  | { readonly kind: 'push'; readonly push: PushEvent }
  /** What is known of it; the rest is ''. */
  | {
      readonly kind: 'ignored';
      readonly why: string;
      readonly repository: string;
      readonly ref: string;
      readonly commit: string;
    };

export interface Provider {
  readonly name: ProviderName;
  /** Undefined: the request is not from this host. */
  eventOf(headers: IncomingHttpHeaders): string | undefined;
  /** Signature or token, as sent. */
  proofOf(headers: IncomingHttpHeaders): string | undefined;
  /** Whether the proof was made with this secret. Takes the same time for every proof of the same length. */
  proves(proof: string, body: Buffer, secret: string): boolean | Promise<boolean>;
  /** Names the repository in the bytes of a payload that nobody has parsed yet. */
  readonly repositoryPattern: RegExp;
  /** Null: the host gave none. */
  deliveryIdOf(headers: IncomingHttpHeaders, push: PushEvent): string | null;
  /** Throws `BadUserInput` for a push that lacks what a push has. */
  read(event: string, payload: Fields): Reading;
}

/** The members of a JSON object, none of them believed yet. */
export type Fields = Readonly<Record<string, unknown>>;

const REPOSITORY_CHARACTERS_MAX = 300;
const REF_CHARACTERS_MAX = 1_024;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;
const NO_COMMIT = /^0+$/u;
/** Bounds the paths of one push; where there are more, none are known. */
const PATHS_MAX = 20_000;
const PATH_CHARACTERS_MAX = 4_096;

export function headerOf(headers: IncomingHttpHeaders, ...names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = headers[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A login as a host says it, cut to what one can be; null: there is none. */
export function actorOf(...candidates: readonly unknown[]): string | null {
  const login = candidates.map(textOf).find((text) => text !== '');
  return login?.slice(0, ACTOR_CHARACTERS_MAX).toWellFormed() ?? null;
}

export function requireRepository(value: unknown, field: string): string {
  // Half a surrogate pair is in no name, and no store takes it; nor is a control character in any.
  if (
    typeof value !== 'string' ||
    value === '' ||
    value.length > REPOSITORY_CHARACTERS_MAX ||
    !value.isWellFormed() ||
    /\p{Cc}/u.test(value)
  ) {
    throw new BadUserInput(`The payload's '${field}' does not name a repository.`, { field });
  }
  return value;
}

export function requireRef(value: unknown): string {
  if (
    typeof value !== 'string' ||
    !value.startsWith('refs/') ||
    value.length > REF_CHARACTERS_MAX ||
    !value.isWellFormed() ||
    value.includes('\0')
  ) {
    throw new BadUserInput("The payload's 'ref' is not the full name of a ref, as in refs/heads/main.", {
      field: 'ref',
    });
  }
  return value;
}

export function requireCommit(value: unknown, field: string): string {
  const commit = textOf(value).toLowerCase();
  if (!COMMIT.test(commit) || NO_COMMIT.test(commit))
    throw new BadUserInput(`The payload's '${field}' is not a commit: 40 or 64 hexadecimal digits.`, { field });
  return commit;
}

/** The commit before it as a member of a pull request, where the host says one. */
export function beforeOf(value: unknown): Pick<PullRequestEvent, 'before'> {
  const before = textOf(value).toLowerCase();
  return COMMIT.test(before) && !NO_COMMIT.test(before) ? { before } : {};
}

export function requireNumber(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw new BadUserInput(`The payload's '${field}' is not the number of a pull request.`, { field });
  return value;
}

/** A branch by its short name. */
export function requireBranch(value: unknown, field: string): string {
  const branch = textOf(value);
  if (!isBranch(branch)) throw new BadUserInput(`The payload's '${field}' is not the name of a branch.`, { field });
  return branch;
}

/** The default branch as a member of its event, where the host says one that can be a branch's name. */
export function defaultBranchOf(value: unknown): Pick<PushEvent, 'defaultBranch'> {
  const branch = textOf(value);
  return isBranch(branch) ? { defaultBranch: branch } : {};
}

function isBranch(branch: string): boolean {
  return branch !== '' && branch.length <= REF_CHARACTERS_MAX && branch.isWellFormed() && !branch.includes('\0');
}

/** How both hosts write "nothing": a ref that was not there before, or is not any more. */
export function isNoCommit(value: unknown): boolean {
  return typeof value === 'string' && NO_COMMIT.test(value);
}

/** All that these commits changed; null where one does not say, or there are none to say it. */
export function changedPaths(commits: unknown, totalMax: number): string[] | null {
  if (!Array.isArray(commits) || commits.length === 0 || commits.length >= totalMax) return null;
  const paths = new Set<string>();
  for (const commit of commits) {
    const { added, modified, removed } = fieldsOf(commit);
    for (const list of [added, modified, removed]) {
      if (!Array.isArray(list)) return null;
      for (const path of list) {
        if (typeof path !== 'string' || path.length > PATH_CHARACTERS_MAX) return null;
        paths.add(path.toWellFormed());
      }
      if (paths.size > PATHS_MAX) return null;
    }
  }
  return [...paths];
}

/** What the payload offers to clone from. Throws `BadUserInput` where it offers nothing at all: `field` is where it should stand. */
export function requireCloneUrls(field: string, ...values: readonly unknown[]): PushEvent['cloneUrls'] {
  const [best, ...others] = textsOf(...values);
  if (best === undefined)
    throw new BadUserInput(`The payload's '${field}' is missing: there is nothing to clone from.`, { field });
  return [best, ...others];
}

function textsOf(...values: readonly unknown[]): string[] {
  return [...new Set(values.filter((value): value is string => typeof value === 'string' && value !== ''))];
}
