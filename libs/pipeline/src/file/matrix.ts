/**
 * Expands `matrix` into cells. The combinations of all axes in file order, the last axis changing fastest; then those
 * taken away that an `exclude` entry matches in all its keys; then each `include` entry is added to every combination
 * whose axes it agrees with, or, where it agrees with none, becomes a cell of its own. These are GitHub's rules.
 */
import { fieldOf, isNull, joinPath, kindOf, nameFault, readBoolean, readInteger, readMap } from './fields.ts';
import type { Field } from './fields.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { didYouMean } from '../text/suggest.ts';
import type { Span } from '../text/text-position.ts';
import type { MapEntry } from '../yaml/yaml-tree.ts';

type Values = Map<string, string>;

export interface Cell {
  /** `test (node=24, os=linux)`: the axes in file order; for a cell of `include` alone, all its keys. */
  readonly name: string;
  readonly values: ReadonlyMap<string, string>;
}

export interface Matrix {
  readonly cells: readonly Cell[];
  /** Every name that `${{ matrix.… }}` can use. */
  readonly keys: ReadonlySet<string>;
  readonly maxParallel: number | undefined;
  readonly failFast: boolean;
}

/** Counts for a whole file, so that many small matrices cannot cost more than one large one. */
export interface MatrixBudget {
  combinations: number;
  /** Values that `include` may still add to combinations. */
  addedLeft: number;
}

interface Entry {
  readonly values: Values;
  readonly span: Span;
}

/** Read alike by all: with a 0 before it, it is another one in arithmetic. */
const WHOLE_NUMBER = /^(?:0|-?[1-9][0-9]{0,17})$/;

/** The names under which every combination has a whole number. */
export function numbersOf(matrix: Matrix | undefined): ReadonlySet<string> {
  const { keys, cells } = matrix ?? { keys: [], cells: [] };
  return new Set([...keys].filter((key) => cells.every(({ values }) => WHOLE_NUMBER.test(values.get(key) ?? ''))));
}

/** Reads and expands a matrix. Undefined, and problems, where it cannot be. */
export function readMatrix(field: Field, stage: string, budget: MatrixBudget): Matrix | undefined {
  const map = readMap(field, 'a map of axes to lists of values');
  if (map === undefined) return undefined;
  const { problems, path } = field;
  const before = problems.count;
  const axes = new Map<string, readonly string[]>();
  let includes: Entry[] = [];
  let excludes: Entry[] = [];
  let maxParallel: number | undefined;
  let failFast = true;
  for (const entry of map.entries) {
    const inner = fieldOf(entry, path, problems);
    if (entry.key === 'include') includes = readEntries(inner);
    else if (entry.key === 'exclude') excludes = readEntries(inner);
    else if (entry.key === 'max_parallel') maxParallel = readInteger(inner, 1, PIPELINE_LIMITS.matrixCellsMax);
    else if (entry.key === 'fail_fast') failFast = readBoolean(inner) ?? true;
    else readAxis(entry, inner, axes);
  }
  if (axes.size > PIPELINE_LIMITS.matrixAxesMax)
    problems.add(map, path, `'matrix' has more than ${PIPELINE_LIMITS.matrixAxesMax} axes`);
  if (axes.size === 0 && includes.length === 0 && problems.count === before)
    problems.add(map, path, "'matrix' has neither an axis nor an 'include'", 'an axis is a name with a list of values');
  if (problems.count > before) return undefined;
  checkExcludes(excludes, axes, field);
  if (problems.count > before || !fitsBudget(field, axes, budget)) return undefined;
  const kept = combine(axes).filter((cell) => !excludes.some((entry) => contains(cell, entry.values)));
  const cells = include(kept, includes, axes, budget);
  if (includes.length > 0 && budget.addedLeft < 0) {
    problems.add(
      map,
      path,
      `'include' adds more than ${PIPELINE_LIMITS.matrixAddedValuesMax.toLocaleString('en')} values to the combinations of this file`,
    );
    return undefined;
  }
  if (cells.length === 0) problems.add(map, path, "'exclude' leaves no combination of this matrix");
  if (cells.length > PIPELINE_LIMITS.matrixCellsMax)
    problems.add(
      map,
      path,
      `this matrix expands to ${cells.length} stages; at most ${PIPELINE_LIMITS.matrixCellsMax} are allowed`,
    );
  if (problems.count > before) return undefined;
  const keys = new Set([...axes.keys(), ...includes.flatMap((entry) => [...entry.values.keys()])]);
  const named = cells.map(({ axis, extra }) => ({ name: cellName(stage, axis), values: new Map([...axis, ...extra]) }));
  return { cells: named, keys, maxParallel, failFast };
}

