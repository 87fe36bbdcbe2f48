/**
 * JSON of clients. What `JSON.parse` takes is not always harmless to what comes after it: nesting that `JSON.stringify` and
 * every recursive function fails on, and keys that change an object's prototype when they are copied.
 */
import { BadUserInput } from '@penstock/errors';

/** Deeper than any request of ours or any host's webhook, and shallow enough for every recursive function. */
export const JSON_DEPTH_MAX = 100;
/**
 * Of brackets that open, commas and colons. No request of ours has a hundredth of it; a megabyte of members with a name each has several hundred
 * thousand, and takes `JSON.parse` a tenth of a second, in which nobody else is answered.
 */
export const JSON_MARKS_MAX = 50_000;

/** Throws `BadUserInput` for what is not JSON, is nested too deep, has too many parts, or has a key `__proto__`. */
export function parseJson(text: string): unknown {
  if (text === '') throw new BadUserInput('The body is empty: send a JSON object.');
  assertModest(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BadUserInput('The body is not well-formed JSON.');
  }
  // An escape may be part of the name, as in "__pr\u006fto__": only then does the text not show it.
  if ((text.includes('__proto__') || text.includes('\\u')) && hasProtoKey(value))
    throw new BadUserInput('The body has a key "__proto__".');
  return value;
}

/** Before anything is made of it. */
function assertModest(text: string): void {
  // So deep takes so many brackets, and as many that close them.
  if (text.length <= 2 * JSON_DEPTH_MAX) return;
  let [depth, marks] = [0, 0];
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) {
      inString = true;
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1;
      marks += 1;
      if (depth > JSON_DEPTH_MAX)
        throw new BadUserInput(`The body is nested too deep: at most ${JSON_DEPTH_MAX} levels.`);
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth -= 1;
    } else if (code === COMMA || code === COLON) {
      marks += 1;
    }
    if (marks > JSON_MARKS_MAX)
      throw new BadUserInput(
        `The body has too many parts: at most ${JSON_MARKS_MAX} brackets, commas and colons together.`,
      );
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const COMMA = 0x2c;
const COLON = 0x3a;

function hasProtoKey(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(hasProtoKey);
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProtoKey);
}
