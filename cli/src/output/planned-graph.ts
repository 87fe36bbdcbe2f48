/** What a pipeline file would run, as a graph: for a terminal, for Graphviz and for pages that draw Mermaid. */
import type { PipelineDefinition, StageDefinition } from '@penstock/pipeline';
import type { Painter } from './painter.ts';
import { printableText } from './printable-text.ts';
import { graphLines } from './run-graph.ts';

export interface PlannedStage {
  readonly name: string;
  /** The name that it shares with the other expansions of its matrix. */
  readonly matrix: string | undefined;
  readonly after: readonly string[];
  /** What is not plain about it, in a few words each. */
  readonly remarks: readonly string[];
}

export function plannedStages({ stages }: PipelineDefinition): PlannedStage[] {
  return stages.map((stage) => ({
    name: stage.name,
    matrix: stage.matrix?.of,
    after: stage.after,
    remarks: remarksOf(stage),
  }));
}

export function plannedLines(stages: readonly PlannedStage[], paint: Painter, columns: number): string[] {
  const fold = matrixFolder(stages);
  return graphLines(
    stages.map(({ name, after, remarks }) => ({
      name,
      status: '',
      time: '',
      remark: remarks.map(printableText).join(', '),
      after: fold(after),
    })),
    paint,
    columns,
  );
}

/** A digraph in the language of Graphviz. */
export function dotText(pipeline: string, stages: readonly PlannedStage[]): string {
  const ids = idsOf(stages);
  return [
    `digraph ${dotString(pipeline)} {`,
    '  rankdir=LR;',
    '  node [shape=box];',
    ...stages.map(({ name, remarks }) => `  ${ids.get(name)} [label=${dotString([name, ...remarks].join('\n'))}];`),
    ...edgesOf(stages, ids).map(([from, to]) => `  ${from} -> ${to};`),
    '}\n',
  ].join('\n');
}

/** A flowchart in the language of Mermaid. */
export function mermaidText(stages: readonly PlannedStage[]): string {
  const ids = idsOf(stages);
  return [
    'flowchart LR',
    ...stages.map(({ name, remarks }) => `  ${ids.get(name)}["${[name, ...remarks].map(mermaidLabel).join('<br>')}"]`),
    ...edgesOf(stages, ids).map(([from, to]) => `  ${from} --> ${to}`),
    '',
  ].join('\n');
}

function remarksOf({ approval, place, generates, runsOn, when, runsAfterFailure, allowFailure }: StageDefinition) {
  return [
    ...(approval === undefined ? [] : ['waits for approval']),
    ...(when === undefined
      ? []
      : [runsAfterFailure ? 'also after failures, if its condition holds' : 'if its condition holds']),
    ...(generates === undefined ? [] : ['may add stages']),
    ...(place?.image === undefined ? [] : [`in ${place.image.name}`]),
    ...(runsOn.length === 0 ? [] : [`on ${runsOn.join(', ')}`]),
    ...(allowFailure ? ['may fail'] : []),
  ];
}

/** What comes after a whole matrix says so by the matrix's name. */
function matrixFolder(stages: readonly PlannedStage[]): (after: readonly string[]) => string[] {
  const matrices = new Map(stages.map(({ name, matrix }) => [name, matrix]));
  const sizes = new Map<string | undefined, number>();
  for (const { matrix } of stages) sizes.set(matrix, (sizes.get(matrix) ?? 0) + 1);
  return (after) => {
    const byMatrix = Map.groupBy(new Set(after), (name) => matrices.get(name));
    return [...byMatrix].flatMap(([matrix, names]) =>
      matrix !== undefined && names.length === sizes.get(matrix) ? [matrix] : names,
    );
  };
}

/** Names of people's choosing are labels only; in the drawing's own language a stage is a number. */
function idsOf(stages: readonly PlannedStage[]): ReadonlyMap<string, string> {
  return new Map(stages.map(({ name }, index) => [name, `s${index}`]));
}

function edgesOf(stages: readonly PlannedStage[], ids: ReadonlyMap<string, string>): [from: string, to: string][] {
  return stages.flatMap(({ name, after }) =>
    after.map((from): [string, string] => [ids.get(from) ?? '', ids.get(name) ?? '']),
  );
}

/** A quoted string: Graphviz knows `\"`, and takes every other backslash for the begin of an escape. */
function dotString(text: string): string {
  const lines = text.split('\n').map((line) => printableText(line).replaceAll('\\', '\\\\').replaceAll('"', '\\"'));
  return `"${lines.join('\\n')}"`;
}

/** As Mermaid has it: `#35;` is the character 35. */
function mermaidLabel(text: string): string {
  return printableText(text).replace(/[^\w .,:/()=+-]/gu, (character) => `#${character.codePointAt(0) ?? 0};`);
}
