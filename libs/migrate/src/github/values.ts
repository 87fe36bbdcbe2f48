/**
 * What names of GitHub's expressions stand for here: an expression of ours, and a text of the shell with the same value.
 *
 * VALUES-1. Scripts get values by variables alone: what an expression says goes into the stage's `env`, as data.
 */
import { lookup } from '../lookup.ts';
import {
  all,
  any,
  ALWAYS,
  branchIs,
  IS_BRANCH,
  IS_TAG,
  refIs,
  refMatches,
  shellOf,
  triggerIs,
  type Condition,
} from '../condition.ts';
import type { DraftStage } from '../draft.ts';
import { variableName, withoutExpressions } from '../shell-text.ts';
import { parseExpression, type Expression } from './expression.ts';

export interface Names {
  readonly inputs: ReadonlySet<string>;
  readonly env: ReadonlySet<string>;
  /** Ids of jobs to the names of their stages. */
  readonly stages: ReadonlyMap<string, string>;
  /** Jobs with a matrix: one of their stages has no single result. */
  readonly manifold: ReadonlySet<string>;
  /** Axes of the job's matrix. */
  readonly axes: ReadonlySet<string>;
  /** Variables with what earlier steps of the job have put out: the step and the name of the output. */
  readonly reads: Map<string, readonly [step: string, output: string]>;
  /** Where a step's condition stands: its values are variables of the stage. */
  readonly stage?: DraftStage;
}

const TRIGGERS: Readonly<Record<string, string>> = lookup({
  push: 'push',
  pull_request: 'pull_request',
  pull_request_target: 'pull_request',
  workflow_dispatch: 'api',
  repository_dispatch: 'api',
  schedule: 'schedule',
});
const RESULTS: Readonly<Record<string, string>> = lookup({
  success: 'SUCCESS',
  failure: 'FAILED',
  cancelled: 'CANCELLED',
  skipped: 'SKIPPED',
});
const OURS: Readonly<Record<string, string>> = lookup({
  'github.sha': 'run.commit',
  'github.ref': 'run.ref',
  'github.run_id': 'run.id',
  'github.actor': 'run.actor',
  'github.triggering_actor': 'run.actor',
  'github.event_name': 'run.trigger',
  'github.workflow': 'pipeline.name',
});
const SHELL: Readonly<Record<string, string>> = lookup({
  'github.sha': '${SERVICE_COMMIT:-}',
  'github.ref': '${SERVICE_REF:-}',
  'github.ref_name': '${SERVICE_REF#refs/*/}',
  'github.repository': '${SERVICE_REPOSITORY:-}',
  'github.repository_owner': '${SERVICE_REPOSITORY%%/*}',
  'github.event.repository.name': '${SERVICE_REPOSITORY##*/}',
  'github.workspace': '$PWD',
  'github.event.pull_request.number': '$(echo "${SERVICE_REF:-}" | cut -d / -f 3)',
  'github.event.number': '$(echo "${SERVICE_REF:-}" | cut -d / -f 3)',
  'github.event.pull_request.head.sha': '${SERVICE_COMMIT:-}',
  'runner.temp': '${TMPDIR:-/tmp}',
});
const FIXED: Readonly<Record<string, string>> = lookup({ 'runner.os': 'Linux', 'runner.arch': 'X64' });

/** An expression of ours with the value of the name. */
function oursOf(path: readonly string[], names: Names): string | undefined {
  const [first = '', second = '', third = '', fourth = ''] = path;
  const known = OURS[path.join('.')];
  if (known !== undefined) return known;
  if (first === 'matrix' && path.length === 2 && names.axes.has(second)) return `matrix.${second}`;
  // Values that are maps are taken apart (`matrix.ts`).
  if (first === 'matrix' && path.length === 3 && names.axes.has(`${second}_${third}`))
    return `matrix.${second}_${third}`;
  const input = first === 'inputs' ? second : path.slice(0, 3).join('.') === 'github.event.inputs' ? fourth : undefined;
  if (input !== undefined && names.inputs.has(input)) return `inputs.${input}`;
  if (first === 'env' && names.env.has(second)) return `env.${second}`;
  if (first === 'needs' && !names.manifold.has(second)) {
    const stage = names.stages.get(second);
    if (stage === undefined) return undefined;
    const place = /^[\w-]+$/.test(stage) ? `stages.${stage}` : `stages['${stage.replaceAll("'", "''")}']`;
    if (third === 'outputs' && fourth !== '') return `${place}.outputs.${fourth}`;
    if (third === 'result') return `${place}.status`;
  }
  return undefined;
}

