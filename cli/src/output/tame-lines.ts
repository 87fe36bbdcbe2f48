/**
 * Tames the output of a server's run on its way to a terminal. Whoever may push to a repository decides what it prints, and a
 * terminal obeys: it sets titles, fills clipboards, rewrites lines above. Colours (SGR) and tabs pass, the rest of the
 * control characters become visible; of a line that rewrote itself with CR only the last state stays. Without `color` nothing is left
 * of colours, by which lines can be hidden as well.
 */

const ESCAPE = 0x1b;
const NEWLINE = 0x0a;
const TAB = 0x09;
/** What follows the escape of a colour. */
const SGR = /^\[[0-9;:]{0,40}m/;
/** The longest escape sequence that passes. */
const SGR_LENGTH_MAX = 44;

export function tameLines(bytes: Buffer, { color }: { readonly color: boolean }): Buffer {
  if (!bytes.some(isControl)) return bytes;
  const parts: string[] = [];
  let at = 0;
  const text = bytes.toString('utf8');
  for (const match of text.matchAll(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu)) {
    if (match.index < at) continue;
    parts.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const code = match[0].charCodeAt(0);
    if (code === NEWLINE || code === TAB) parts.push(match[0]);
    else if (code === ESCAPE) {
      const colors = SGR.exec(text.slice(at, at + SGR_LENGTH_MAX))?.[0];
      if (colors === undefined) parts.push('\u241b');
      else if (color) parts.push(`\u001b${colors}`);
      at += colors?.length ?? 0;
    } else if (match[0] === '\r') at = rewritten(text, parts, at);
    else parts.push(code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd');
  }
  parts.push(text.slice(at));
  return Buffer.from(parts.join(''));
}

/** A CR before the line's end is part of it; elsewhere the line starts anew. */
function rewritten(text: string, parts: string[], at: number): number {
  if (text.charCodeAt(at) === NEWLINE || at === text.length) return at;
  for (let last = parts.length - 1; last >= 0; last -= 1) {
    const part = parts[last] ?? '';
    const lineEnd = part.lastIndexOf('\n');
    parts.length = last;
    if (lineEnd !== -1) {
      parts.push(part.slice(0, lineEnd + 1));
      break;
    }
  }
  return at;
}

/** In UTF-8 the bytes of C1 controls and of direction marks all begin beyond ASCII: a closer look is taken at those. */
function isControl(byte: number): boolean {
  return (byte < 0x20 && byte !== NEWLINE && byte !== TAB) || byte >= 0x7f;
}
