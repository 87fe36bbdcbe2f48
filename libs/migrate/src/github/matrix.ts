/** The matrix of a job. */
import type { DraftMatrix } from '../draft.ts';
import type { Ledger } from '../ledger.ts';
import { take, takeAll, takeText, type SourceMap, type SourceNode } from '../source.ts';
import { takeFlag } from '../words.ts';

/** Undefined: there is none that can be written here. */
export function matrixOf(strategy: SourceMap, ledger: Ledger): DraftMatrix | undefined {
  const maxParallel = takeText(strategy, 'max-parallel');
  if (maxParallel !== undefined && !/^\d+$/.test(maxParallel))
    ledger.tell(strategy.line, `'max-parallel: ${maxParallel}' of a matrix`, 'it is a number here');
  const failFast = takeFlag(strategy, 'fail-fast', { ledger, of: 'a matrix', otherwise: 'it counts as true' });
  const node = take(strategy, 'matrix');
  if (node === undefined) return undefined;
  if (node.kind !== 'map') {
    ledger.tell(node.line, 'a matrix that is made by an expression', 'let a stage with `generates` add the stages');
    return undefined;
  }
  const matrix: DraftMatrix = {
    axes: {},
    include: combinations(takeList(node, 'include'), ledger),
    exclude: combinations(takeList(node, 'exclude'), ledger),
    ...(maxParallel !== undefined && /^\d+$/.test(maxParallel) ? { maxParallel } : {}),
    ...(failFast === false ? { failFast: false } : {}),
  };
  const axes = takeAll(node).filter(({ key }) => key !== 'include' && key !== 'exclude');
  for (const { key, value, line } of axes) {
    if (
      axes.length === 1 &&
      value.kind === 'list' &&
      value.items.length > 0 &&
      value.items.every(({ kind }) => kind === 'map')
    ) {
      matrix.include.unshift(...takenApart(key, value.items, ledger));
      continue;
    }
    const texts = value.kind === 'list' ? value.items.flatMap((item) => (item.kind === 'text' ? [item.text] : [])) : [];
    if (value.kind !== 'list' || texts.length !== value.items.length || texts.length === 0)
      ledger.tell(
        line,
        `the axis '${key}' of a matrix, whose values are no list of texts`,
        'write its values as texts',
      );
    else matrix.axes[key] = [...new Set(texts)];
  }
  return Object.keys(matrix.axes).length === 0 && matrix.include.length === 0 ? undefined : matrix;
}

/** All that the axis can be. */
export function axisValues(matrix: DraftMatrix | undefined, axis: string): readonly string[] {
  return [...(matrix?.axes[axis] ?? []), ...(matrix?.include ?? []).flatMap((entry) => entry[axis] ?? [])];
}

/** `{os: linux, arch: x64}` of the axis `target` is the combination of `target_os` and `target_arch`. */
function takenApart(axis: string, items: readonly SourceNode[], ledger: Ledger): Record<string, string>[] {
  return combinations(items, ledger).map((entry) =>
    Object.fromEntries(Object.entries(entry).map(([key, value]) => [`${axis}_${key}`, value])),
  );
}

function takeList(map: SourceMap, key: string): readonly SourceNode[] {
  const node = take(map, key);
  return node?.kind === 'list' ? node.items : [];
}

function combinations(items: readonly SourceNode[], ledger: Ledger): Record<string, string>[] {
  return items.flatMap((item) => {
    if (item.kind !== 'map') return [];
    const entry: Record<string, string> = {};
    for (const { key, value, line } of takeAll(item)) {
      if (value.kind === 'text' && !value.text.includes('${{')) entry[key] = value.text;
      else ledger.tell(line, `'${key}' of a combination, which is no plain text`);
    }
    return Object.keys(entry).length === 0 ? [] : [entry];
  });
}
