/** The delimiters of here-documents, and where their bodies end. */
import { EXPRESSION_MARK } from './shell-words.ts';

export interface Delimiter {
  readonly text: string;
  /** Any quoting of the delimiter makes the body plain text. */
  readonly quoted: boolean;
  readonly stripTabs: boolean;
  /** Characters of the operator and the delimiter together. */
  readonly length: number;
}

/** No shell script has longer ones, and the search must not run through a whole line at each `<<`. */
const DELIMITER_LENGTH_MAX = 200;

/** Reads `<<WORD` or `<<-WORD` at the beginning of a text; undefined where the word is not a plain one. */
export function readDelimiter(text: string): Delimiter | undefined {
  const found = /^<<(-?)[ \t]*((?:'[^'\n]*'|"[^"\n$`\\]*"|\\[^\n]|[^\s'"\\;&|<>()$`])+)/.exec(
    text.slice(0, DELIMITER_LENGTH_MAX),
  );
  if (found === null || found[0].includes(EXPRESSION_MARK)) return undefined;
  const word = found[2] ?? '';
  return {
    text: word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
    quoted: /['"\\]/.test(word),
    stripTabs: found[1] === '-',
    length: found[0].length,
  };
}

/** Where a body that begins at `from` ends, and where the line after its delimiter begins; undefined if it does not end. */
export function findBodyEnd(
  text: string,
  from: number,
  end: number,
  delimiter: Delimiter,
): { readonly body: number; readonly next: number } | undefined {
  let continued = false;
  for (let start = from; start < end;) {
    const newline = text.indexOf('\n', start);
    const to = newline === -1 || newline > end ? end : newline;
    const line = text.slice(start, to);
    if (!continued && (delimiter.stripTabs ? line.replace(/^\t+/, '') : line) === delimiter.text)
      return { body: start, next: Math.min(to + 1, end) };
    // A backslash at the end of a line joins the next one to it, so that this one cannot be the delimiter.
    continued = !delimiter.quoted && (/\\+$/.exec(line)?.[0].length ?? 0) % 2 === 1;
    start = to + 1;
  }
  return undefined;
}
