/**
 * Parsed files, remembered by their text: a process that checks a file at its door and then owns its run reads it once.
 * Remembering changes no answer, since the text alone decides it.
 */
import type { ParseResult } from '../model/definition.ts';
import { parsePipeline, type ParseOptions } from './parse.ts';

const TEXTS_MAX = 256;
/** UTF-16 units of all texts remembered: what is longer than a share of it is read anew each time. */
const TEXT_LENGTH_MAX = 64 * 1024;

/** Good files only, least recently used first: a bad one is not worth the place. */
const remembered = new Map<string, ParseResult>();

/** As `parsePipeline`. A file that is good by itself is just as good, and the same, as the server's template. */
export function parseRemembered(text: string, options: ParseOptions = {}): ParseResult {
  const known = remembered.get(text);
  if (known !== undefined) {
    remembered.delete(text);
    remembered.set(text, known);
    return known;
  }
  const result = parsePipeline(text, options);
  if (result.ok && isPlain(options) && text.length <= TEXT_LENGTH_MAX) {
    if (remembered.size >= TEXTS_MAX) remembered.delete(remembered.keys().next().value ?? '');
    remembered.set(text, result);
  }
  return result;
}

function isPlain(options: ParseOptions): boolean {
  return Object.values(options).every((value) => value === undefined || value === false);
}
