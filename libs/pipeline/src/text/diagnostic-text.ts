/** Turns diagnostics into text: one line each for an API, excerpts of the file for a terminal. */
import type { Diagnostic } from '../model/definition.ts';
import { printable } from './printable.ts';

/** How much of a long line an excerpt shows; beyond it the excerpt is a window around the place. */
const EXCERPT_WIDTH = 100;
const BEFORE_PLACE = 40;

const RED = '\u001b[1;31m';
const BLUE = '\u001b[1;34m';
const BOLD = '\u001b[1m';
const RESET = '\u001b[0m';

/** `line 4, column 3: unknown key 'aftr' in stage 'build' (did you mean 'after'?)` */
export function diagnosticLine(diagnostic: Diagnostic): string {
  const remedy = diagnostic.suggestion === undefined ? '' : ` (${diagnostic.suggestion})`;
  return `line ${diagnostic.line}, column ${diagnostic.column}: ${diagnostic.message}${remedy}`;
}

/**
 * Excerpts of the file that point at each problem, in the manner of a compiler, ending in a line that counts them.
 * The file's text is shown without its control characters, whatever it holds.
 */
export function formatDiagnostics(
  text: string,
  diagnostics: readonly Diagnostic[],
  fileName: string,
  options: { readonly color?: boolean | undefined } = {},
): string {
  const paint = (code: string, part: string): string => (options.color === true ? `${code}${part}${RESET}` : part);
  const lines = text.replace(/^\uFEFF/u, '').split('\n');
  const file = printable(fileName);
  const gutter = String(Math.max(1, ...diagnostics.map((diagnostic) => diagnostic.line))).length;
  const blocks = diagnostics.map((diagnostic) => {
    const head = `${paint(RED, 'error')}${paint(BOLD, `: ${printable(diagnostic.message)}`)}`;
    if (diagnostic.length === undefined) return head;
    const excerpt = excerptOf((lines[diagnostic.line - 1] ?? '').replace(/\r$/u, ''), diagnostic);
    const bar = paint(BLUE, '|');
    const remedy = diagnostic.suggestion === undefined ? '' : ` ${printable(diagnostic.suggestion)}`;
    return [
      head,
      `${' '.repeat(gutter)}${paint(BLUE, '-->')} ${file}:${diagnostic.line}:${diagnostic.column}`,
      `${' '.repeat(gutter)} ${bar}`,
      `${paint(BLUE, String(diagnostic.line).padStart(gutter))} ${bar} ${excerpt.line}`.trimEnd(),
      `${' '.repeat(gutter)} ${bar} ${excerpt.indent}${paint(RED, `${'^'.repeat(excerpt.width)}${remedy}`)}`,
    ].join('\n');
  });
  const count = diagnostics.length;
  return `${blocks.join('\n\n')}\n\n${paint(RED, 'error')}${paint(BOLD, `: ${count} problem${count === 1 ? '' : 's'} in ${file}`)}\n`;
}

interface Excerpt {
  readonly line: string;
  /** The blanks before the mark, as wide as the text before the place. */
  readonly indent: string;
  readonly width: number;
}

function excerptOf(line: string, diagnostic: Diagnostic): Excerpt {
  const column = diagnostic.column - 1;
  const from = line.length > EXCERPT_WIDTH && column > BEFORE_PLACE ? column - BEFORE_PLACE : 0;
  const to = Math.min(line.length, from + EXCERPT_WIDTH);
  const lead = from > 0 ? '…' : '';
  const before = visible(line.slice(from, column));
  const marked = visible(line.slice(column, Math.min(to, column + (diagnostic.length ?? 1))));
  const after = visible(line.slice(Math.min(to, column + (diagnostic.length ?? 1)), to));
  return {
    line: `${lead}${before}${marked}${after}${to < line.length ? '…' : ''}`,
    indent: ' '.repeat(lead.length + widthOf(before)),
    width: Math.max(1, widthOf(marked)),
  };
}

function visible(part: string): string {
  return printable(part.replaceAll('\t', ' '));
}

/** Terminal cells of a text; East Asian characters and emoji take two. */
function widthOf(part: string): number {
  let cells = 0;
  for (const character of part) {
    cells +=
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u.test(
        character,
      )
        ? 2
        : 1;
    if (/\p{M}/u.test(character)) cells -= 1;
  }
  return cells;
}
