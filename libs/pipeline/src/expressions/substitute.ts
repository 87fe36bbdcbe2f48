/**
 * Puts expressions in the place of names: how the inputs of an extension, and the stages of one, come into expressions
 * that know nothing of it. What is put in is shared and not copied, so the tree stays small in memory while its written
 * form grows; `NodeCounter` measures the written form, for that is what evaluating it costs.
 */
import type { Expression, Template } from '../model/definition.ts';

/** What a name stands for; undefined: itself. */
type Meaning = (path: readonly string[]) => Expression | undefined;

export interface Substitution {
  readonly meaning: Meaning;
  /** What `success()`, `failure()` and `always()` stand for, where they are known already. */
  readonly calls?: Readonly<Record<'success' | 'failure' | 'always', boolean>> | undefined;
}

export function literal(value: string | boolean): Expression {
  return { kind: 'literal', value };
}

/** The same object where nothing in it has another meaning. */
export function substitute(expression: Expression, by: Substitution): Expression {
  switch (expression.kind) {
    case 'literal':
      return expression;
    case 'path':
      return by.meaning(expression.path) ?? expression;
    case 'text': {
      const parts = substituteTemplate(expression.parts, by);
      return parts === expression.parts ? expression : asExpression(parts);
    }
    case 'call':
      return by.calls === undefined || expression.name === 'hash' ? expression : literal(by.calls[expression.name]);
    case 'not': {
      const operand = substitute(expression.operand, by);
      return operand === expression.operand ? expression : { kind: 'not', operand };
    }
    case 'binary': {
      const [left, right] = [substitute(expression.left, by), substitute(expression.right, by)];
      return left === expression.left && right === expression.right ? expression : { ...expression, left, right };
    }
  }
}

/** Texts that became known are parts of the template as they are. */
export function substituteTemplate(template: Template, by: Substitution): Template {
  let changed = false;
  const parts: Template[number][] = [];
  for (const part of template) {
    if (typeof part === 'string') {
      parts.push(part);
      continue;
    }
    const expression = substitute(part.expression, by);
    if (expression === part.expression) {
      parts.push(part);
      continue;
    }
    changed = true;
    if (expression.kind === 'literal') parts.push(expression.value === null ? '' : String(expression.value));
    else parts.push({ expression });
  }
  return changed ? parts : template;
}

/** A template as the value of a name. */
export function asExpression(template: Template): Expression {
  const [only] = template;
  if (template.every((part) => typeof part === 'string')) return literal(template.join(''));
  return template.length === 1 && only !== undefined && typeof only !== 'string'
    ? only.expression
    : { kind: 'text', parts: template };
}

export function conjunction(left: Expression | undefined, right: Expression | undefined): Expression | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return { kind: 'binary', operator: '&&', left, right };
}

/** The alternatives in order; the last decides where none before it is true. */
export function disjunction(alternatives: readonly Expression[]): Expression | undefined {
  return alternatives.reduceRight<Expression | undefined>(
    (right, left) => (right === undefined ? left : { kind: 'binary', operator: '||', left, right }),
    undefined,
  );
}

/** Counts the nodes of expressions as they would be written out; what is shared is counted for each place and looked at once. */
export class NodeCounter {
  readonly #counts = new WeakMap<Expression, number>();

  of(expression: Expression): number {
    const known = this.#counts.get(expression);
    if (known !== undefined) return known;
    const count = 1 + this.#inside(expression);
    this.#counts.set(expression, count);
    return count;
  }

  ofTemplate(template: Template): number {
    return template.reduce((sum, part) => sum + (typeof part === 'string' ? 0 : this.of(part.expression)), 0);
  }

  #inside(expression: Expression): number {
    switch (expression.kind) {
      case 'text':
        return this.ofTemplate(expression.parts);
      case 'not':
        return this.of(expression.operand);
      case 'binary':
        return this.of(expression.left) + this.of(expression.right);
      default:
        return 0;
    }
  }
}
