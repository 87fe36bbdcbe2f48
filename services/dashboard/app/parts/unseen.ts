/**
 * What is not seen, or turns the direction of what follows: names, messages and lines of logs that somebody else has made show it. By what
 * Unicode says of a character, and not by a list of ours: control characters but the tab, marks of format, separators of lines, and all
 * that draws nothing where a font does not know it. Pure.
 */

/** Within an emoji stay what joins its parts and what asks for its picture: without them it falls apart. */
const UNSEEN =
  /(?!\t|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=\p{Extended_Pictographic})\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3))[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Where they stand in a text, in its order, and what is shown in place of each. */
export function* unseenIn(
  text: string,
): Generator<{ readonly from: number; readonly to: number; readonly shown: string }, void> {
  for (const { 0: found, index } of text.matchAll(UNSEEN))
    yield { from: index, to: index + found.length, shown: nameOf(found) };
}

/** A name of somebody else's making: nothing in it is unseen. */
export function visible(text: string): string {
  return text.replace(UNSEEN, nameOf);
}

/** The same for a text of several lines, which stay lines. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/u).map(visible).join('\n');
}

function nameOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  // The pictures of the C0 controls, which fonts have.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
}
