/**
 * The dependencies of a file: names to stages, cycles, and which stages come before which.
 *
 * Drafts are the stages of the file, numbered as they stand there; stages are their expansions, numbered likewise. All
 * expansions of a draft depend on the same stages, so one list serves them all.
 */
import type { Graph, StageDraft, StageNames } from './drafts.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';

/** Numbers all expanded stages. Undefined, and a problem, where there are too many of them. */
export function nameStages(drafts: readonly StageDraft[], problems: Problems): StageNames | undefined {
  const byFullName = new Map<string, number>();
  const byName = new Map<string, number>();
  const [draftOf, firstOf, countOf, fullNames]: [number[], number[], number[], string[]] = [[], [], [], []];
  for (const [index, draft] of drafts.entries()) {
    byName.set(draft.name, index);
    firstOf.push(fullNames.length);
    const names = draft.matrix === undefined ? [draft.name] : draft.matrix.cells.map((cell) => cell.name);
    countOf.push(names.length);
    for (const name of names) {
      if (name.length > PIPELINE_LIMITS.expandedNameLengthMax)
        problems.add(
          draft.nameSpan,
          draft.path,
          `the name of an expansion is longer than ${PIPELINE_LIMITS.expandedNameLengthMax} characters: ${quoted(name)}`,
        );
      if (byFullName.has(name))
        problems.add(draft.nameSpan, draft.path, `two stages would have the name ${quoted(name)}`);
      byFullName.set(name, fullNames.length);
      draftOf.push(index);
      fullNames.push(name);
    }
    if (fullNames.length > PIPELINE_LIMITS.stagesMax) {
      problems.add(
        draft.nameSpan,
        draft.path,
        `more than ${PIPELINE_LIMITS.stagesMax.toLocaleString('en')} stages after the matrices are expanded`,
      );
      return undefined;
    }
  }
  return { byFullName, byName, draftOf, firstOf, countOf, fullNames };
}

/** Resolves all `after`. Unknown names and cycles are noted. */
export function linkStages(drafts: readonly StageDraft[], names: StageNames, problems: Problems): Graph {
  let total = 0;
  const after = drafts.map((draft, index) => {
    const targets = new Set<number>();
    for (const node of draft.after) {
      const stage = names.byFullName.get(node.text);
      const named = names.byName.get(node.text);
      if (named !== undefined)
        for (let offset = 0; offset < (names.countOf[named] ?? 0); offset++)
          targets.add((names.firstOf[named] ?? 0) + offset);
      else if (stage !== undefined) targets.add(stage);
      else {
        problems.add(
          node,
          `${draft.path}.after`,
          `stage ${quoted(draft.name)} comes after ${quoted(node.text)}, which is not a stage`,
          () => didYouMean(node.text, [...names.byName.keys(), ...names.byFullName.keys()]),
        );
      }
    }
    total += targets.size * (names.countOf[index] ?? 1);
    return total > PIPELINE_LIMITS.dependenciesMax ? [] : [...targets];
  });
  if (total > PIPELINE_LIMITS.dependenciesMax) {
    problems.add(
      drafts[0]?.nameSpan ?? { start: 0, end: 0 },
      'stages',
      `the stages have ${total.toLocaleString('en')} dependencies after expansion; at most ${PIPELINE_LIMITS.dependenciesMax.toLocaleString('en')} are allowed`,
    );
    return { after, order: undefined };
  }
  const edges = after.map((targets) => [...new Set(targets.map((target) => names.draftOf[target] ?? 0))]);
  return { after, order: orderDrafts(drafts, edges, names, problems) };
}

/**
 * Tarjan's strongly connected components, without recursion: a chain of 2,000 stages must not cost the stack. Components
 * come out dependencies first; one of several drafts, or a draft that depends on itself, is a cycle.
 */
