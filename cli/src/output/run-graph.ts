/**
 * A run's stages as a graph in text: each stage stands below the one that it comes after, and names the others that it
 * also comes after.
 *
 *  RUNGRAPH-1 Every stage stands there once, whatever it comes after.
 */
import type { Painter } from './painter.ts';
import { cellsOf, fitText, printableText, wrapped } from './printable-text.ts';
import { StageLabels } from './stage-labels.ts';
import { statusColor } from './status-colors.ts';

export interface GraphStage {
  readonly name: string;
  /** Empty, as is the time, of a stage that is only planned. */
  readonly status: string;
  readonly time: string;
  readonly remark: string;
  /** What it comes directly after: stages, or a matrix by its name. */
  readonly after: readonly string[];
}

/** Deeper stages stand where these do, and say what they come after: a chain of many would leave the terminal. */
const DEPTH_MAX = 6;
const NAME_CELLS_MAX = 60;
const NAME_CELLS_MIN = 10;
const STATUS_CELLS = 'CANCELLED'.length;
/** Of further dependencies so many are named. */
const ALSO_MAX = 3;

interface Row {
  readonly stage: GraphStage;
  readonly tree: string;
  readonly remark: string;
}

export function graphLines(stages: readonly GraphStage[], paint: Painter, columns = Infinity): string[] {
  const rows = rowsOf(stages);
  const timeCells = Math.max(0, ...rows.map(({ stage }) => stage.time.length));
  const isPlan = stages.every(({ status }) => status === '');
  const fixedCells = isPlan ? 0 : STATUS_CELLS + timeCells + 4;
  const treeCells = Math.max(0, ...rows.map(({ tree }) => tree.length));
  const nameCellsMax = Math.min(NAME_CELLS_MAX, Math.max(NAME_CELLS_MIN, columns - fixedCells - treeCells));
  const labels = new StageLabels(
    stages.map(({ name }) => name),
    nameCellsMax,
  );
  const nodes = rows.map(({ stage, tree }) => tree + labels.labelOf(stage.name));
  const nodeCells = Math.max(0, ...nodes.map(cellsOf));
  const remarkCells = Math.max(0, ...rows.map(({ remark }) => cellsOf(remark)));
  const isNarrow = nodeCells + fixedCells + remarkCells + 2 > columns;
  return rows.flatMap(({ stage, remark }, index) => {
    const node = fitText(nodes[index] ?? '', nodeCells);
    const status = paint(statusColor(stage.status), stage.status.padEnd(STATUS_CELLS));
    const line = isPlan ? node : `${node}  ${status}  ${stage.time.padStart(timeCells)}`;
    if (!isNarrow || remark === '') return [`${line}  ${remark}`.trimEnd()];
    return [line.trimEnd(), ...wrapped(remark, columns - 4).map((part) => `    ${part}`)];
  });
}

function rowsOf(stages: readonly GraphStage[]): Row[] {
  const parents = parentsOf(stages);
  const children = Map.groupBy(stages, ({ name }) => parents.get(name));
  const rows: Row[] = [];
  const waiting: {
    readonly stage: GraphStage;
    readonly depth: number;
    readonly lead: string;
    readonly tree: string;
  }[] = (children.get(undefined) ?? []).toReversed().map((stage) => ({ stage, depth: 0, lead: '', tree: '' }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { stage, depth, lead, tree } = next;
    const parent = parents.get(stage.name);
    const also = stage.after.filter((name) => name !== parent || depth > DEPTH_MAX);
    rows.push({
      stage,
      tree,
      remark: [stage.remark, alsoText(also, depth > DEPTH_MAX)].filter((part) => part !== '').join('; '),
    });
    const below = children.get(stage.name) ?? [];
    const isDeep = depth >= DEPTH_MAX;
    for (const [index, child] of below.toReversed().entries()) {
      const isLast = index === 0;
      waiting.push(
        isDeep
          ? { stage: child, depth: depth + 1, lead, tree }
          : {
              stage: child,
              depth: depth + 1,
              lead: `${lead}${isLast ? '   ' : '│  '}`,
              tree: `${lead}${isLast ? '└─ ' : '├─ '}`,
            },
      );
    }
  }
  return rows;
}

/** Below which stage each one stands: of those that it comes after the deepest, and of these the last. */
function parentsOf(stages: readonly GraphStage[]): Map<string, string> {
  const expansions = expansionsOf(stages);
  const dependencies = new Map(
    stages.map(({ name, after }) => [name, [...new Set(after.flatMap((each) => expansions.get(each) ?? []))]]),
  );
  const open = new Map([...dependencies].map(([name, names]) => [name, names.length]));
  const dependents = new Map<string, GraphStage[]>();
  for (const stage of stages) {
    for (const name of dependencies.get(stage.name) ?? []) {
      const known = dependents.get(name);
      if (known === undefined) dependents.set(name, [stage]);
      else known.push(stage);
    }
  }
  const depths = new Map<string, number>();
  const parents = new Map<string, string>();
  const ready = stages.filter(({ name }) => open.get(name) === 0);
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    const parent = deepest(dependencies.get(next.name) ?? [], depths);
    if (parent !== undefined) parents.set(next.name, parent);
    depths.set(next.name, parent === undefined ? 0 : (depths.get(parent) ?? 0) + 1);
    for (const dependent of dependents.get(next.name) ?? []) {
      const left = (open.get(dependent.name) ?? 0) - 1;
      open.set(dependent.name, left);
      if (left === 0) ready.push(dependent);
    }
  }
  return parents;
}

/** Of each name that a stage can come after, the stages that it stands for. */
function expansionsOf(stages: readonly GraphStage[]): Map<string, string[]> {
  const byMatrix = Map.groupBy(stages, ({ name }) => matrixOf(name) ?? name);
  const expansions = new Map<string, string[]>();
  for (const [name, all] of byMatrix)
    expansions.set(
      name,
      all.map((stage) => stage.name),
    );
  for (const { name } of stages) expansions.set(name, [name]);
  return expansions;
}

/** `test` of `test (node=24)`. */
function matrixOf(name: string): string | undefined {
  return /^(.*?) \(.*\)$/su.exec(name)?.[1];
}

function deepest(names: readonly string[], depths: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined;
  for (const name of names) {
    const depth = depths.get(name);
    if (depth !== undefined && (best === undefined || depth >= (depths.get(best) ?? 0))) best = name;
  }
  return best;
}

function alsoText(names: readonly string[], isAll: boolean): string {
  if (names.length === 0) return '';
  const more = names.length > ALSO_MAX ? ` and ${names.length - ALSO_MAX} more` : '';
  return `${isAll ? 'after' : 'also after'} ${names.slice(0, ALSO_MAX).map(printableText).join(', ')}${more}`;
}
