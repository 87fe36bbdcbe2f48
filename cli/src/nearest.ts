/** Finds what a misspelt word was meant to be, for commands and their options. */

/** The candidate that is at most a third of the word away, or undefined. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  // The comparison is quadratic, and nobody misspells a word of this length into one of ours.
  if (word.length > 40) return undefined;
  const starts = word.length >= 3 ? candidates.filter((candidate) => candidate.startsWith(word)) : [];
  if (starts.length === 1) return starts[0];
  let best: string | undefined;
  let bestDistance = Math.ceil(word.length / 3) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Edits from one word to the other, a swap of neighbours counting as one. */
function editDistance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= from.length; row += 1) {
    const previous = rows[row - 1] ?? [];
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (previous[column - 1] ?? 0) + (same ? 0 : 1));
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        cost = Math.min(cost, (rows[row - 2]?.[column - 2] ?? 0) + 1);
      }
      current.push(cost);
    }
    rows.push(current);
  }
  return rows[from.length]?.[to.length] ?? 0;
}