function orderDrafts(
  drafts: readonly StageDraft[],
  edges: readonly (readonly number[])[],
  names: StageNames,
  problems: Problems,
): number[] | undefined {
  const order: number[] = [];
  const number = Array.from<number>({ length: drafts.length }).fill(-1);
  const lowest = Array.from<number>({ length: drafts.length }).fill(0);
  const onStack = Array.from<boolean>({ length: drafts.length }).fill(false);
  const stack: number[] = [];
  let counter = 0;
  let cyclic = false;
  for (let root = 0; root < drafts.length; root++) {
    if (number[root] !== -1) continue;
    const visits: { draft: number; next: number }[] = [{ draft: root, next: 0 }];
    for (let visit = visits.at(-1); visit !== undefined; visit = visits.at(-1)) {
      const { draft } = visit;
      if (visit.next === 0 && number[draft] === -1) {
        number[draft] = lowest[draft] = counter++;
        stack.push(draft);
        onStack[draft] = true;
      }
      const target = edges[draft]?.[visit.next];
      visit.next += 1;
      if (target !== undefined) {
        if (number[target] === -1) visits.push({ draft: target, next: 0 });
        else if (onStack[target] === true) lowest[draft] = Math.min(lowest[draft] ?? 0, number[target] ?? 0);
        continue;
      }
      visits.pop();
      const parent = visits.at(-1);
      if (parent !== undefined) lowest[parent.draft] = Math.min(lowest[parent.draft] ?? 0, lowest[draft] ?? 0);
      if (lowest[draft] !== number[draft]) continue;
      const component = stack.splice(stack.lastIndexOf(draft));
      for (const member of component) onStack[member] = false;
      order.push(...component);
      if (component.length > 1 || edges[draft]?.includes(draft) === true) {
        cyclic = true;
        noteCycle(drafts, edges, names, component, problems);
      }
    }
  }
  return cyclic ? undefined : order;
}

/** Names the shortest way from the component's first stage in the file back to itself. */
function noteCycle(
  drafts: readonly StageDraft[],
  edges: readonly (readonly number[])[],
  names: StageNames,
  component: readonly number[],
  problems: Problems,
): void {
  const start = Math.min(...component);
  const members = new Set(component);
  const cameFrom = new Map<number, number>();
  const queue = [start];
  for (let at = 0; at < queue.length && !cameFrom.has(start); at++) {
    for (const target of edges[queue[at] ?? 0] ?? []) {
      if (!members.has(target) || cameFrom.has(target)) continue;
      cameFrom.set(target, queue[at] ?? 0);
      queue.push(target);
    }
  }
  const way = [start];
  for (let at = cameFrom.get(start) ?? start; at !== start; at = cameFrom.get(at) ?? start) way.unshift(at);
  way.unshift(start);
  const nameOf = (draft: number): string => quoted(drafts[draft]?.name ?? '');
  const shown = way.length > 10 ? [...way.slice(0, 5).map(nameOf), '…', ...way.slice(-4).map(nameOf)] : way.map(nameOf);
  const first = drafts[start];
  const next = way[1] ?? start;
  const span = first?.after.find(
    (node) => names.byName.get(node.text) === next || names.draftOf[names.byFullName.get(node.text) ?? -1] === next,
  ) ??
    first?.nameSpan ?? { start: 0, end: 0 };
  const message =
    way.length === 2 ? `stage ${nameOf(start)} comes after itself` : `dependency cycle: ${shown.join(' after ')}`;
  problems.add(span, `${first?.path ?? 'stages'}.after`, message);
}

/** Which expanded stages come before each draft, directly or through others. */
export class Ancestors {
  readonly #sets: (Uint32Array | undefined)[] = [];

  constructor(graph: Graph, names: StageNames) {
    const words = (names.fullNames.length + 31) >> 5;
    for (const draft of graph.order ?? []) {
      const set = new Uint32Array(words);
      const seen = new Set<number>();
      for (const target of graph.after[draft] ?? []) {
        set[target >> 5] = (set[target >> 5] ?? 0) | (1 << (target & 31));
        const through = names.draftOf[target] ?? 0;
        if (seen.has(through)) continue;
        seen.add(through);
        const further = this.#sets[through];
        if (further !== undefined)
          for (let word = 0; word < words; word++) set[word] = (set[word] ?? 0) | (further[word] ?? 0);
      }
      this.#sets[draft] = set;
    }
  }

  has(draft: number, stage: number): boolean {
    return (((this.#sets[draft]?.[stage >> 5] ?? 0) >>> (stage & 31)) & 1) === 1;
  }
}
