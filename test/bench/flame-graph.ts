/** A tree of functions as one page that needs nothing else: each is as wide as its share of the time, a click shows it whole. */
import type { Frame } from './profiles.ts';

/** Narrower than that nobody sees. */
const SHARE_MIN = 0.000_5;
const ROW_PX = 18;
const DEPTH_MAX = 400;

export function renderFlameGraph(title: string, root: Frame): string {
  const boxes: string[] = [];
  let depth = 0;
  const draw = (frame: Frame, from: number, row: number): void => {
    depth = Math.max(depth, row);
    const share = frame.totalMs / root.totalMs;
    const at = `left:${percent(from)};width:${percent(share)};top:${row * ROW_PX}px`;
    const text = `${frame.name}${frame.place === '' ? '' : ` ${frame.place}`}`;
    const told = `${text}: ${milliseconds(frame.totalMs)} (${percent(share)}), itself ${milliseconds(frame.selfMs)}`;
    boxes.push(
      `<div style="${at};background:hsl(${hueOf(frame.place)} 70% 72%)" data-at="${from} ${share} ${row}" title="${escaped(told)}">${escaped(text)}</div>`,
    );
    if (row >= DEPTH_MAX) return;
    let next = from;
    for (const child of [...frame.children.values()].toSorted((a, b) => b.totalMs - a.totalMs)) {
      const childShare = child.totalMs / root.totalMs;
      if (childShare >= SHARE_MIN) draw(child, next, row + 1);
      next += childShare;
    }
  };
  if (root.totalMs > 0) draw(root, 0, 0);
  return `<!doctype html>
<meta charset="utf-8">
<title>${escaped(title)}</title>
<style>
body { font: 12px sans-serif; margin: 8px }
main { position: relative; height: ${(depth + 1) * ROW_PX}px; overflow: hidden }
main div { position: absolute; height: ${ROW_PX - 1}px; line-height: ${ROW_PX - 1}px; box-sizing: border-box; overflow: hidden;
  white-space: nowrap; border-right: 1px solid #fff; cursor: pointer; padding-left: 2px }
</style>
<h1>${escaped(title)}</h1>
<p>Each box is a function, below the one that called it, as wide as its share of the ${milliseconds(root.totalMs)} in which the
threads had something to do (on a machine that others load, they waited for a processor in part of it). Point at one to read its time; click one to see it over the whole width, the top one to go back.</p>
<main>
${boxes.join('\n')}
</main>
<script>
const boxes = [...document.querySelectorAll('main div')].map((box) => [box, ...box.dataset.at.split(' ').map(Number)]);
document.querySelector('main').addEventListener('click', ({ target }) => {
  const [, from, share, row] = boxes.find(([box]) => box === target) ?? [];
  if (from === undefined) return;
  for (const [box, left, width, depth] of boxes) {
    const isAbove = depth <= row && left <= from + 1e-9 && left + width >= from + share - 1e-9;
    const isBelow = depth > row && left >= from - 1e-9 && left + width <= from + share + 1e-9;
    box.hidden = !isAbove && !isBelow;
    box.style.left = isAbove ? '0' : 100 * (left - from) / share + '%';
    box.style.width = isAbove ? '100%' : 100 * width / share + '%';
  }
});
</script>
`;
}

/** The files of one package have one colour. */
function hueOf(place: string): number {
  let hue = 0;
  for (const letter of place.split('/').slice(0, 2).join('/').replace(/:.*/, ''))
    hue = (hue * 31 + letter.charCodeAt(0)) % 360;
  return hue;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(3)}%`;
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
