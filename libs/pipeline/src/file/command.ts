/** Makes the commands of a stage: shell text in which every `${{ }}` has become a reference to a variable. */
import type { Command, Expression } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { EXPRESSION_MARK } from '../shell/shell-words.ts';
import { bindExpressions } from '../shell/shell-scanner.ts';
import type { BoundExpression } from '../shell/bound-expression.ts';
import { hasExpression, readExpressions } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import { utf8Length } from '../text/text-position.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';

/** Variables that carry the values of expressions; no `env` may use names that begin like this. */
export const BINDING_PREFIX = 'PENSTOCK_EXPR_';

const QUOTING_SHELLS = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh']);
const REMEDY = "give it a name under 'env:' and use that variable here";

/** What is known of the stage whose command it is. */
export interface CommandContext {
  /** The stage's own; undefined: `sh`. */
  readonly shell: string | undefined;
  /** What `matrix` gives under these names is a whole number in every combination. */
  readonly numbers: ReadonlySet<string>;
}

/** Reads one command. Its expressions are added to `sites`, to be checked when the file is known. */
export function readCommand(
  node: ScalarNode,
  path: string,
  { shell, numbers }: CommandContext,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Command | undefined {
  const { problems } = reader;
  if (node.text.trim() === '') {
    problems.add(node, path, "'run' is empty", "write a command, such as 'run: make test'");
    return undefined;
  }
  if (utf8Length(node.text, PIPELINE_LIMITS.commandBytesMax) > PIPELINE_LIMITS.commandBytesMax) {
    problems.add(
      node,
      path,
      `a command is longer than ${PIPELINE_LIMITS.commandBytesMax / 1024} KiB`,
      'move it into a file of the repository',
    );
    return undefined;
  }
  if (!hasExpression(node.text)) return { script: node.text, bindings: {} };
  const read = readExpressions(node, 'run', path, reader);
  if (read === undefined) return undefined;
  const name = shell === undefined ? 'sh' : shell.slice(shell.lastIndexOf('/') + 1);
  if (!QUOTING_SHELLS.has(name)) {
    for (const site of read.sites)
      problems.add(
        wholeOf(site),
        path,
        `an expression cannot stand in a script for ${quoted(name)}, whose quoting is not known`,
        REMEDY,
      );
    return undefined;
  }
  if (node.text.includes(EXPRESSION_MARK) || node.text.includes(BINDING_PREFIX)) {
    problems.add(node, path, `a command with expressions cannot hold '${BINDING_PREFIX}' or the character U+FFFF`);
    return undefined;
  }
  return bind(node, read.pieces, read.sites, { shell: name, numbers }, path, reader, sites);
}

function bind(
  node: ScalarNode,
  pieces: readonly { readonly source: string; readonly from: number; readonly to: number }[],
  found: readonly ExpressionSite[],
  { shell, numbers }: CommandContext & { readonly shell: string },
  path: string,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Command | undefined {
  const bound: BoundExpression[] = [];
  const bySource = new Map<string, string>();
  const bindings: Record<string, Expression> = {};
  let masked = '';
  let from = 0;
  for (const [index, piece] of pieces.entries()) {
    masked += node.text.slice(from, piece.from) + EXPRESSION_MARK;
    from = piece.to;
    const source = piece.source.trim();
    const name = bySource.get(source) ?? `${BINDING_PREFIX}${bySource.size + 1}`;
    bySource.set(source, name);
    const site = found[index];
    const expression = site?.parsed.expression;
    bound.push({
      name,
      source,
      isOpen: expression === undefined || !isFixed(expression),
      isNumber: expression !== undefined && isNumberOf(expression, numbers),
    });
    if (site !== undefined) bindings[name] = site.parsed.expression;
  }
  masked += node.text.slice(from);
  const { script, refusals } = bindExpressions(masked, bound, shell);
  sites.push(...found);
  for (const [index, reason] of refusals) {
    const site = found[index];
    if (site !== undefined)
      reader.problems.add(
        wholeOf(site),
        path,
        `this expression could change what the shell executes: ${reason}`,
        REMEDY,
      );
  }
  if (refusals.size > 0) return undefined;
  // An expression in a comment is dropped from the script, and its binding with it.
  for (const name of Object.keys(bindings)) if (!script.includes(`\${${name}}`)) delete bindings[name];
  return { script, bindings };
}

/** Whether the file itself, or Penstock, decides what the value can be: nobody outside has a say in it. */
function isFixed(expression: Expression): boolean {
  switch (expression.kind) {
    case 'literal':
    case 'call':
    case 'not':
      return true;
    case 'path': {
      const [root, name, field] = expression.path;
      if (root === 'run') return name === 'id';
      return root === 'matrix' || root === 'pipeline' || (root === 'stages' && field === 'status');
    }
    case 'binary':
      if (expression.operator === '==' || expression.operator === '!=') return true;
      return isFixed(expression.left) && isFixed(expression.right);
    case 'text':
      return false;
  }
}

function isNumberOf(expression: Expression, numbers: ReadonlySet<string>): boolean {
  if (expression.kind !== 'path') return false;
  const [root, name = '', ...rest] = expression.path;
  return root === 'matrix' && rest.length === 0 && numbers.has(name);
}

/** The place of an expression as a whole: its `${{`. */
function wholeOf(site: ExpressionSite): { start: number; end: number } {
  const { start } = site.spanOf({ from: -3, to: 0 });
  return { start, end: start + 3 };
}
