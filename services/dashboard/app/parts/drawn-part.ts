/** Of a long list in a box that scrolls: the part that is seen, and a little around it, so that thousands cost no more than a screen of them. Pure. */
/** What is seen of a box, in pixels. */
export interface Seen {
  readonly top: number;
  readonly left: number;
  readonly width: number;
  readonly height: number;
}

/** Fewer are drawn whole: the browser finds words in them, and prints them. */
export const WHOLE_MAX = 200;
const OVERSCAN = 20;

/** Which rows of equal height are drawn, from 0, and how high what is left out before and behind them is. */
export function rowsIn(
  { top, height }: Seen,
  count: number,
  rowHeight: number,
): { readonly from: number; readonly to: number; readonly above: number; readonly below: number } {
  if (count <= WHOLE_MAX) return { from: 0, to: count, above: 0, below: 0 };
  const from = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - OVERSCAN);
  const to = Math.min(count, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  return { from, to, above: from * rowHeight, below: (count - to) * rowHeight };
}