function cellName(stage: string, axis: Values): string {
  return `${stage} (${[...axis].map(([key, value]) => `${key}=${value}`).join(', ')})`;
}

function readAxis(entry: MapEntry, field: Field, axes: Map<string, readonly string[]>): void {
  if (!checkKey(entry, field)) return;
  const { node, problems, path } = field;
  if (node.kind !== 'list') {
    problems.add(
      node,
      path,
      `the axis ${quoted(entry.key)} must be a list of values, not ${kindOf(node)}`,
      didYouMean(entry.key, ['include', 'exclude', 'max_parallel', 'fail_fast']),
    );
    return;
  }
  if (node.items.length === 0) problems.add(node, path, `the axis ${quoted(entry.key)} has no values`);
  const values: string[] = [];
  const seen = new Set<string>();
  for (const item of node.items.slice(0, PIPELINE_LIMITS.matrixProductMax + 1)) {
    const value = readValue({ node: item, name: entry.key, path, problems });
    if (value === undefined) continue;
    if (seen.has(value))
      problems.add(item, path, `the value ${quoted(value)} stands twice in the axis ${quoted(entry.key)}`);
    seen.add(value);
    values.push(value);
  }
  axes.set(entry.key, values);
}

function checkKey(entry: MapEntry, field: Field): boolean {
  if (entry.key.length <= PIPELINE_LIMITS.outputNameLengthMax && /^[A-Za-z_][A-Za-z0-9_-]*$/.test(entry.key))
    return true;
  field.problems.add(
    entry.keySpan,
    field.path,
    `${quoted(entry.key)} cannot be the name of an axis: letters, digits, '_' and '-', no digit first`,
  );
  return false;
}

function readValue(field: Field): string | undefined {
  const { node, problems, path } = field;
  if (node.kind !== 'scalar' || isNull(node)) {
    problems.add(
      node,
      path,
      `a value of ${quoted(field.name)} must be a text, a number or a boolean, not ${kindOf(node)}`,
    );
    return undefined;
  }
  const fault = nameFault(node.text, PIPELINE_LIMITS.matrixValueLengthMax);
  if (fault === undefined) return node.text;
  problems.add(node, path, `a value of ${quoted(field.name)} ${fault}`);
  return undefined;
}

function readEntries(field: Field): Entry[] {
  const { node, problems, path } = field;
  if (node.kind !== 'list') {
    problems.add(node, path, `'${field.name}' must be a list of maps, not ${kindOf(node)}`);
    return [];
  }
  if (node.items.length > PIPELINE_LIMITS.matrixEntriesMax) {
    problems.add(node, path, `'${field.name}' has more than ${PIPELINE_LIMITS.matrixEntriesMax} entries`);
    return [];
  }
  const entries: Entry[] = [];
  for (const item of node.items) {
    if (item.kind !== 'map' || item.entries.length === 0) {
      problems.add(
        item,
        path,
        `an entry of '${field.name}' must be a map of axes to values, not ${item.kind === 'map' ? 'an empty map' : kindOf(item)}`,
      );
      continue;
    }
    const values: Values = new Map();
    for (const entry of item.entries) {
      const inner = { node: entry.value, name: entry.key, path: joinPath(path, entry.key), problems };
      const value = checkKey(entry, inner) ? readValue(inner) : undefined;
      if (value !== undefined) values.set(entry.key, value);
    }
    entries.push({ values, span: item });
  }
  return entries;
}

