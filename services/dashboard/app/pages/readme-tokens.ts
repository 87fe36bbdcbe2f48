/**
 * Somebody else's Markdown as tokens. What reads it takes the square of the length of a paragraph for some, and the stack for quotes
 * within quotes: it reads a paragraph at a time and lets the page go on between, and what no person writes stays as it is.
 */
import { Lexer, type Token } from 'marked';

/** Of a paragraph or a cell; a longer one is shown as the text that it is. */
const INLINE_CHARS_MAX = 4_000;
const SLICE_MS = 10;
/** Quotes deeper than this. */
const TOO_DEEP = /^[ \t]*(?:>[ \t]*){50}/mu;

/** Null: it is to be shown as plain text, or `stop` was aborted. */
export async function tokensOf(text: string, stop: AbortSignal): Promise<readonly Token[] | null> {
  if (TOO_DEEP.test(text)) return null;
  const lexer = new Lexer();
  lexer.blockTokens(text.replaceAll(/\r\n?/gu, '\n'), lexer.tokens);
  let since = performance.now();
  for (const { src, tokens } of lexer.inlineQueue) {
    if (src.length > INLINE_CHARS_MAX) tokens.push({ type: 'text', raw: src, text: src, escaped: false });
    else lexer.inlineTokens(src, tokens);
    if (performance.now() - since < SLICE_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    if (stop.aborted) return null;
    since = performance.now();
  }
  return lexer.tokens;
}
