/** What follows from where a run came from. */
import type { RunTrigger, TriggerOrigin } from './state.ts';

export function triggerOf({ kind }: Pick<TriggerOrigin, 'kind'>): RunTrigger {
  return kind === 'webhook' ? 'push' : kind;
}

/** Trust never rises: what a run says of it at its beginning holds for all that comes of it. */
export function isTrusted({ trusted }: Pick<TriggerOrigin, 'trusted'>): boolean {
  return trusted !== false;
}
