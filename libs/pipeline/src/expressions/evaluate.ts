/**
 * The values of checked expressions. Total: no expression and no scope makes it throw, but for its `onText`, and a name that is missing, or
 * that only exists on an object's prototype, is null.
 */
import type { Command, Expression, ExpressionScope, Template } from '../model/definition.ts';

export type ExpressionValue = string | number | boolean | null;

/** The value of an expression; `&&` and `||` answer with one of their operands, as in JavaScript. */
export function evaluate(expression: Expression, scope: ExpressionScope): ExpressionValue {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'path':
      return valueAt(expression.path, scope);
    case 'text': {
      const text = renderTemplate(expression.parts, scope);
      scope.onText?.(text);
      return text;
    }
    case 'call':
      // Of files, which are not here.
      if (expression.name === 'hash') return null;
      if (expression.name === 'success') return scope.success;
      return expression.name === 'failure' ? scope.failure : true;
    case 'not':
      return !truthy(evaluate(expression.operand, scope));
    case 'binary': {
      const left = evaluate(expression.left, scope);
      if (expression.operator === '&&') return truthy(left) ? evaluate(expression.right, scope) : left;
      if (expression.operator === '||') return truthy(left) ? left : evaluate(expression.right, scope);
      const same = compare(expression, left, evaluate(expression.right, scope), scope);
      return expression.operator === '==' ? same : !same;
    }
  }
}

/**
 * Whether a value counts as true. Outputs and variables are always text, so the text `false` is false as well as the
 * empty text, 0 and null; every other text is true.
 */
export function truthy(value: ExpressionValue): boolean {
  return value !== null && value !== false && value !== 0 && value !== '' && value !== 'false';
}

/** The text of a template, a missing value being the empty text; of it the first `max` characters. */
export function renderTemplate(template: Template, scope: ExpressionScope, max = Infinity): string {
  let text = '';
  for (const part of template) {
    if (text.length >= max) break;
    const value = typeof part === 'string' ? part : textOf(evaluate(part.expression, scope));
    // Never longer than it may be, not even for a moment: a value of 64 KiB may be named a hundred times.
    text += value.length > max - text.length ? value.slice(0, max - text.length) : value;
  }
  return text;
}

/** The variables that a command's script refers to, to be added to its environment. */
export function bindingsOf(command: Command, scope: ExpressionScope): Record<string, string> {
  const bindings: Record<string, string> = {};
  // NUL ends a variable for the operating system; a value that holds one could not be passed at all.
  for (const [name, expression] of Object.entries(command.bindings))
    bindings[name] = textOf(evaluate(expression, scope)).replaceAll('\0', '');
  return bindings;
}

/** From here on the same two texts are not looked through again: an output of 64 KiB may be compared for each of thousands of stages. */
const LONG_TEXT = 256;

function compare(
  by: Expression,
  left: ExpressionValue,
  right: ExpressionValue,
  { compared }: Pick<ExpressionScope, 'compared'>,
): boolean {
  if (compared === undefined || typeof left !== 'string' || typeof right !== 'string') return equal(left, right);
  if (left.length < LONG_TEXT || left.length !== right.length) return left === right;
  const known = compared.get(by);
  // One that is the very text is found to be so at once.
  if (known !== undefined && known.left === left && known.right === right) return known.same;
  const same = left === right;
  compared.set(by, { left, right, same });
  return same;
}

function textOf(value: ExpressionValue): string {
  return value === null ? '' : String(value);
}

/**
 * Text is compared exactly. A number or boolean compared with a text is compared as what the text says (`'3' == 3`,
 * `'true' == true`), for outputs are always text. Null is also the empty text: that is what a missing value renders as.
 */
export function equal(left: ExpressionValue, right: ExpressionValue): boolean {
  if (typeof left === typeof right) return left === right;
  if (left === null || right === null) return (left ?? right) === '';
  if (typeof left === 'string') return textEquals(left, right);
  if (typeof right === 'string') return textEquals(right, left);
  return false;
}

function textEquals(text: string, value: ExpressionValue): boolean {
  if (typeof value === 'boolean') return text === String(value);
  return typeof value === 'number' && /^-?[0-9]+(\.[0-9]+)?$/.test(text) && Number(text) === value;
}

function valueAt(path: readonly string[], scope: ExpressionScope): ExpressionValue {
  let value: unknown = scope;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return null;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}
