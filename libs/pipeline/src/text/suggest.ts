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

/** Rows of the table of distances, used anew for each pair: a file can ask for a hundred thousand of them. */
const rows = [
  new Uint8Array(WORD_LENGTH_MAX + 1),
  new Uint8Array(WORD_LENGTH_MAX + 1),
  new Uint8Array(WORD_LENGTH_MAX + 1),
] as const;

/** Edits from one word to the other, a swap of neighbours counting as one; any value from `cap` on means "too far". */
function editDistance(from: string, to: string, cap: number): number {
  let [beforePrevious, previous, current] = rows;
  for (let column = 0; column <= to.length; column++) previous[column] = column;
  for (let row = 1; row <= from.length; row++) {
    const unit = from.charCodeAt(row - 1);
    current[0] = row;
    let smallest = row;
    for (let column = 1; column <= to.length; column++) {
      const same = unit === to.charCodeAt(column - 1);
      let cost = Math.min(
        (previous[column] ?? cap) + 1,
        (current[column - 1] ?? cap) + 1,
        (previous[column - 1] ?? cap) + (same ? 0 : 1),
      );
      if (
        row > 1 &&
        column > 1 &&
        unit === to.charCodeAt(column - 2) &&
        from.charCodeAt(row - 2) === to.charCodeAt(column - 1)
      ) {
        cost = Math.min(cost, (beforePrevious[column - 2] ?? cap) + 1);
      }
      current[column] = cost;
      if (cost < smallest) smallest = cost;
    }
    if (smallest >= cap) return cap;
    [beforePrevious, previous, current] = [previous, current, beforePrevious];
  }
  return previous[to.length] ?? cap;
}
