/**
 * Somebody else's Markdown as tokens. What reads it takes the square of the length of a paragraph for some, and of the lines of an item of
 * a list, and the stack for quotes and lists within each other: it reads a paragraph at a time and lets the page go on between, and what no
 * person writes stays as it is, or would stand as tens of thousands of elements.
 */
import { Lexer, walkTokens, type Token } from 'marked';

/** Of a paragraph or a cell; a longer one is shown as the text that it is. */
const INLINE_CHARS_MAX = 4_000;
const SLICE_MS = 10;
/** Each becomes an element, and the page stands still while they are drawn. The densest of some hundred files would have 27,000 at the length that is shown. */
const TOKENS_MAX = 30_000;
/** Without an empty one between them. */
const LINES_TOGETHER_MAX = 500;
/** Quotes and lists within each other, deeper than this on one line. */
const TOO_DEEP = /^[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])[ \t]*){50}/mu;

/** Null: it is to be shown as plain text, or `stop` was aborted. */
export async function tokensOf(text: string, stop: AbortSignal): Promise<readonly Token[] | null> {
  const lines = text.replaceAll(/\r\n?/gu, '\n');
  if (TOO_DEEP.test(lines) || hasManyTogether(lines)) return null;
  const lexer = new Lexer();
  try {
    lexer.blockTokens(lines, lexer.tokens);
  } catch {
    // Deeper than the stack of this browser.
    return null;
  }
  let count = sizeOf(lexer.tokens);
  // Of rules and the like none has a text that would be looked at below.
  if (count > TOKENS_MAX) return null;
  let since = performance.now();
  for (const { src, tokens } of lexer.inlineQueue) {
    if (src.length > INLINE_CHARS_MAX) tokens.push({ type: 'text', raw: src, text: src, escaped: false });
    else lexer.inlineTokens(src, tokens);
    count += sizeOf(tokens);
    if (count > TOKENS_MAX) return null;
    if (performance.now() - since < SLICE_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    if (stop.aborted) return null;
    since = performance.now();
  }
  return lexer.tokens;
}

function sizeOf(tokens: Token[]): number {
  let size = 0;
  walkTokens(tokens, () => {
    size += 1;
  });
  return size;
}

function hasManyTogether(text: string): boolean {
  let together = 0;
  for (const line of text.split('\n')) {
    together = line.trim() === '' ? 0 : together + 1;
    if (together > LINES_TOGETHER_MAX) return true;
  }
  return false;
}