/** An `exclude` that matches nothing is a slip: a misspelt axis, or a value that the axis does not have. */
function checkExcludes(excludes: readonly Entry[], axes: ReadonlyMap<string, readonly string[]>, field: Field): void {
  for (const { values, span } of excludes) {
    for (const [key, value] of values) {
      const axis = axes.get(key);
      if (axis === undefined)
        field.problems.add(
          span,
          joinPath(field.path, 'exclude'),
          `'exclude' names ${quoted(key)}, which is not an axis`,
          () => didYouMean(key, axes.keys()),
        );
      else if (!axis.includes(value))
        field.problems.add(
          span,
          joinPath(field.path, 'exclude'),
          `'exclude' names ${quoted(value)}, which the axis ${quoted(key)} does not have`,
          () => didYouMean(value, axis),
        );
    }
  }
}

function fitsBudget(field: Field, axes: ReadonlyMap<string, readonly string[]>, budget: MatrixBudget): boolean {
  let product = 1;
  for (const values of axes.values()) product *= values.length;
  if (product > PIPELINE_LIMITS.matrixProductMax) {
    field.problems.add(
      field.node,
      field.path,
      `the axes of this matrix have ${product.toLocaleString('en')} combinations; at most ${PIPELINE_LIMITS.matrixCellsMax} stages are allowed`,
    );
    return false;
  }
  budget.combinations += product;
  if (budget.combinations <= PIPELINE_LIMITS.matrixProductsTotalMax) return true;
  field.problems.add(
    field.node,
    field.path,
    `the matrices of this file have more than ${PIPELINE_LIMITS.matrixProductsTotalMax.toLocaleString('en')} combinations`,
  );
  return false;
}

function combine(axes: ReadonlyMap<string, readonly string[]>): Values[] {
  if (axes.size === 0) return [];
  let cells: Values[] = [new Map()];
  for (const [key, values] of axes)
    cells = cells.flatMap((cell) => values.map((value) => new Map([...cell, [key, value]])));
  return cells;
}

function contains(cell: Values, wanted: Values): boolean {
  for (const [key, value] of wanted) if (cell.get(key) !== value) return false;
  return true;
}

interface CellValues {
  /** What names the cell. */
  readonly axis: Values;
  /** What `include` added to it. */
  readonly extra: Values;
}

function include(
  kept: readonly Values[],
  includes: readonly Entry[],
  axes: ReadonlyMap<string, unknown>,
  budget: MatrixBudget,
): CellValues[] {
  const cells: CellValues[] = kept.map((axis) => ({ axis, extra: new Map() }));
  const added: CellValues[] = [];
  for (const { values } of includes) {
    const onAxes = new Map([...values].filter(([key]) => axes.has(key)));
    const matching = cells.filter((cell) => contains(cell.axis, onAxes));
    budget.addedLeft -= Math.max(1, matching.length) * (values.size - onAxes.size);
    if (budget.addedLeft < 0) break;
    for (const cell of matching) for (const [key, value] of values) if (!axes.has(key)) cell.extra.set(key, value);
    if (matching.length === 0) added.push({ axis: new Map([...inAxisOrder(values, axes)]), extra: new Map() });
  }
  return [...cells, ...added];
}

function inAxisOrder(values: Values, axes: ReadonlyMap<string, unknown>): [string, string][] {
  const order = [...axes.keys()];
  const rank = (key: string): number => (axes.has(key) ? order.indexOf(key) : order.length);
  return [...values].toSorted(([left], [right]) => rank(left) - rank(right));
}