/** A text for the inside of double quotes of a script, which has the value; the stage gets the variables that it needs. */
export function shellTextOf(expression: Expression, names: Names, stage: DraftStage): string | undefined {
  if (expression.kind === 'value') return expression.value;
  if (expression.kind === 'binary' && expression.operator === '||') {
    const { left: condition, right: otherwise } = expression;
    if (condition.kind === 'binary' && condition.operator === '&&') {
      const holds = shellOf(conditionOfExpression(condition.left, { ...names, stage }));
      const [value, other] = [condition.right, otherwise].map((one) => shellTextOf(one, names, stage));
      if (holds === undefined || value === undefined || other === undefined) return undefined;
      return `$(if ${holds}; then echo "${value}"; else echo "${other}"; fi)`;
    }
    const left = shellTextOf(expression.left, names, stage);
    const right = shellTextOf(expression.right, names, stage);
    const variable = /^\$\{?(\w+)(?::-)?\}?$/.exec(left ?? '')?.[1];
    return variable === undefined || right === undefined ? undefined : `\${${variable}:-${right}}`;
  }
  if (expression.kind === 'call' && expression.name === 'format') {
    const [pattern, ...given] = expression.arguments.map((one) => shellTextOf(one, names, stage));
    if (pattern === undefined || given.includes(undefined)) return undefined;
    return pattern.replaceAll(/\{(\d+)\}/g, (_, index: string) => given[Number(index)] ?? '');
  }
  if (expression.kind !== 'name') return undefined;
  const { path } = expression;
  const [first = '', second = '', third = '', fourth = ''] = path;
  const full = path.join('.');
  const fixed = FIXED[full];
  if (fixed !== undefined) return fixed;
  const shell = SHELL[full];
  if (shell !== undefined) return shell;
  if (first === 'env' && path.length === 2) return `\${${second}}`;
  if (first === 'secrets' && path.length === 2) {
    const secret = secretName(second);
    stage.secrets[secret] = secret;
    return `\${${secret}}`;
  }
  if (full === 'github.token') {
    stage.secrets['GIT_HOST_TOKEN'] = 'GIT_HOST_TOKEN';
    return '${GIT_HOST_TOKEN}';
  }
  if (first === 'steps' && third === 'outputs' && fourth !== '') {
    const read = variableName('steps', second, fourth);
    names.reads.set(read, [second, fourth]);
    return `\${${read}}`;
  }
  const ours = oursOf(path, names);
  if (ours === undefined) return undefined;
  if (ours.startsWith('inputs.')) return `\${${variableName('input', ours.slice('inputs.'.length))}}`;
  const variable = variableName(...path.filter((part) => part !== 'outputs'));
  stage.env[variable] = `\${{ ${ours} }}`;
  return `\${${variable}}`;
}

/** Names of secrets are capitals here; the token that each job has there is one that somebody keeps here. */
export function secretName(name: string): string {
  return name.toUpperCase() === 'GITHUB_TOKEN' ? 'GIT_HOST_TOKEN' : name.toUpperCase();
}

/** A text with expressions of ours in place of GitHub's; undefined where one of them has no counterpart. */
export function templateOf(text: string, names: Names): string | undefined {
  let isKnown = true;
  const result = withoutExpressions(text, (inner) => {
    const expression = parseExpression(inner);
    if (expression?.kind === 'value') return expression.value;
    if (expression?.kind === 'name') {
      const fixed = FIXED[expression.path.join('.')];
      if (fixed !== undefined) return fixed;
    }
    const ours = expression === undefined ? undefined : templatePart(expression, names);
    if (ours !== undefined) return `\${{ ${ours} }}`;
    isKnown = false;
    return '';
  });
  return isKnown ? result : undefined;
}

