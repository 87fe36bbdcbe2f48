/** Guesses what a misspelt command or option was meant to be: a word that begins with it, else the nearest one. */
import { nearest } from '@penstock/pipeline/suggest';

export function nearestWord(word: string, candidates: readonly string[]): string | undefined {
  const starts = word.length >= 3 ? candidates.filter((candidate) => candidate.startsWith(word)) : [];
  return starts.length === 1 ? starts[0] : nearest(word, candidates);
}
