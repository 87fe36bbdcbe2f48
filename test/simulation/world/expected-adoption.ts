/** Which stages a rerun is to take over (P30): an account apart from the engine's, by the graph of the parent alone. */
import type { CreateRequest } from '@penstock/bus';
import type { RunState } from '@penstock/run';

type Wish = Pick<NonNullable<CreateRequest['rerun']>, 'from' | 'onlyFailed'>;

/** Name by name, from stage to stage, until nothing changes any more. */
export function expectedAdoption({ stages }: RunState, wish: Wish, changed: ReadonlySet<string>): ReadonlySet<string> {
  const { plan } = stages;
  const all = plan.stages.map(({ definition, dependencies }, index) => ({
    name: definition.name,
    isGate: definition.approval !== undefined,
    generates: definition.generates !== undefined,
    hasSucceeded: stages.statusOf(index) === 'SUCCESS',
    after: dependencies.map((at) => plan.stages[at]?.definition.name ?? ''),
    isNamed: isNamedIn(wish.from ?? [], definition),
  }));
  const isWhole = wish.onlyFailed !== true && (wish.from ?? []).length === 0;
  const again = new Set<string>();
  const spread = (starts: (stage: (typeof all)[number]) => boolean): void => {
    for (let before = -1; before !== again.size;) {
      before = again.size;
      for (const stage of all) if (starts(stage) || stage.after.some((name) => again.has(name))) again.add(stage.name);
    }
  };
  spread(
    (stage) => isWhole || stage.isNamed || changed.has(stage.name) || (wish.onlyFailed === true && !stage.hasSucceeded),
  );
  const runs = (stage: (typeof all)[number]): boolean =>
    !stage.isGate && (!stage.hasSucceeded || again.has(stage.name));
  const comesAfter = (stage: (typeof all)[number], seen = new Set<string>()): ReadonlySet<string> => {
    for (const name of stage.after) {
      if (seen.has(name)) continue;
      seen.add(name);
      const before = all.find((each) => each.name === name);
      if (before !== undefined) comesAfter(before, seen);
    }
    return seen;
  };
  for (let before = -1; before !== again.size;) {
    before = again.size;
    const running = new Set(all.filter(runs).map(({ name }) => name));
    spread((stage) => stage.generates && [...comesAfter(stage)].some((name) => running.has(name)));
  }
  const asked = new Set(all.filter(runs).flatMap((stage) => [...comesAfter(stage)]));
  const adopted = all.filter(
    (stage) => stage.hasSucceeded && !again.has(stage.name) && !(stage.isGate && asked.has(stage.name)),
  );
  return new Set(adopted.map(({ name }) => name));
}

function isNamedIn(
  from: readonly string[],
  { name, matrix }: { readonly name: string; readonly matrix?: { readonly of: string } | undefined },
): boolean {
  return from.some(
    (each) =>
      name === each ||
      matrix?.of === each ||
      `${matrix?.of ?? name}/`.startsWith(`${each}/`) ||
      name.startsWith(`${each}/`),
  );
}
