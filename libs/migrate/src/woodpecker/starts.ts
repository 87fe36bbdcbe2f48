/** `when` of a whole file. */
import type { Draft } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import { markSeen, take, takeTexts, textsOf, type SourceNode } from '../source.ts';

/** Which pushes and pull requests start the file. */
export function startsInto(draft: Draft, node: SourceNode | undefined, ledger: Ledger): void {
  if (node === undefined) return;
  const items = node.kind === 'list' && node.items.some(({ kind }) => kind === 'map') ? node.items : [node];
  draft.hasOn = true;
  const push: { branches: string[]; tags: string[]; paths: string[] } = { branches: [], tags: [], paths: [] };
  const pull: { branches: string[]; paths: string[] } = { branches: [], paths: [] };
  let [anyBranch, anyPull, onPush, onPull] = [false, false, false, false];
  for (const item of items) {
    const map = item.kind === 'map' ? item : undefined;
    const branches = map === undefined ? [...textsOf(item)] : patternsOf(take(map, 'branch'));
    const events = map === undefined ? [] : patternsOf(take(map, 'event')).filter((event) => !event.startsWith('!'));
    const paths = map === undefined ? [] : pathsOf(take(map, 'path'));
    const has = (event: string): boolean => events.length === 0 || events.includes(event);
    if (has('push')) {
      onPush = true;
      if (branches.length === 0) anyBranch = true;
      push.branches.push(...branches);
      push.paths.push(...paths);
    }
    if (has('tag') || events.includes('release')) push.tags.push('**');
    if (has('pull_request')) {
      onPull = true;
      if (branches.length === 0) anyPull = true;
      pull.branches.push(...branches);
      pull.paths.push(...paths);
    }
    for (const event of events)
      if (!['push', 'tag', 'release', 'pull_request', 'manual'].includes(event))
        ledger.tell(
          item.line,
          `the event '${event}'`,
          event === 'cron'
            ? 'write the line under `schedule`'
            : 'a push, a pull request, a schedule or the API starts pipelines',
        );
    for (const { key, line, value } of map?.entries ?? []) {
      if (['event', 'branch', 'path'].includes(key)) continue;
      if (map !== undefined) take(map, key);
      markSeen(value);
      ledger.tell(line, `the condition '${key}' of the file`, 'say it by `on`, or as `when` of its stages');
    }
  }
  if (onPush || push.tags.length > 0)
    draft.push = {
      ...(!onPush ? {} : { branches: anyBranch ? ['**'] : [...new Set(push.branches)] }),
      ...(push.tags.length === 0 ? {} : { tags: ['**'] }),
      ...(push.paths.length === 0 ? {} : { paths: [...new Set(push.paths)] }),
    };
  if (onPull)
    draft.pullRequest = {
      ...(anyPull ? {} : { branches: [...new Set(pull.branches)] }),
      ...(pull.paths.length === 0 ? {} : { paths: [...new Set(pull.paths)] }),
    };
}

/** A text, a list of them, or maps of what is in and what is out, as patterns of ours. */
function patternsOf(node: SourceNode | undefined): string[] {
  if (node === undefined) return [];
  if (node.kind !== 'map') return [...textsOf(node)];
  const include = takeTexts(node, 'include');
  const exclude = takeTexts(node, 'exclude').map((pattern) => `!${pattern}`);
  return [...(include.length === 0 && exclude.length > 0 ? ['**'] : include), ...exclude];
}

function pathsOf(node: SourceNode | undefined): string[] {
  if (node?.kind === 'map') for (const key of ['ignore_message', 'on_empty']) take(node, key);
  return patternsOf(node);
}
