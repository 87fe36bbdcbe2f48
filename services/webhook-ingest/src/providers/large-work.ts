/**
 * Work on large bodies, one piece of it a turn of the loop: in one turn those of many senders add up, and everybody's small push waits for all
 * of them. Pieces are done in the order of asking, so that bodies take turns too.
 */

/** Of smaller ones all that is done with a body is a fraction of a millisecond. */
export const LARGE_BYTES = 64 * 1024;

const waiting: (() => void)[] = [];

/** Resolves when the next piece may be done. */
export function nextPiece(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  waiting.push(resolve);
  if (waiting.length === 1) setImmediate(begin);
  return promise;
}

function begin(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(begin);
}
