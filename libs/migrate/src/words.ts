/** Keys that take one of a few words: another one is told, and never counts as the default in silence. */
import type { Ledger } from './ledger.ts';
import { take, type SourceMap } from './source.ts';

export interface ToldWord<Word extends string> {
  readonly ledger: Ledger;
  /** Whose key it is. */
  readonly of: string;
  readonly words: readonly Word[];
  /** What becomes of another word. */
  readonly otherwise: string;
}

/** Undefined: it is not said, or told. */
export function takeWord<Word extends string>(
  map: SourceMap,
  key: string,
  { ledger, of, words, otherwise }: ToldWord<Word>,
): Word | undefined {
  const node = take(map, key);
  if (node === undefined) return undefined;
  const text = node.kind === 'text' ? node.text : '';
  const word = words.find((one) => one === text);
  if (word === undefined)
    ledger.tell(node.line, `'${key}: ${text}' of ${of}, which is none of ${words.join(', ')}`, otherwise);
  return word;
}

/** The same of one that is true or false. */
export function takeFlag(
  map: SourceMap,
  key: string,
  told: Omit<ToldWord<'true' | 'false'>, 'words'>,
): boolean | undefined {
  const word = takeWord(map, key, { ...told, words: ['true', 'false'] });
  return word === undefined ? undefined : word === 'true';
}
