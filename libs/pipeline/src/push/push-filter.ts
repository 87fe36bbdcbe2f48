/** Whether a push or a pull request is one that the file's `on` asks for, and by which rule it is not. */
import type { EventFilters, PullRequestFilter, PullRequestType, PushFilter } from '../model/definition.ts';
import { GlobList } from './glob.ts';

export interface Push {
  /** The full name: `refs/heads/main`, `refs/tags/v1`. */
  readonly ref: string;
  /** What the push changed, from the root of the repository; null: not known, which passes every filter of paths. */
  readonly paths: readonly string[] | null;
}

export interface PullRequest {
  /** What it would go into, by its short name: `main`. */
  readonly branch: string;
  readonly type: PullRequestType;
  /** What it changes, against where it left that branch; null: not known, which passes every filter. */
  readonly paths: readonly string[] | null;
}

/** `rule`: where under `on` the key stands that let the event not pass: `push.branches`; `push` where `on` has none. */
type EventMatch = { readonly matched: true } | { readonly matched: false; readonly rule: string };

/** Some seconds of matching. What is left of a longer list of paths counts as not known. */
const EFFORT_MAX = 20_000_000;
const MATCHED: EventMatch = { matched: true };

const TYPES_MATCHED: readonly PullRequestType[] = ['opened', 'synchronize', 'reopened', 'ready_for_review'];

/** Pure and total. A ref that is neither a branch nor a tag passes only where no filter of either is given. */
export function matchesPush(on: EventFilters | undefined, push: Push): EventMatch {
  const filter = on?.push;
  if (filter === undefined) return asksFor(on, 'pullRequest') ? heldBackBy('push') : MATCHED;
  const rule = pushRule(filter, push);
  return rule === undefined ? MATCHED : heldBackBy(`push.${rule}`);
}

/** The same of a pull request. Its filter of paths is looked at last: `paths` are asked for only then. */
export async function matchesPullRequest(
  on: EventFilters | undefined,
  { branch, type }: Omit<PullRequest, 'paths'>,
  paths: () => Promise<PullRequest['paths']>,
): Promise<EventMatch> {
  const filter: PullRequestFilter | undefined = on?.pullRequest;
  if (filter === undefined && asksFor(on, 'push')) return heldBackBy('pull_request');
  if (!(filter?.types ?? TYPES_MATCHED).includes(type)) return heldBackBy('pull_request.types');
  if (filter?.branches !== undefined && !new GlobList(filter.branches).includes(branch))
    return heldBackBy('pull_request.branches');
  if (filter?.paths === undefined) return MATCHED;
  return somePath(filter.paths, await paths(), true) ? MATCHED : heldBackBy('pull_request.paths');
}

/** `on` without an event in it says nothing. */
function asksFor(on: EventFilters | undefined, event: keyof EventFilters): boolean {
  return on?.[event] !== undefined;
}

function heldBackBy(rule: string): EventMatch {
  return { matched: false, rule };
}

/** Undefined: none holds it back. */
function pushRule(filter: PushFilter, push: Push): string | undefined {
  const { kind, name } = refOf(push.ref);
  const hasBranches = filter.branches !== undefined || filter.branchesIgnore !== undefined;
  const hasTags = filter.tags !== undefined || filter.tagsIgnore !== undefined;
  if (kind === 'branch' ? hasTags && !hasBranches : kind === 'tag' ? hasBranches && !hasTags : hasBranches || hasTags)
    return hasBranches ? 'branches' : 'tags';
  if (kind === 'branch') {
    if (filter.branches !== undefined && !new GlobList(filter.branches).includes(name)) return 'branches';
    if (filter.branchesIgnore !== undefined && new GlobList(filter.branchesIgnore).includes(name))
      return 'branches-ignore';
  } else if (kind === 'tag') {
    if (filter.tags !== undefined && !new GlobList(filter.tags).includes(name)) return 'tags';
    if (filter.tagsIgnore !== undefined && new GlobList(filter.tagsIgnore).includes(name)) return 'tags-ignore';
  }
  // A tag names a commit that is there already: what it changed says nothing about the tag.
  if (kind === 'tag') return undefined;
  if (filter.paths !== undefined && !somePath(filter.paths, push.paths, true)) return 'paths';
  return filter.pathsIgnore !== undefined && !somePath(filter.pathsIgnore, push.paths, false)
    ? 'paths-ignore'
    : undefined;
}

/** Whether a path fits the patterns, or, where that is not wanted, one does not. */
function somePath(patterns: readonly string[], paths: readonly string[] | null, wanted: boolean): boolean {
  if (paths === null) return true;
  const effort = { left: EFFORT_MAX };
  const globs = new GlobList(patterns);
  return paths.some((path) => globs.includes(path, effort) === wanted || effort.left <= 0);
}

function refOf(ref: string): { readonly kind: 'branch' | 'tag' | 'other'; readonly name: string } {
  if (ref.startsWith('refs/heads/')) return { kind: 'branch', name: ref.slice('refs/heads/'.length) };
  if (ref.startsWith('refs/tags/')) return { kind: 'tag', name: ref.slice('refs/tags/'.length) };
  return { kind: 'other', name: ref };
}
