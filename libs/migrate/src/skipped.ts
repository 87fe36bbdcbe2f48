/**
 * There a step whose condition does not hold is as if it were not in the file; here a stage after a skipped one is skipped too.
 * So what comes after such a stage comes after all before it, and runs unless one of them has failed.
 */
import type { Draft, DraftStage } from './draft.ts';

export function letSkippedPass(draft: Draft): void {
  const byName = new Map(draft.stages.map((stage) => [stage.name, stage]));
  const conditional = new Set(draft.stages.filter(({ when }) => when !== undefined).map(({ name }) => name));
  const before = new Map(draft.stages.map((stage) => [stage.name, ancestorsOf(stage, byName)]));
  for (const stage of draft.stages) {
    const ancestors = before.get(stage.name) ?? new Set();
    if (![...ancestors].some((name) => conditional.has(name))) continue;
    stage.after = [...new Set([...stage.after, ...ancestors])];
    if (stage.when === undefined) stage.when = '!failure()';
    else if (!/\b(always|failure)\(\)/.test(stage.when)) stage.when = `!failure() && (${stage.when})`;
  }
}

function ancestorsOf(stage: DraftStage, byName: ReadonlyMap<string, DraftStage>): Set<string> {
  const found = new Set<string>();
  const open = [...stage.after];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const before = byName.get(name);
    if (before === undefined || found.has(name) || before === stage) continue;
    found.add(name);
    open.push(...before.after);
  }
  return found;
}
