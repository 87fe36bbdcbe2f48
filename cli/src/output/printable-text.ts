/** Makes text of strangers (stage names, server messages, file names) harmless for a terminal, and measures it in cells. */

const PLAIN = /^[\x20-\x7e]*$/;

/** Control, format and private characters become visible escapes; one line, whatever came in. */
export function printableText(text: string): string {
  if (PLAIN.test(text)) return text;
  // What a terminal acts upon, or what hides or reorders what stands there. Made here: every command would wait a millisecond for it.
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) => {
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
  const wide =
    /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60]/u;
  let cells = 0;
  for (const character of text) {
    if (!/\p{M}/u.test(character)) cells += wide.test(character) ? 2 : 1;
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

/** At most `width` cells: of a longer text its beginning and, rather more of it, its end. */
export function cutMiddle(text: string, width: number): string {
  if (cellsOf(text) <= width) return text;
  const head = firstCells([...text], Math.floor((width - 1) / 3));
  const tail = firstCells([...text].toReversed(), width - 1 - cellsOf(head.join('')));
  return `${head.join('')}…${tail.toReversed().join('')}`;
}

function firstCells(characters: readonly string[], width: number): string[] {
  let used = 0;
  const beyond = characters.findIndex((character) => (used += cellsOf(character)) > width);
  return characters.slice(0, beyond === -1 ? undefined : beyond);
}

/** Breaks a line at its spaces so that no line is longer than `width`, where the words allow that. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || cellsOf(last) + 1 + cellsOf(word) > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
