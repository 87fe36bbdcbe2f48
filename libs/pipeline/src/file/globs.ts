/** Reads patterns over names and paths: one, or a list of them. */
import { readList, type Field } from './fields.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { hasExpression } from './template.ts';

export function readGlobs(field: Field): string[] | undefined {
  const nodes = readList(field, 'a pattern or a list of patterns', PIPELINE_LIMITS.globsMax);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0)
    field.problems.add(field.node, field.path, `'${field.name}' has no patterns, so that nothing would ever match`);
  for (const node of nodes) {
    const fault = globFault(node.text);
    if (fault !== undefined) field.problems.add(node, field.path, `the pattern ${quoted(node.text)} ${fault}`);
  }
  return nodes.map((node) => node.text);
}

/** Patterns know `*`, `**`, `?`, `[a-z]`, `{a,b}` and a leading `!`. */
export function globFault(text: string): string | undefined {
  const pattern = text.replace(/^!/, '').replace(/\\./gs, 'x');
  if (pattern === '') return 'is empty';
  if (text.length > PIPELINE_LIMITS.globLengthMax) return `is longer than ${PIPELINE_LIMITS.globLengthMax} characters`;
  if (/\p{Cc}/u.test(text)) return 'holds control characters';
  if (hasExpression(text)) return 'cannot hold an expression';
  const outside = pattern.replace(/\[[^\]]+\]/g, 'x');
  if (/[[\]]/.test(outside)) return "has a '[' without its ']'";
  return /[{}]/.test(outside.replace(/\{[^{}]*\}/g, 'x'))
    ? "has a '{' without its '}', or one inside another"
    : undefined;
}
