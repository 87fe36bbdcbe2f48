/** What follows from where a run came from. */
import type { RunTrigger, TriggerOrigin } from './state.ts';

export function triggerOf({ kind, pullRequest }: Pick<TriggerOrigin, 'kind' | 'pullRequest'>): RunTrigger {
  if (kind !== 'webhook') return kind;
  return pullRequest === undefined ? 'push' : 'pull_request';
}

/** Trust never rises: what a run says of it at its beginning holds for all that comes of it. */
export function isTrusted({ trusted }: Pick<TriggerOrigin, 'trusted'>): boolean {
  return trusted !== false;
}
