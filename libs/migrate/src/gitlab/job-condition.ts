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
import { takeFlag } from '../words.ts';
import type { Extended } from './extended.ts';
import { conditionOfRefs, conditionOfRule, type RuleNames } from './rules.ts';

/** How somebody starts a job. */
export interface StartByHand {
  /** Where somebody is asked; elsewhere the job starts by itself. */
  readonly asked: Condition;
  /** Nobody waits for it until it is started. */
  readonly isOptional: boolean;
}

export interface ConditionContext {
  readonly stage: DraftStage;
  readonly ledger: Ledger;
  readonly names: RuleNames;
  readonly extended: Extended;
  /** Jobs that somebody starts, by their stages. */
  readonly byHand: Map<string, StartByHand>;
}

/** Each says that none before it fits: of more the condition would be longer than one may be. */
const RULES_MAX = 200;
const WHENS: ReadonlySet<string> = new Set(['on_success', 'on_failure', 'always', 'manual', 'delayed', 'never']);

/** When the job runs. Its stage is told as well whether it may fail, which is the rules' to say too. */
export function jobCondition(context: ConditionContext, map: SourceMap): Condition {
  const { byHand, ledger, stage } = context;
  const rules = take(map, 'rules');
  const job = ownWords(context, map);
  const only = take(map, 'only');
  const except = take(map, 'except');
  const delay = takeText(map, 'start_in');
  if (delay !== undefined)
    ledger.tell(map.line, `'${stage.name}' starts after ${delay}`, 'a stage starts when what it comes after has ended');
  const parts: Condition[] = [];
  stage.allowFailure = job.mayFail;
  if (rules !== undefined) parts.push(rulesOf(context, rules, job));
  if (only !== undefined) parts.push(...refsOf(context, only));
  // Any of its keys is enough.
  if (except !== undefined) parts.push(...refsOf(context, except).map((of): Condition => ({ kind: 'not', of })));
  if (job.exitCodesLine !== undefined)
    ledger.tell(
      job.exitCodesLine,
      `the exit codes by which '${stage.name}' may fail`,
      stage.allowFailure ? 'it may fail by any here' : 'it may fail by none here',
    );
  // A rule that says nothing itself has what the job says.
  if (rules !== undefined) return all(parts);
  if (job.when !== undefined && !WHENS.has(job.when)) parts.push(unknownWhen(job.when));
  if (job.when === 'manual') byHand.set(stage.name, { asked: ALWAYS, isOptional: job.isOptional });
  if (job.when === 'always') parts.push({ kind: 'fact', when: 'always()' });
  if (job.when === 'on_failure') parts.push({ kind: 'fact', when: 'failure()' });
  if (job.when === 'never') parts.push({ kind: 'fact', when: 'false' });
  return all(parts);
}

/** What the job says, for rules that do not say it themselves. */
interface OwnWords {
  readonly when: string | undefined;
  readonly mayFail: boolean;
  /** If somebody starts it. What may fail by some exit codes only is waited for. */
  readonly isOptional: boolean;
  /** Where exit codes are named by which it may fail. */
  readonly exitCodesLine: number | undefined;
}

function ownWords(context: ConditionContext, map: SourceMap): OwnWords {
  const when = takeText(map, 'when');
  const failure = takeMap(map, 'allow_failure');
  if (failure !== undefined) {
    takeAll(failure);
    return { when, mayFail: true, isOptional: false, exitCodesLine: failure.line };
  }
  const mayFail = mayFailBy(context, map) ?? when === 'manual';
  return { when, mayFail, isOptional: mayFail, exitCodesLine: undefined };
}

/** Of a job or of one of its rules. */
function mayFailBy({ ledger, stage }: ConditionContext, map: SourceMap): boolean | undefined {
  return takeFlag(map, 'allow_failure', {
    ledger,
    of: `'${stage.name}'`,
    otherwise: 'it counts as not said',
  });
}

/** A misspelt `manual` is no job that starts by itself. */
function unknownWhen(when: string): Condition {
  return { kind: 'unknown', text: `when: ${when}` };
}

