/**
 * What waits for runners at the other schedulers, as they announce it (P11). Keys are never of two schedulers, so these are others
 * than ours. Only stages whose keys may have another slot are named: two schedulers whose keys are all full must not leave slots to
 * each other for ever.
 *
 *  ELSEWHERE-1 What was not repeated for ELSEWHERE_MS is forgotten: its scheduler may be gone.
 */
import { hasLabels, type Session } from './sessions.ts';

type LabelSets = readonly (readonly string[])[];

const ELSEWHERE_MS = 3_000;

export class WaitingElsewhere {
  readonly #byScheduler = new Map<string, { readonly until: number; readonly labelSets: LabelSets }>();

  /** The scheduler says that this is all. True: some of what was left to it is anybody's now. */
  announced(scheduler: string, labelSets: LabelSets, now: number): boolean {
    const before = this.#byScheduler.get(scheduler)?.labelSets ?? [];
    if (labelSets.length === 0) this.#byScheduler.delete(scheduler);
    else this.#byScheduler.set(scheduler, { until: now + ELSEWHERE_MS, labelSets });
    const names = new Set(labelSets.map(nameOf));
    return before.some((labels) => !names.has(nameOf(labels)));
  }

  /** True: what was left to one that is silent is anybody's now. */
  forgetOld(now: number): boolean {
    let some = false;
    for (const [scheduler, { until }] of this.#byScheduler)
      if (until <= now) some = this.#byScheduler.delete(scheduler) || some;
    return some;
  }

  /** Whether a slot of the session could serve something of it. */
  wants(session: Pick<Session, 'labels'>): boolean {
    for (const { labelSets } of this.#byScheduler.values())
      if (labelSets.some((labels) => hasLabels(session, labels))) return true;
    return false;
  }
}

function nameOf(labels: readonly string[]): string {
  return labels.join('\n');
}
