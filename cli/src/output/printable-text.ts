/** Makes text of strangers (stage names, server messages, file names) harmless for a terminal, and measures it in cells. */

/** Characters that a terminal acts upon, or that hide or reorder what stands there. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu;
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u;
const PLAIN = /^[\x20-\x7e]*$/;

/** Control, format and private characters become visible escapes; one line, whatever came in. */
export function printableText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(UNPRINTABLE, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The same for a text of several lines, which stay lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printableText).join('\n');
}

/** Terminal cells; East Asian characters and emoji take two, combining marks none. */
export function cellsOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let cells = 0;
  for (const character of text) {
    if (!/\p{M}/u.test(character)) cells += WIDE.test(character) ? 2 : 1;
  }
  return cells;
}

/** Gives exactly `width` cells: a text is cut with an ellipsis, or filled with spaces. */
export function fitText(text: string, width: number): string {
  const cells = cellsOf(text);
  if (cells <= width) return text + ' '.repeat(width - cells);
  let cut = '';
  let used = 0;
  for (const character of text) {
    const next = cellsOf(character);
    if (used + next > width - 1) break;
    cut += character;
    used += next;
  }
  return `${cut}…${' '.repeat(width - 1 - used)}`;
}