/** An expression of ours: a name, or the first of several that is there. */
function templatePart(expression: Expression, names: Names): string | undefined {
  // The branch of a pull request: its ref is as much its own.
  if (expression.kind === 'name')
    return expression.path.join('.') === 'github.head_ref' ? 'run.ref' : oursOf(expression.path, names);
  if (expression.kind === 'value') return expression.value.includes("'") ? undefined : `'${expression.value}'`;
  if (expression.kind !== 'binary' || expression.operator !== '||') return undefined;
  const left = templatePart(expression.left, names);
  const right = templatePart(expression.right, names);
  return left === undefined || right === undefined || left === right ? left : `${left} || ${right}`;
}

/** A script ends at the first step that fails: what comes behind has had no failure before it. */
const WHATEVER_WAS_BEFORE: Condition = { kind: 'fact', when: 'always()', shell: 'true' };
const SUCCESS: Condition = { kind: 'fact', when: 'success()', shell: 'true' };

/** What `if` says. `stage` is where a step's condition stands; without it, what holds for a job. */
export function conditionOf(text: string, names: Names): Condition {
  const inner = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(text)?.[1] ?? text.replaceAll(/\$\{\{|\}\}/g, ' ');
  const expression = parseExpression(inner);
  if (expression === undefined) return { kind: 'unknown', text };
  const condition = conditionOfExpression(expression, names);
  return names.stage === undefined ? withSuccess(condition) : condition;
}

/** Of a job: that nothing before it has failed is what `when` says by itself, where it asks for no status. */
function withSuccess(condition: Condition): Condition {
  const sides = condition.kind === 'and' ? condition.sides : [condition];
  const rest = sides.filter((side) => side !== SUCCESS);
  const others = all(rest);
  if (!asksFor(others, /^(always|failure|success)\(\)$/)) return others;
  // A side that says nothing of failures holds after one, too.
  return asksFor(condition, /^(always|failure)\(\)$/) ? condition : all([WHATEVER_WAS_BEFORE, condition]);
}

function asksFor(condition: Condition, status: RegExp): boolean {
  if (condition.kind === 'fact') return condition.when !== undefined && status.test(condition.when);
  if (condition.kind === 'not') return asksFor(condition.of, status);
  return (condition.kind === 'and' || condition.kind === 'or') && condition.sides.some((side) => asksFor(side, status));
}

function conditionOfExpression(expression: Expression, names: Names): Condition {
  const again = (one: Expression): Condition => conditionOfExpression(one, names);
  if (expression.kind === 'not') {
    if (expression.of.kind === 'call' && expression.of.name === 'cancelled') return WHATEVER_WAS_BEFORE;
    return { kind: 'not', of: again(expression.of) };
  }
  if (expression.kind === 'value')
    return ['true', '1'].includes(expression.value) ? ALWAYS : { kind: 'fact', when: 'false', shell: 'false' };
  if (expression.kind === 'call') return callOf(expression, names);
  if (expression.kind === 'name') return truthOf(expression.path, names);
  const { left, operator, right } = expression;
  if (operator === '&&') return all([again(left), again(right)]);
  if (operator === '||') return any([again(left), again(right)]);
  if (operator === '==' || operator === '!=') {
    const [name, value] = left.kind === 'name' ? [left, right] : [right, left];
    if (name.kind !== 'name' || value.kind !== 'value') return unknownOf(expression);
    const equal = equals(name.path, value.value, names);
    return operator === '==' ? equal : { kind: 'not', of: equal };
  }
  return unknownOf(expression);
}

function truthOf(path: readonly string[], names: Names): Condition {
  const ours = oursOf(path, names);
  const text = variableText(path, ours, names);
  if (ours === undefined && text === undefined) return unknownOf({ kind: 'name', path });
  return {
    kind: 'fact',
    ...(ours === undefined ? {} : { when: ours }),
    ...(text === undefined ? {} : { shell: `case "${text}" in ''|false|0) false ;; *) true ;; esac` }),
  };
}

