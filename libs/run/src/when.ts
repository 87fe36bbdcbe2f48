/** Whether a stage's `when` holds. Of its environment only what the condition names is looked at, and no more than so much. */
import {
  evaluate,
  renderTemplate,
  truthy,
  type Compared,
  type Expression,
  type ExpressionScope,
  type Template,
} from '@penstock/pipeline';
import { TextsTooLong } from './errors.ts';
import type { PlannedStage } from './plan.ts';
import { countTexts, scopeOf } from './scope.ts';
import type { RunState } from './state.ts';

/**
 * Characters of the variables that a `when` names, filled in, and of what an extension puts into it: no longer variable could be
 * passed to a program. One decision may compare such texts of thousands of stages.
 */
const WHEN_TEXT_MAX = 128 * 1024;

/** Undefined: what it reads is too long. */
export function whenHolds(
  run: RunState,
  { index, definition: { env: templates } }: PlannedStage,
  when: Expression,
  success: boolean,
  failures: { isBefore(index: number): boolean },
  compared?: Compared,
): boolean | undefined {
  const onText = countTexts(WHEN_TEXT_MAX, () => new TextsTooLong());
  const env = Object.create(null) as Record<string, string>;
  const scope: ExpressionScope = {
    ...scopeOf(run, run.stages.plan, index, { success, failure: false, onText, compared }, env),
    get failure() {
      return failures.isBefore(index);
    },
  };
  try {
    // In the order of the file: a variable sees those before it.
    for (const [name, template] of variablesIn(when, templates)) {
      const value = renderTemplate(template, scope);
      onText(value);
      env[name] = value;
    }
    return truthy(evaluate(when, scope));
  } catch (error) {
    if (error instanceof TextsTooLong) return undefined;
    throw error;
  }
}

type Templates = Readonly<Record<string, Template>>;

/** By condition, and by the variables of its stage: the cells of a matrix have both in common. */
const named = new WeakMap<Expression, WeakMap<Templates, readonly (readonly [string, Template])[]>>();

function variablesIn(when: Expression, templates: Templates): readonly (readonly [string, Template])[] {
  let known = named.get(when);
  if (known === undefined) named.set(when, (known = new WeakMap()));
  let variables = known.get(templates);
  if (variables === undefined) {
    const names = namesIn(when, templates);
    variables = Object.entries(templates).filter(([name]) => names.has(name));
    known.set(templates, variables);
  }
  return variables;
}

/** Those that a condition names, and those that these are put together from. */
function namesIn(when: Expression, templates: Templates): ReadonlySet<string> {
  const names = variablesOf(when);
  // What is added on the way comes round as well.
  for (const name of names) {
    const template = Object.hasOwn(templates, name) ? templates[name] : undefined;
    for (const part of template ?? []) if (typeof part !== 'string') variablesOf(part.expression, names);
  }
  return names;
}

function variablesOf(expression: Expression, names = new Set<string>()): Set<string> {
  switch (expression.kind) {
    case 'path': {
      const [root, name] = expression.path;
      if (root === 'env' && name !== undefined) names.add(name);
      break;
    }
    case 'text':
      for (const part of expression.parts) if (typeof part !== 'string') variablesOf(part.expression, names);
      break;
    case 'call':
      for (const argument of expression.arguments) variablesOf(argument, names);
      break;
    case 'not':
      variablesOf(expression.operand, names);
      break;
    case 'binary':
      variablesOf(expression.left, names);
      variablesOf(expression.right, names);
      break;
    case 'literal':
      break;
  }
  return names;
}
