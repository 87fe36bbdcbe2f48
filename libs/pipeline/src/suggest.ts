/** Finds what a misspelt word was meant to be. */

/** Words longer than this get no suggestion: the comparison is quadratic in their length. */
const WORD_LENGTH_MAX = 64;

/** The candidate nearest to the word, if it is near enough to be a slip of the fingers. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length === 0 || word.length > WORD_LENGTH_MAX) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.min(3, Math.ceil(word.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance || candidate.length > WORD_LENGTH_MAX) continue;
    const distance = editDistance(lower, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
      if (distance === 0) break;
    }
  }
  return best;
}

/** `did you mean 'x'?` for the nearest candidate. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  const candidate = nearest(word, candidates);
  return candidate === undefined ? undefined : `did you mean '${candidate}'?`;
}

/** Edits from one word to the other, a swap of neighbours counting as one; any value from `cap` on means "too far". */
function editDistance(from: string, to: string, cap: number): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    let smallest = row;
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (previous[column] ?? cap) + 1,
        (current[column - 1] ?? cap) + 1,
        (previous[column - 1] ?? cap) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        cost = Math.min(cost, (beforePrevious[column - 2] ?? cap) + 1);
      }
      current.push(cost);
      if (cost < smallest) smallest = cost;
    }
    if (smallest >= cap) return cap;
    beforePrevious = previous;
    previous = current;
  }
  return previous[to.length] ?? cap;
}