function callOf(call: Expression & { readonly kind: 'call' }, names: Names): Condition {
  const [first, second] = call.arguments;
  if (call.name === 'always') return WHATEVER_WAS_BEFORE;
  if (call.name === 'failure') return { kind: 'fact', when: 'failure()', shell: 'false' };
  if (call.name === 'success') return names.stage === undefined ? SUCCESS : ALWAYS;
  if (first?.kind !== 'name' || second?.kind !== 'value' || !/^[\w./@+-]*$/.test(second.value)) return unknownOf(call);
  const pattern = { startswith: `${second.value}*`, contains: `*${second.value}*`, endswith: `*${second.value}` }[
    call.name
  ];
  if (pattern === undefined) return unknownOf(call);
  const full = first.path.join('.');
  if (full === 'github.ref') return refMatches(pattern);
  if (full === 'github.ref_name') return any([refMatches(`refs/heads/${pattern}`), refMatches(`refs/tags/${pattern}`)]);
  const shell =
    SHELL[full] ?? (OURS[full] === 'run.actor' ? '$ACTOR' : variableText(first.path, oursOf(first.path, names), names));
  if (shell !== undefined) return { kind: 'fact', shell: `case "${shell}" in ${pattern}) true ;; *) false ;; esac` };
  return unknownOf(call);
}

function equals(path: readonly string[], value: string, names: Names): Condition {
  const full = path.join('.');
  if (full === 'github.event_name') {
    const trigger = TRIGGERS[value];
    return trigger === undefined ? unknownOf({ kind: 'name', path: [full, value] }) : triggerIs(trigger);
  }
  if (full === 'github.ref') return refIs(value);
  if (full === 'github.ref_type' && value === 'tag') return IS_TAG;
  if (full === 'github.ref_type' && value === 'branch') return IS_BRANCH;
  if (full === 'github.ref_name') return any([branchIs(value), refIs(`refs/tags/${value}`)]);
  if (path[0] === 'needs' && path[2] === 'result') {
    const ours = oursOf(path, names);
    const status = RESULTS[value];
    if (ours !== undefined && status !== undefined) return { kind: 'fact', when: `${ours} == '${status}'` };
  }
  const shell = SHELL[full];
  if (shell !== undefined && /^[\w./@+-]*$/.test(value)) return { kind: 'fact', shell: `[ "${shell}" = "${value}" ]` };
  const fixed = FIXED[full];
  if (fixed !== undefined) return fixed === value ? ALWAYS : { kind: 'fact', when: 'false', shell: 'false' };
  if (value.includes("'")) return unknownOf({ kind: 'name', path });
  const ours = oursOf(path, names);
  const text = variableText(path, ours, names);
  if (ours === undefined && text === undefined) return unknownOf({ kind: 'name', path });
  return {
    kind: 'fact',
    ...(ours === undefined ? {} : { when: `${ours} == '${value}'` }),
    ...(text === undefined ? {} : { shell: `[ "${text}" = '${value}' ]` }),
  };
}

/** Where there is a stage: its variable with the value, for the inside of double quotes. */
function variableText(path: readonly string[], ours: string | undefined, names: Names): string | undefined {
  const [first = '', second = '', third = ''] = path;
  if (ours?.startsWith('inputs.') === true) return `\${${variableName('input', ours.slice('inputs.'.length))}}`;
  if (names.stage === undefined) return undefined;
  const isOutput = first === 'steps' && third === 'outputs';
  if (ours === undefined && !isOutput && first !== 'env') return undefined;
  if (first === 'env' && path.length === 2) return `\${${second}:-}`;
  return shellTextOf({ kind: 'name', path }, names, names.stage);
}

function unknownOf(expression: Expression): Condition {
  return { kind: 'unknown', text: expression.kind === 'name' ? expression.path.join('.') : expression.kind };
}
