/** How text from the file is shown in messages: never raw control characters, never more than a line of it. */

const QUOTED_LENGTH_MAX = 60;

/** Replaces every control, format and surrogate character by a visible escape. */
export function printable(text: string): string {
  // What a terminal or a log viewer would act upon, or what hides what the text says. Made here: no start is to wait for it.
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\uFFFE\uFFFF]/gu, (character) => {
    if (character === '\n') return '\\n';
    if (character === '\t') return '\\t';
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The text in single quotes, printable and cut to a readable length. */
export function quoted(text: string): string {
  const cut =
    text.length > QUOTED_LENGTH_MAX
      ? `${text.slice(0, QUOTED_LENGTH_MAX - 1).replace(/[\uD800-\uDBFF]$/u, '')}…`
      : text;
  return `'${printable(cut)}'`;
}

/** A name that can stand in a list, a log line or a terminal: visible characters and plain spaces on one line. */
export function isPlainName(text: string): boolean {
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(text) && text.trim() === text;
}

/** The same of a bounded length, in characters and not in the units that a text is kept in. */
export function isPlainNameWithin(text: string, charactersMax: number): boolean {
  return text.length <= 2 * charactersMax && [...text].length <= charactersMax && isPlainName(text);
}