/** The first rule that fits decides. */
function rulesOf(context: ConditionContext, node: SourceNode, job: OwnWords): Condition {
  const { extended, ledger, names } = context;
  const taken: TakenRule[] = [];
  const before: Condition[] = [];
  for (const item of extended.items(node)) {
    if (item.kind !== 'map') continue;
    if (before.length >= RULES_MAX) {
      markSeen(node);
      return { kind: 'unknown', text: `more than ${RULES_MAX} of them` };
    }
    const text = takeText(item, 'if');
    const condition = text === undefined ? ALWAYS : conditionOfRule(text, names);
    const variables = takeMap(item, 'variables');
    if (variables !== undefined) ledger.tell(variables.line, `variables of a rule of '${context.stage.name}'`);
    takeAll(variables);
    const own = mayFailBy(context, item);
    const when = takeText(item, 'when') ?? job.when ?? 'on_success';
    const asksFiles = tellFiles(context, item, when);
    if (when !== 'never')
      taken.push({
        line: item.line,
        when,
        here: all([condition, ...before, WHENS.has(when) ? ALWAYS : unknownWhen(when)]),
        mayFail: own ?? job.mayFail,
        isOptional: when === 'manual' && (own ?? job.isOptional),
      });
    // Nobody knows whether it fits: those behind it are looked at as if it did not.
    if (asksFiles) continue;
    before.push({ kind: 'not', of: condition });
    if (condition.kind === 'always') {
      // No later rule is ever looked at.
      markSeen(node);
      break;
    }
  }
  letFail(context, taken);
  startByHand(context, taken);
  return taken.length === 0 ? { kind: 'fact', when: 'false' } : any(withStatus(taken));
}

interface TakenRule {
  readonly line: number;
  readonly when: string;
  /** It fits, and none before it of which that is known. */
  readonly here: Condition;
  readonly mayFail: boolean;
  /** Somebody may start it, and nobody waits for that. */
  readonly isOptional: boolean;
}

/** Whether the rule asks for files, which nothing here can say of a single stage. */
function tellFiles({ ledger, stage }: ConditionContext, rule: SourceMap, when: string): boolean {
  let asks = false;
  for (const key of ['changes', 'exists']) {
    const filter = take(rule, key);
    if (filter === undefined) continue;
    markSeen(filter);
    asks = true;
    ledger.tell(
      filter.line,
      `the rule '${key}' of '${stage.name}'`,
      `${when === 'never' ? 'it excludes nothing here' : 'it fits here whatever the files are'}: filter pushes by \`on: paths\`, or let a stage with \`generates\` look`,
    );
  }
  return asks;
}

/**
 * A condition that asks for a status anywhere lets a stage begin after a failure, by whichever of its sides: so the other sides say
 * that nothing has failed.
 */
function withStatus(taken: readonly TakenRule[]): Condition[] {
  const others = taken.some(({ when }) => isAfterFailure(when)) ? '!failure()' : undefined;
  return taken.map(({ when, here }) => {
    const status = when === 'always' ? 'always()' : when === 'on_failure' ? 'failure()' : others;
    return status === undefined ? here : all([here, { kind: 'fact', when: status }]);
  });
}

function isAfterFailure(when: string): boolean {
  return when === 'always' || when === 'on_failure';
}

function letFail({ ledger, stage }: ConditionContext, taken: readonly TakenRule[]): void {
  const lenient = taken.filter(({ mayFail }) => mayFail);
  const [first] = lenient;
  stage.allowFailure = first !== undefined && lenient.length === taken.length;
  if (first !== undefined && !stage.allowFailure)
    ledger.tell(
      first.line,
      `that '${stage.name}' may fail by one rule and not by another`,
      'it may not fail here; with `allow_failure` it may whichever rule fits',
    );
}

/** By some rules somebody starts it, by others it starts by itself: then it is asked for where the former fit. */
function startByHand({ byHand, ledger, stage }: ConditionContext, taken: readonly TakenRule[]): void {
  const rules = taken.filter(({ when }) => when === 'manual');
  const [first] = rules;
  if (first === undefined) return;
  const isTold = taken.some(({ when }) => isAfterFailure(when));
  byHand.set(stage.name, {
    asked: isTold || rules.length === taken.length ? ALWAYS : any(rules.map(({ here }) => here)),
    isOptional: taken.every(({ isOptional }) => isOptional),
  });
  if (isTold)
    ledger.tell(
      first.line,
      `that '${stage.name}' is started by hand by one rule, and in another way by another`,
      'somebody starts it here whichever rule fits: write two stages',
    );
  const optional = taken.find(({ isOptional }) => isOptional);
  if (optional !== undefined && !taken.every(({ isOptional }) => isOptional))
    ledger.tell(
      optional.line,
      `that nobody waits for '${stage.name}' until somebody starts it`,
      'what comes after it waits here: take it out of their `after`',
    );
}

/** What stands under each key of `only` or `except`. */
function refsOf({ ledger, names, stage }: ConditionContext, node: SourceNode): Condition[] {
  if (node.kind !== 'map') return [conditionOfRefs(textsOf(node), names)];
  const refs = takeTexts(node, 'refs');
  const variables = takeTexts(node, 'variables');
  for (const key of ['changes', 'kubernetes']) {
    const filter = take(node, key);
    if (filter !== undefined) ledger.tell(filter.line, `'${key}' of '${stage.name}'`, 'filter pushes by `on: paths`');
  }
  return [
    ...(refs.length === 0 ? [] : [conditionOfRefs(refs, names)]),
    ...(variables.length === 0 ? [] : [any(variables.map((text) => conditionOfRule(text, names)))]),
  ];
}
