/** Whether a push is one that the file's `on.push` asks for, and by which rule it is not. */
import type { PipelineDefinition, PushFilter } from '../model/definition.ts';
import { GlobList } from './glob.ts';

export interface Push {
  /** The full name: `refs/heads/main`, `refs/tags/v1`. */
  readonly ref: string;
  /** What the push changed, from the root of the repository; null: not known, which passes every filter of paths. */
  readonly paths: readonly string[] | null;
}

/** `rule`: the key under `on.push` that let the push not pass. */
export type PushMatch = { readonly matched: true } | { readonly matched: false; readonly rule: string };

/** Some seconds of matching. What is left of a longer list of paths counts as not known. */
const EFFORT_MAX = 20_000_000;
const MATCHED: PushMatch = { matched: true };

/** Pure and total. A ref that is neither a branch nor a tag passes only where no filter of either is given. */
export function matchesPush(on: PipelineDefinition['on'], push: Push): PushMatch {
  const filter = on?.push;
  if (filter === undefined) return MATCHED;
  const { kind, name } = refOf(push.ref);
  const hasBranches = filter.branches !== undefined || filter.branchesIgnore !== undefined;
  const hasTags = filter.tags !== undefined || filter.tagsIgnore !== undefined;
  if (kind === 'branch' ? hasTags && !hasBranches : kind === 'tag' ? hasBranches && !hasTags : hasBranches || hasTags) {
    return { matched: false, rule: hasBranches ? 'branches' : 'tags' };
  }
  if (kind === 'branch') {
    if (filter.branches !== undefined && !new GlobList(filter.branches).includes(name))
      return { matched: false, rule: 'branches' };
    if (filter.branchesIgnore !== undefined && new GlobList(filter.branchesIgnore).includes(name))
      return { matched: false, rule: 'branches-ignore' };
  } else if (kind === 'tag') {
    if (filter.tags !== undefined && !new GlobList(filter.tags).includes(name)) return { matched: false, rule: 'tags' };
    if (filter.tagsIgnore !== undefined && new GlobList(filter.tagsIgnore).includes(name))
      return { matched: false, rule: 'tags-ignore' };
  }
  // A tag names a commit that is there already: what it changed says nothing about the tag.
  return kind === 'tag' ? MATCHED : matchesPaths(filter, push.paths);
}

function matchesPaths(filter: PushFilter, paths: readonly string[] | null): PushMatch {
  if (paths === null) return MATCHED;
  const effort = { left: EFFORT_MAX };
  const some = (globs: GlobList, wanted: boolean): boolean =>
    paths.some((path) => globs.includes(path, effort) === wanted || effort.left <= 0);
  if (filter.paths !== undefined && !some(new GlobList(filter.paths), true)) return { matched: false, rule: 'paths' };
  if (filter.pathsIgnore !== undefined && !some(new GlobList(filter.pathsIgnore), false))
    return { matched: false, rule: 'paths-ignore' };
  return MATCHED;
}

function refOf(ref: string): { readonly kind: 'branch' | 'tag' | 'other'; readonly name: string } {
  if (ref.startsWith('refs/heads/')) return { kind: 'branch', name: ref.slice('refs/heads/'.length) };
  if (ref.startsWith('refs/tags/')) return { kind: 'tag', name: ref.slice('refs/tags/'.length) };
  return { kind: 'other', name: ref };
}
