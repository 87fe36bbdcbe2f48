/** When a job runs: `rules`, `when`, `only` and `except`. */
import { ALWAYS, all, any, type Condition } from '../condition.ts';
import type { DraftStage } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import {
  markSeen,
  take,
  takeAll,
  takeMap,
  takeText,
  takeTexts,
  textsOf,
  type SourceMap,
  type SourceNode,
} from '../source.ts';
import type { Extended } from './extended.ts';
import { conditionOfRefs, conditionOfRule, type RuleNames } from './rules.ts';

export interface ConditionContext {
  readonly stage: DraftStage;
  readonly ledger: Ledger;
  readonly names: RuleNames;
  readonly extended: Extended;
  /** Jobs that somebody starts, by their stages; when they can be started. */
  readonly manual: Map<string, Condition>;
}

export function jobCondition(context: ConditionContext, map: SourceMap): Condition {
  const { ledger, manual, stage } = context;
  const rules = take(map, 'rules');
  const when = takeText(map, 'when');
  const only = take(map, 'only');
  const except = take(map, 'except');
  const delay = takeText(map, 'start_in');
  if (delay !== undefined)
    ledger.tell(map.line, `'${stage.name}' starts after ${delay}`, 'a stage starts when what it comes after has ended');
  const parts: Condition[] = [];
  if (rules !== undefined) parts.push(rulesOf(context, rules));
  if (only !== undefined) parts.push(refsOf(context, only));
  if (except !== undefined) parts.push({ kind: 'not', of: refsOf(context, except) });
  if (when === 'manual') manual.set(stage.name, ALWAYS);
  if (when === 'always') parts.push({ kind: 'fact', when: 'always()' });
  if (when === 'on_failure') parts.push({ kind: 'fact', when: 'failure()' });
  if (when === 'never') parts.push({ kind: 'fact', when: 'false' });
  return all(parts);
}

/** The first rule that fits decides. */
function rulesOf(context: ConditionContext, node: SourceNode): Condition {
  const { extended, ledger, manual, names, stage } = context;
  const taken: Condition[] = [];
  const before: Condition[] = [];
  for (const item of extended.items(node)) {
    if (item.kind !== 'map') continue;
    const text = takeText(item, 'if');
    const condition = text === undefined ? ALWAYS : conditionOfRule(text, names);
    for (const key of ['changes', 'exists']) {
      const filter = take(item, key);
      if (filter === undefined) continue;
      markSeen(filter);
      ledger.tell(
        filter.line,
        `the rule '${key}' of '${stage.name}'`,
        'filter pushes by `on: paths`, or let a stage with `generates` look',
      );
    }
    const variables = takeMap(item, 'variables');
    if (variables !== undefined) ledger.tell(variables.line, `variables of a rule of '${stage.name}'`);
    takeAll(variables);
    takeText(item, 'allow_failure');
    const when = takeText(item, 'when');
    const here = all([condition, ...before]);
    before.push({ kind: 'not', of: condition });
    if (when === 'never') continue;
    if (when === 'manual') manual.set(stage.name, here);
    taken.push(
      when === 'always'
        ? all([here, { kind: 'fact', when: 'always()' }])
        : when === 'on_failure'
          ? all([here, { kind: 'fact', when: 'failure()' }])
          : here,
    );
    if (condition.kind === 'always') {
      // No later rule is ever looked at.
      markSeen(node);
      break;
    }
  }
  return taken.length === 0 ? { kind: 'fact', when: 'false' } : any(taken);
}

function refsOf({ ledger, names, stage }: ConditionContext, node: SourceNode): Condition {
  if (node.kind !== 'map') return conditionOfRefs(textsOf(node), names);
  const refs = takeTexts(node, 'refs');
  const variables = takeTexts(node, 'variables');
  for (const key of ['changes', 'kubernetes']) {
    const filter = take(node, key);
    if (filter !== undefined) ledger.tell(filter.line, `'${key}' of '${stage.name}'`, 'filter pushes by `on: paths`');
  }
  const parts = [
    ...(refs.length === 0 ? [] : [conditionOfRefs(refs, names)]),
    ...(variables.length === 0 ? [] : [any(variables.map((text) => conditionOfRule(text, names)))]),
  ];
  return all(parts);
}
