/** Finds the `${{ }}` in a text and knows where in the file each part of one stands. */
import type { Template } from '../model/definition.ts';
import { parseExpression } from '../expressions/expression.ts';
import type { ParsedExpression, Part } from '../expressions/expression.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { Problems } from '../text/problems.ts';
import type { Span } from '../text/text-position.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';

/** Where an expression stands, which decides the names it can use. */
export type Place =
  | 'run'
  | 'when'
  | 'stage-env'
  | 'top-env'
  | 'workdir'
  | 'group'
  | 'runs-on'
  | 'image'
  | 'cache'
  | 'with'
  | 'output'
  | 'message';

/** A checked expression together with its place, kept until the whole file is known and its names can be checked. */
export interface ExpressionSite {
  readonly place: Place;
  /** The dotted path of the key that holds it. */
  readonly path: string;
  readonly parsed: ParsedExpression;
  readonly spanOf: (part: Part) => Span;
}

/** What reading an expression needs to know of the file. */
export interface ExpressionReader {
  readonly text: string;
  readonly problems: Problems;
}

interface Piece {
  /** What stands between `${{` and `}}`. */
  readonly source: string;
  /** Where `${{` begins in the value. */
  readonly from: number;
  readonly to: number;
}

export function hasExpression(text: string): boolean {
  return text.includes('${{');
}

/** The expressions of a value in order, or the place in it where one is opened and not closed. */
export function findExpressions(text: string): { readonly pieces: readonly Piece[]; readonly unclosed?: number } {
  const pieces: Piece[] = [];
  for (let from = text.indexOf('${{'); from !== -1;) {
    const close = closingBraces(text, from + 3);
    if (close === -1) return { pieces, unclosed: from };
    pieces.push({ source: text.slice(from + 3, close), from, to: close + 2 });
    from = text.indexOf('${{', close + 2);
  }
  return { pieces };
}

/** The next `}}` that is not inside quotes. */
function closingBraces(text: string, from: number): number {
  const end = Math.min(text.length, from + PIPELINE_LIMITS.expressionLengthMax + 2);
  let quote: string | undefined;
  for (let at = from; at < end; at++) {
    const character = text[at];
    if (quote !== undefined) {
      if (character === '\\' && quote === '"') at += 1;
      else if (character === quote) quote = undefined;
    } else if (character === "'" || character === '"') quote = character;
    else if (character === '}' && text[at + 1] === '}') return at;
  }
  return -1;
}

/** Parses all expressions of a value and notes those that are faulty. Undefined if any is. */
export function readExpressions(
  node: ScalarNode,
  place: Place,
  path: string,
  reader: ExpressionReader,
): { pieces: readonly Piece[]; sites: ExpressionSite[] } | undefined {
  const { pieces, unclosed } = findExpressions(node.text);
  const sites: ExpressionSite[] = [];
  let sound = true;
  if (unclosed !== undefined) {
    reader.problems.add(
      spanIn(node, pieces.length, undefined, reader.text),
      path,
      "'${{' is not closed by '}}'",
      `an expression has at most ${PIPELINE_LIMITS.expressionLengthMax} characters, and quotes in it must be closed`,
    );
    sound = false;
  }
  if (pieces.length > PIPELINE_LIMITS.expressionsPerTextMax) {
    reader.problems.add(node, path, `more than ${PIPELINE_LIMITS.expressionsPerTextMax} expressions in one value`);
    return undefined;
  }
  for (const [ordinal, piece] of pieces.entries()) {
    const spanOf = (part: Part): Span => spanIn(node, ordinal, { source: piece.source, part }, reader.text);
    const site = readExpression(piece.source, place, path, spanOf, reader.problems);
    if (site === undefined) sound = false;
    else sites.push(site);
  }
  return sound ? { pieces, sites } : undefined;
}

/** Parses the text of one expression. */
export function readExpression(
  source: string,
  place: Place,
  path: string,
  spanOf: (part: Part) => Span,
  problems: Problems,
): ExpressionSite | undefined {
  const parsed = parseExpression(source);
  if (!('fault' in parsed)) return { place, path, parsed, spanOf };
  problems.add(spanOf(parsed.fault), path, parsed.fault.message, parsed.fault.suggestion);
  return undefined;
}

/** The value as a template. Faulty expressions are noted, and left out of what is returned. */
export function readTemplate(
  node: ScalarNode,
  place: Place,
  path: string,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Template {
  if (!hasExpression(node.text)) return [node.text];
  const read = readExpressions(node, place, path, reader);
  if (read === undefined) return [];
  const parts: Template[number][] = [];
  let from = 0;
  for (const [index, piece] of read.pieces.entries()) {
    if (piece.from > from) parts.push(node.text.slice(from, piece.from));
    const site = read.sites[index];
    if (site !== undefined) {
      sites.push(site);
      parts.push({ expression: site.parsed.expression });
    }
    from = piece.to;
  }
  if (from < node.text.length) parts.push(node.text.slice(from));
  return parts;
}

/**
 * Where a part of the `ordinal`-th expression of a value stands in the file. Folding and escapes can make the value
 * differ from what the file says; the expression as a whole, or the value, is then the nearest place there is.
 */
function spanIn(
  node: ScalarNode,
  ordinal: number,
  inside: { readonly source: string; readonly part: Part } | undefined,
  text: string,
): Span {
  let from = node.start - 1;
  for (let count = 0; count <= ordinal; count++) {
    from = text.indexOf('${{', from + 1);
    if (from === -1 || from >= node.end) return { start: node.start, end: node.end };
  }
  if (inside === undefined || !text.startsWith(inside.source, from + 3)) return { start: from, end: from + 3 };
  return { start: from + 3 + inside.part.from, end: from + 3 + inside.part.to };
}
