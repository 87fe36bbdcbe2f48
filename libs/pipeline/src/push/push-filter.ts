/** Whether a push or a pull request is one that the file's `on` asks for, and by which rule it is not. */
import type { EventFilters, PullRequestFilter, PullRequestType, PushFilter } from '../model/definition.ts';
import { GlobList, type Effort } from './glob.ts';

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

/** Gives others their turn: matching the patterns of strangers may take a second, and everybody's requests wait meanwhile. */
type GiveTurn = () => Promise<void>;

/** A second of matching for each key of a filter. What is left of a longer list of paths counts as not known. */
const EFFORT_MAX = 20_000_000;
/** Some milliseconds of it. */
const EFFORT_A_TURN = 250_000;
const MATCHED: EventMatch = { matched: true };

const TYPES_MATCHED: readonly PullRequestType[] = ['opened', 'synchronize', 'reopened', 'ready_for_review'];

/** Total. A ref that is neither a branch nor a tag passes only where no filter of either is given. */
export async function matchesPush(on: EventFilters | undefined, push: Push, giveTurn: GiveTurn): Promise<EventMatch> {
  const filter = on?.push;
  if (filter === undefined) return asksFor(on, 'pullRequest') ? heldBackBy('push') : MATCHED;
  const rule = await pushRule(filter, push, giveTurn);
  return rule === undefined ? MATCHED : heldBackBy(`push.${rule}`);
}

/** The same of a pull request. Its filter of paths is looked at last: `paths` are asked for only then. */
export async function matchesPullRequest(
  on: EventFilters | undefined,
  { branch, type }: Omit<PullRequest, 'paths'>,
  paths: () => Promise<PullRequest['paths']>,
  giveTurn: GiveTurn,
): Promise<EventMatch> {
  const filter: PullRequestFilter | undefined = on?.pullRequest;
  if (filter === undefined && asksFor(on, 'push')) return heldBackBy('pull_request');
  if (!(filter?.types ?? TYPES_MATCHED).includes(type)) return heldBackBy('pull_request.types');
  if (filter?.branches !== undefined && !(await some(filter.branches, [branch], true, giveTurn)))
    return heldBackBy('pull_request.branches');
  if (filter?.paths === undefined) return MATCHED;
  return (await some(filter.paths, await paths(), true, giveTurn)) ? MATCHED : heldBackBy('pull_request.paths');
}

/** `on` without an event in it says nothing. */
function asksFor(on: EventFilters | undefined, event: keyof EventFilters): boolean {
  return on?.[event] !== undefined;
}

function heldBackBy(rule: string): EventMatch {
  return { matched: false, rule };
}

/** Undefined: none holds it back. */
async function pushRule(filter: PushFilter, push: Push, giveTurn: GiveTurn): Promise<string | undefined> {
  const { kind, name } = refOf(push.ref);
  const hasBranches = filter.branches !== undefined || filter.branchesIgnore !== undefined;
  const hasTags = filter.tags !== undefined || filter.tagsIgnore !== undefined;
  if (kind === 'branch' ? hasTags && !hasBranches : kind === 'tag' ? hasBranches && !hasTags : hasBranches || hasTags)
    return hasBranches ? 'branches' : 'tags';
  const holdsBack = async (patterns: PushFilter['paths'], names: Push['paths'], wanted: boolean): Promise<boolean> =>
    patterns !== undefined && !(await some(patterns, names, wanted, giveTurn));
  if (kind === 'branch') {
    if (await holdsBack(filter.branches, [name], true)) return 'branches';
    if (await holdsBack(filter.branchesIgnore, [name], false)) return 'branches-ignore';
  } else if (kind === 'tag') {
    if (await holdsBack(filter.tags, [name], true)) return 'tags';
    if (await holdsBack(filter.tagsIgnore, [name], false)) return 'tags-ignore';
  }
  // A tag names a commit that is there already: what it changed says nothing about the tag.
  if (kind === 'tag') return undefined;
  if (await holdsBack(filter.paths, push.paths, true)) return 'paths';
  return (await holdsBack(filter.pathsIgnore, push.paths, false)) ? 'paths-ignore' : undefined;
}

/** Whether one of them fits the patterns, or, where that is not wanted, does not. */
async function some(
  patterns: readonly string[],
  names: readonly string[] | null,
  wanted: boolean,
  giveTurn: GiveTurn,
): Promise<boolean> {
  if (names === null) return true;
  const effort = { left: EFFORT_MAX };
  const turn = turnsOf(effort, giveTurn);
  const globs = new GlobList(patterns);
  for (const name of names)
    if ((await globs.includesInTurns(name, effort, turn)) === wanted || effort.left <= 0) return true;
  return false;
}

function turnsOf(effort: Effort, giveTurn: GiveTurn): () => Promise<void> | undefined {
  let next = effort.left - EFFORT_A_TURN;
  return () => {
    if (effort.left > next) return undefined;
    next = effort.left - EFFORT_A_TURN;
    return giveTurn();
  };
}

function refOf(ref: string): { readonly kind: 'branch' | 'tag' | 'other'; readonly name: string } {
  if (ref.startsWith('refs/heads/')) return { kind: 'branch', name: ref.slice('refs/heads/'.length) };
  if (ref.startsWith('refs/tags/')) return { kind: 'tag', name: ref.slice('refs/tags/'.length) };
  return { kind: 'other', name: ref };
}
