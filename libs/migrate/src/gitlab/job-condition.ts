/** When a job runs: `rules`, `when`, `only` and `except`. */
import { ALWAYS, all, any, type Condition } from '../condition.ts';
import type { DraftStage } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import {
  isTrue,
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
  /** Jobs that somebody starts, by their stages: always, or where this holds. */
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
  if (rules !== undefined) parts.push(rulesOf(context, rules, when));
  if (only !== undefined) parts.push(refsOf(context, only));
  if (except !== undefined) parts.push({ kind: 'not', of: refsOf(context, except) });
  // A rule that says nothing itself has what the job says.
  if (rules !== undefined) return all(parts);
  if (when === 'manual') manual.set(stage.name, ALWAYS);
  if (when === 'always') parts.push({ kind: 'fact', when: 'always()' });
  if (when === 'on_failure') parts.push({ kind: 'fact', when: 'failure()' });
  if (when === 'never') parts.push({ kind: 'fact', when: 'false' });
  return all(parts);
}

/** The first rule that fits decides. */
function rulesOf(context: ConditionContext, node: SourceNode, ofJob: string | undefined): Condition {
  const { extended, ledger, names } = context;
  const taken: TakenRule[] = [];
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
        `the rule '${key}' of '${context.stage.name}'`,
        'filter pushes by `on: paths`, or let a stage with `generates` look',
      );
    }
    const variables = takeMap(item, 'variables');
    if (variables !== undefined) ledger.tell(variables.line, `variables of a rule of '${context.stage.name}'`);
    takeAll(variables);
    const mayFail = isTrue(take(item, 'allow_failure'));
    const when = takeText(item, 'when') ?? ofJob ?? 'on_success';
    const here = all([condition, ...before]);
    before.push({ kind: 'not', of: condition });
    if (when === 'never') continue;
    taken.push({ line: item.line, when, here, mayFail });
    if (condition.kind === 'always') {
      // No later rule is ever looked at.
      markSeen(node);
      break;
    }
  }
  letFail(context, taken);
  startByHand(context, taken);
  return taken.length === 0 ? { kind: 'fact', when: 'false' } : any(taken.map(withStatus));
}

interface TakenRule {
  readonly line: number;
  readonly when: string;
  /** It fits, and none before it. */
  readonly here: Condition;
  readonly mayFail: boolean;
}

function withStatus({ when, here }: TakenRule): Condition {
  if (when === 'always') return all([here, { kind: 'fact', when: 'always()' }]);
  return when === 'on_failure' ? all([here, { kind: 'fact', when: 'failure()' }]) : here;
}

function letFail({ ledger, stage }: ConditionContext, taken: readonly TakenRule[]): void {
  const lenient = taken.filter(({ mayFail }) => mayFail);
  const [first] = lenient;
  if (first === undefined) return;
  if (lenient.length === taken.length) stage.allowFailure = true;
  else
    ledger.tell(
      first.line,
      `that '${stage.name}' may fail by one rule and not by another`,
      'it may not fail here; with `allow_failure` it may whichever rule fits',
    );
  if (lenient.some(({ when }) => when === 'manual'))
    ledger.tell(
      first.line,
      `that nobody waits for '${stage.name}' until somebody starts it`,
      'what comes after it waits here: take it out of their `after`',
    );
}

/** By some rules somebody starts it, by others it starts by itself: then it is asked for where the former fit. */
function startByHand({ ledger, manual, stage }: ConditionContext, taken: readonly TakenRule[]): void {
  const [first, ...others] = taken.filter(({ when }) => when === 'manual');
  if (first === undefined) return;
  const byHand = [first, ...others];
  if (byHand.length === taken.length) manual.set(stage.name, ALWAYS);
  else if (taken.every(({ when }) => when === 'manual' || when === 'on_success'))
    manual.set(stage.name, any(byHand.map(({ here }) => here)));
  else {
    manual.set(stage.name, ALWAYS);
    ledger.tell(
      first.line,
      `that '${stage.name}' is started by hand by one rule, and by itself after a failure by another`,
      'somebody starts it here whichever rule fits: write two stages',
    );
  }
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
