/** Lists of names that runs of one plan have alike: which stages are queued first is the same in all of them, and may be thousands. */
import type { Plan } from './plan.ts';

interface Lists {
  readonly byFirst: Map<string, readonly string[]>;
  /** Names in all of them. */
  names: number;
}

const lists = new WeakMap<Plan, Lists>();

/** The list that another run of the plan has already, where it is the same. Nobody may change it. */
export function sharedNames(plan: Plan, names: readonly string[]): readonly string[] {
  const [first] = names;
  // A plan that stages have added to is one run's own.
  if (first === undefined || plan.addedBytes > 0) return names;
  let kept = lists.get(plan);
  if (kept === undefined) lists.set(plan, (kept = { byFirst: new Map(), names: 0 }));
  const known = kept.byFirst.get(first);
  if (known !== undefined && known.length === names.length && known.every((name, index) => name === names[index]))
    return known;
  // As many as each stage may stand in twice: what is kept is no more than what the plan itself takes.
  if (known !== undefined || kept.names + names.length > 2 * plan.stages.length) return names;
  const exact = [...names];
  kept.byFirst.set(first, exact);
  kept.names += exact.length;
  return exact;
}
