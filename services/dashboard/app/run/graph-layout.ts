/** Where the nodes of a graph stand: a column for each depth, and in it an order with few crossings. Pure. */

import type { Seen } from '../parts/drawn-part.ts';

export interface LaidOut {
  readonly width: number;
  readonly height: number;
  readonly places: ReadonlyMap<string, Place>;
  readonly edges: readonly Edge[];
}

interface Place {
  readonly x: number;
  readonly y: number;
}

/** From the right of one node to the left of another. */
export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly begin: Place;
  readonly end: Place;
}

export const NODE = { width: 196, height: 40 } as const;
const GAP = { x: 44, y: 12 } as const;
const EDGE = 8;
/** What is drawn around what is seen, in pixels. */
const AROUND = 300;
/** Each brings the order nearer to its neighbours; more than a few change nothing that is seen. */
const SWEEPS = 4;

export function layOut(nodes: readonly { readonly name: string; readonly after: readonly string[] }[]): LaidOut {
  const known = new Set(nodes.map(({ name }) => name));
  const after = new Map(nodes.map((node) => [node.name, node.after.filter((name) => known.has(name))]));
  const columns = columnsOf([...known], after);
  arrange(columns, after);
  const places = new Map(
    columns.flatMap((column, x) =>
      column.map((name, y): [string, { x: number; y: number }] => [
        name,
        { x: EDGE + x * (NODE.width + GAP.x), y: EDGE + y * (NODE.height + GAP.y) },
      ]),
    ),
  );
  const edges = nodes.flatMap(({ name }) =>
    (after.get(name) ?? []).map((from) => edgeOf({ name: from, at: places.get(from) }, { name, at: places.get(name) })),
  );
  const tallest = Math.max(1, ...columns.map(({ length }) => length));
  return {
    width: 2 * EDGE + Math.max(1, columns.length) * (NODE.width + GAP.x) - GAP.x,
    height: 2 * EDGE + tallest * (NODE.height + GAP.y) - GAP.y,
    places,
    edges,
  };
}

/** A node stands one column behind the last of those that it comes after; what comes after itself stands where it was met. */
function columnsOf(names: readonly string[], after: ReadonlyMap<string, readonly string[]>): string[][] {
  const depths = new Map<string, number>();
  const depthOf = (root: string): void => {
    // By a list and not by calls of itself: a chain may be two thousand long.
    const waiting = [{ name: root, next: 0 }];
    const open = new Set([root]);
    for (let top = waiting.at(-1); top !== undefined; top = waiting.at(-1)) {
      const before = after.get(top.name) ?? [];
      const name = before[top.next];
      top.next += 1;
      if (name === undefined) {
        depths.set(top.name, Math.max(-1, ...before.map((each) => depths.get(each) ?? -1)) + 1);
        open.delete(top.name);
        waiting.pop();
      } else if (!depths.has(name) && !open.has(name)) {
        open.add(name);
        waiting.push({ name, next: 0 });
      }
    }
  };
  for (const name of names) if (!depths.has(name)) depthOf(name);
  const columns: string[][] = [];
  for (const name of names) (columns[depths.get(name) ?? 0] ??= []).push(name);
  return columns;
}

function arrange(columns: string[][], after: ReadonlyMap<string, readonly string[]>): void {
  const before = new Map<string, string[]>();
  for (const [name, froms] of after) {
    for (const from of froms) {
      const known = before.get(from);
      if (known === undefined) before.set(from, [name]);
      else known.push(name);
    }
  }
  const sort = (
    column: string[],
    neighbours: (name: string) => readonly string[],
    order: ReadonlyMap<string, number>,
  ) => {
    const weight = new Map(
      column.map((name, index) => {
        const places = neighbours(name).flatMap((each) => order.get(each) ?? []);
        return [name, places.length === 0 ? index : places.reduce((sum, each) => sum + each, 0) / places.length];
      }),
    );
    column.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0));
  };
  const orderOf = (column: readonly string[] | undefined): Map<string, number> =>
    new Map((column ?? []).map((name, index) => [name, index]));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (let at = 1; at < columns.length; at += 1)
      sort(columns[at] ?? [], (name) => after.get(name) ?? [], orderOf(columns[at - 1]));
    for (let at = columns.length - 2; at >= 0 && sweep < SWEEPS - 1; at -= 1)
      sort(columns[at] ?? [], (name) => before.get(name) ?? [], orderOf(columns[at + 1]));
  }
}

const NOWHERE: Place = { x: 0, y: 0 };

function edgeOf(
  from: { readonly name: string; readonly at: Place | undefined },
  to: { readonly name: string; readonly at: Place | undefined },
): Edge {
  const [begin, end] = [from.at ?? NOWHERE, to.at ?? NOWHERE];
  return {
    from: from.name,
    to: to.name,
    begin: { x: begin.x + NODE.width, y: begin.y + NODE.height / 2 },
    end: { x: end.x, y: end.y + NODE.height / 2 },
  };
}

export function pathOf({ begin, end }: Edge): string {
  const bend = GAP.x / 2;
  return `M${begin.x} ${begin.y}C${begin.x + bend} ${begin.y} ${end.x - bend} ${end.y} ${end.x} ${end.y}`;
}

/** Whether something of what lies between two points may be seen. */
export function isSeen({ top, left, width, height }: Seen, a: Place, b: Place): boolean {
  return (
    Math.min(a.x, b.x) <= left + width + AROUND &&
    Math.max(a.x, b.x) >= left - AROUND &&
    Math.min(a.y, b.y) <= top + height + AROUND &&
    Math.max(a.y, b.y) >= top - AROUND
  );
}
