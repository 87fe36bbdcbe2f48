/** The stages of a run as they are drawn: each by itself, or a whole matrix as one where it is folded. Pure. */
import type { Operations } from '../api/operations.ts';

export type Run = NonNullable<Operations['Run']['data']['run']>;
export type Stage = Run['stages'][number];
type Status = Stage['status'];

/** What is drawn of a stage: of a run's, or of one that a file would run. */
export type Drawn = Pick<Stage, 'name' | 'after' | 'status' | 'startedAt' | 'finishedAt'>;

export interface Node {
  /** The name of the stage, or of the matrix. */
  readonly name: string;
  readonly stages: readonly Drawn[];
  readonly isFolded: boolean;
  /** Of all its stages, in one word. */
  readonly status: Status;
  /** Names of other nodes. */
  readonly after: readonly string[];
}

/** Matrices of more members than this are folded until somebody unfolds them. */
const UNFOLDED_MAX = 4;

/** `test (os=linux)` is of the matrix `test`; null for a stage that is of none. */
function matrixOf(name: string): string | null {
  const at = name.indexOf(' (');
  return at > 0 && name.endsWith(')') ? name.slice(0, at) : null;
}

/** `unfolded`: the matrices that somebody wants to see whole. */
export function nodesOf(stages: readonly Drawn[], unfolded: ReadonlySet<string>): Node[] {
  const members = new Map<string, Drawn[]>();
  for (const stage of stages) {
    const matrix = matrixOf(stage.name);
    if (matrix === null) continue;
    const known = members.get(matrix);
    if (known === undefined) members.set(matrix, [stage]);
    else known.push(stage);
  }
  const folded = new Set(
    [...members].filter(([name, each]) => each.length > UNFOLDED_MAX && !unfolded.has(name)).map(([name]) => name),
  );
  const nodeOf = (name: string): string => {
    const matrix = matrixOf(name);
    return matrix !== null && folded.has(matrix) ? matrix : name;
  };
  const afterOf = (stage: Drawn): string[] =>
    (stage.after ?? []).flatMap((name) =>
      members.has(name) && !folded.has(name) ? (members.get(name) ?? []).map((each) => each.name) : [nodeOf(name)],
    );
  const seen = new Set<string>();
  return stages.flatMap((stage): Node[] => {
    const name = nodeOf(stage.name);
    if (seen.has(name)) return [];
    seen.add(name);
    const own = folded.has(name) ? (members.get(name) ?? [stage]) : [stage];
    const after = own.length === 1 ? afterOf(stage) : own.flatMap(afterOf);
    return [
      {
        name,
        stages: own,
        isFolded: folded.has(name),
        status: statusOf(own),
        after: [...new Set(after)].filter((each) => each !== name),
      },
    ];
  });
}

const BY_WEIGHT: readonly Status[] = ['FAILED', 'RUNNING', 'QUEUED', 'PENDING', 'CANCELLED', 'SUCCESS', 'SKIPPED'];

/** Of many one: what asks for attention most. */
function statusOf(stages: readonly Drawn[]): Status {
  return BY_WEIGHT.find((status) => stages.some((stage) => stage.status === status)) ?? 'PENDING';
}

/** The names of the stages whose ends have decided when the run was over: from the last one to end, back along who ended last before it. */
export function criticalPath(stages: readonly Drawn[]): ReadonlySet<string> {
  const byName = new Map(stages.map((stage) => [stage.name, stage]));
  const byMatrix = Map.groupBy(stages, ({ name }) => matrixOf(name) ?? '');
  const lastOf = (each: readonly Drawn[]): Drawn | null =>
    each.reduce<Drawn | null>((last, stage) => (endOf(stage) > (last === null ? 0 : endOf(last)) ? stage : last), null);
  const path = new Set<string>();
  let stage = lastOf(stages);
  while (stage !== null && !path.has(stage.name)) {
    path.add(stage.name);
    stage = lastOf(
      (stage.after ?? []).flatMap((name) => {
        const found = byName.get(name);
        return found === undefined ? (byMatrix.get(name) ?? []) : [found];
      }),
    );
  }
  return path;
}

/** 0 for a stage that never ran. */
function endOf({ startedAt, finishedAt }: Drawn): number {
  return startedAt === null || finishedAt === null ? 0 : Date.parse(finishedAt);
}
