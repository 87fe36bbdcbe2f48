/** Checks every name that the expressions of a file use, once all stages, outputs and axes are known. */
import type { Graph, StageDraft, StageNames } from './drafts.ts';
import type { Expression, ExpressionFunction, InputDefinition } from '../model/definition.ts';
import type { Environment } from './environment.ts';
import { equal } from '../expressions/evaluate.ts';
import type { PathUse } from '../expressions/expression.ts';
import { Ancestors } from './graph.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { nameHint } from './foreign-names.ts';
import { didYouMean } from '../text/suggest.ts';
import type { ExpressionSite, Place } from './template.ts';

export type Root = 'stages' | 'matrix' | 'env' | 'run' | 'pipeline' | 'webhook' | 'inputs';

const ROOTS: readonly Root[] = ['stages', 'matrix', 'env', 'run', 'pipeline', 'webhook', 'inputs'];
const RUN_KEYS = ['id', 'trusted', 'trigger', 'ref', 'commit', 'actor'];
const TRIGGERS = ['push', 'pull_request', 'schedule', 'api', 'local'];
const WEBHOOK_KEYS = ['repository', 'ref', 'commit', 'provider'];

/** The names that each place can use, and what the place is called. */
const PLACES: Readonly<Record<Place, { readonly roots: readonly Root[]; readonly label: string }>> = {
  run: { roots: ROOTS, label: "'run'" },
  when: { roots: ROOTS, label: "'when'" },
  workdir: { roots: ROOTS, label: "'workdir'" },
  'stage-env': { roots: ['stages', 'matrix', 'run', 'pipeline', 'webhook', 'inputs'], label: "an 'env'" },
  with: { roots: ['stages', 'matrix', 'env', 'run', 'pipeline', 'webhook', 'inputs'], label: "'with'" },
  output: { roots: ['stages', 'run', 'pipeline', 'inputs'], label: "an output's 'value'" },
  message: { roots: ['stages', 'run', 'pipeline', 'webhook', 'inputs'], label: "an approval's 'message'" },
  'top-env': { roots: ['run', 'pipeline', 'webhook', 'inputs'], label: "the 'env' of the whole pipeline" },
  group: { roots: ['run', 'pipeline', 'webhook', 'inputs'], label: "'concurrency.group'" },
  'runs-on': { roots: ['matrix'], label: "'runs_on'" },
  cache: { roots: ROOTS, label: "'cache'" },
  image: { roots: ['matrix', 'inputs'], label: "'image'" },
};

export interface ReferenceContext {
  readonly drafts: readonly StageDraft[];
  readonly names: StageNames;
  readonly graph: Graph;
  readonly env: Environment;
  readonly template: boolean;
  /** Of the pipeline, or of the extension. */
  readonly inputs: readonly InputDefinition[];
  /** Of an extension's manifest: the names that it can use at all. Absent: a pipeline. */
  readonly extension?: { readonly roots: readonly Root[] } | undefined;
  readonly problems: Problems;
}

/** Notes every use of something that does not exist, or not there. `topSites` belong to no stage. */
export function checkReferences(context: ReferenceContext, topSites: readonly ExpressionSite[]): void {
  const checker = new ReferenceChecker(context);
  for (const site of topSites) checker.check(site, undefined);
  for (const [index, draft] of context.drafts.entries()) for (const site of draft.sites) checker.check(site, index);
}

class ReferenceChecker {
  readonly #context: ReferenceContext;
  #ancestors: Ancestors | undefined;

  constructor(context: ReferenceContext) {
    this.#context = context;
  }

  check(site: ExpressionSite, draft: number | undefined): void {
    for (const call of site.parsed.calls) {
      const fault = callFault(site, call.name);
      if (fault !== undefined) this.#context.problems.add(site.spanOf(call), site.path, ...fault);
    }
    for (const use of site.parsed.paths) this.#checkPath(site, use, draft);
    this.#checkComparisons(site, site.parsed.expression, draft);
  }

  /** A comparison of a name with a text that it never is holds for no run, or for every one. */
  #checkComparisons(site: ExpressionSite, expression: Expression, draft: number | undefined): void {
    if (expression.kind === 'not') this.#checkComparisons(site, expression.operand, draft);
    if (expression.kind !== 'binary') return;
    const { operator, left, right } = expression;
    this.#checkComparisons(site, left, draft);
    this.#checkComparisons(site, right, draft);
    if (operator !== '==' && operator !== '!=') return;
    if (left.kind === 'path' && right.kind === 'literal')
      this.#checkComparison(site, operator, left.path, right.value, draft);
    if (right.kind === 'path' && left.kind === 'literal')
      this.#checkComparison(site, operator, right.path, left.value, draft);
  }

  #checkComparison(
    site: ExpressionSite,
    operator: '==' | '!=',
    path: readonly string[],
    value: string | number | boolean | null,
    draft: number | undefined,
  ): void {
    const possible = this.#possibleValues(path, draft);
    if (possible === undefined || possible.some((one) => equal(one, value))) return;
    const text = value === null ? '' : String(value);
    const use = site.parsed.paths.find((candidate) => candidate.path.join('\0') === path.join('\0'));
    this.#context.problems.add(
      use === undefined ? site.spanOf({ from: 0, to: 1 }) : site.spanOf(use),
      site.path,
      `${path.join('.')} is never ${quoted(text)}, so this is always ${operator === '==' ? 'false' : 'true'}`,
      () =>
        statusMeant(path, text) ??
        `it can be ${possible
          .filter((one) => one !== '')
          .slice(0, 10)
          .join(', ')}`,
    );
  }

  /** What a name can be; undefined where that is not known. */
  #possibleValues(path: readonly string[], draft: number | undefined): readonly string[] | undefined {
    if (path[0] === 'stages' && path.length === 3 && path[2] === 'status') return STATUSES;
    if (path[0] === 'run' && path[1] === 'trusted') return ['true', 'false'];
    if (path[0] === 'run' && path[1] === 'trigger') return TRIGGERS;
    if (path[0] === 'inputs' && path.length === 2 && this.#context.extension === undefined)
      return valuesOf(this.#context.inputs.find(({ name }) => name === path[1]));
    if (path[0] !== 'matrix' || path.length !== 2 || draft === undefined) return undefined;
    const matrix = this.#context.drafts[draft]?.matrix;
    const axis = path[1] ?? '';
    if (matrix === undefined || !matrix.keys.has(axis)) return undefined;
    // A value that a combination does not have is the empty text.
    return ['', ...new Set(matrix.cells.map(({ values }) => values.get(axis) ?? ''))];
  }

  #checkPath(site: ExpressionSite, use: PathUse, draft: number | undefined): void {
    const [rootName = '', ...rest] = use.path;
    const note = (message: string, suggest?: string | (() => string | undefined)): void =>
      this.#context.problems.add(site.spanOf(use), site.path, message, suggest);
    const root = ROOTS.find((candidate) => candidate === rootName);
    const place = PLACES[site.place];
    const { extension } = this.#context;
    // The inputs of an extension are what the file gives it; those of a pipeline come from whoever triggers it.
    const roots = place.roots.filter((name) =>
      extension === undefined ? site.place !== 'image' || name !== 'inputs' : extension.roots.includes(name),
    );
    if (root === undefined) {
      note(
        `unknown name ${quoted(rootName)}`,
        () =>
          nameHint(rootName) ??
          didYouMean(rootName, [...roots, 'success()', 'failure()', 'always()', 'true', 'false', 'null']) ??
          (use.path.length === 1 ? 'a text goes in single quotes' : `what can be used: ${roots.join(', ')}`),
      );
    } else if (root === 'webhook' && !this.#context.template) {
      note("'webhook' is known in the server's template only");
    } else if (extension !== undefined && !extension.roots.includes(root)) {
      note(`'${root}' cannot be used in this extension`, 'take the value as an input');
    } else if (!roots.includes(root)) {
      note(`'${root}' cannot be used in ${place.label}`, `what can be used: ${roots.join(', ')}`);
    } else if (root === 'stages') this.#checkStage(rest, site.place === 'output' ? 'outside' : draft, note);
    else if (root === 'matrix') this.#checkMatrix(rest, draft, note);
    else if (root === 'inputs')
      this.#checkKey(
        'inputs',
        rest,
        this.#context.inputs.map(({ name }) => name),
        note,
        "declare it under 'inputs'",
      );
    else if (root === 'env')
      this.#checkKey('env', rest, this.#variables(draft), note, "set it under 'env', or use the shell's own $NAME");
    else this.#checkKey(root, rest, root === 'run' ? RUN_KEYS : root === 'pipeline' ? ['name'] : WEBHOOK_KEYS, note);
  }

  #variables(draft: number | undefined): string[] {
    const own = draft === undefined ? undefined : this.#context.drafts[draft]?.env.keys();
    return [...this.#context.env.keys(), ...(own ?? [])];
  }

  #checkKey(root: string, rest: readonly string[], known: readonly string[], note: Note, remedy?: string): void {
    const [key] = rest;
    if (key === undefined || rest.length > 1)
      note(
        `'${root}' is used as ${root}.NAME`,
        known.length > 0 && known.length < 6
          ? `there is ${known.map((name) => `${root}.${name}`).join(', ')}`
          : undefined,
      );
    else if (!known.includes(key))
      note(
        `there is no '${root}.${key.slice(0, 60)}'`,
        () => didYouMean(key, known) ?? remedy ?? `there is ${known.map((name) => `${root}.${name}`).join(', ')}`,
      );
  }

  #checkMatrix(rest: readonly string[], draft: number | undefined, note: Note): void {
    const stage = draft === undefined ? undefined : this.#context.drafts[draft];
    if (stage?.matrix !== undefined) this.#checkKey('matrix', rest, [...stage.matrix.keys], note);
    else if (stage?.isMatrix !== true) note("this stage has no 'matrix'");
  }

  /** `outside`: the place comes after all stages. */
  #checkStage(rest: readonly string[], draft: number | 'outside' | undefined, note: Note): void {
    const { names, graph, drafts } = this.#context;
    const [name, member, output] = rest;
    const shape = member === 'status' ? rest.length === 2 : member === 'outputs' && rest.length === 3;
    if (name === undefined || !shape || draft === undefined) {
      note('a stage is used as stages.NAME.outputs.OUTPUT or stages.NAME.status', () =>
        member === undefined ? undefined : didYouMean(member, ['outputs', 'status']),
      );
      return;
    }
    const stage = names.byFullName.get(name);
    const base = names.byName.get(name);
    const target = base === undefined ? drafts[names.draftOf[stage ?? -1] ?? -1] : drafts[base];
    if (target === undefined) {
      note(`there is no stage ${quoted(name)}`, () => didYouMean(name, [...names.byName.keys(), ...names.fullNames]));
    } else if (target.isMatrix && base !== undefined && stage === undefined) {
      const first = target.matrix?.cells[0]?.name;
      note(
        `${quoted(name)} is a matrix: one of its stages must be named`,
        first === undefined ? undefined : `stages['${first}']`,
      );
    } else if (
      graph.order !== undefined &&
      draft !== 'outside' &&
      stage !== undefined &&
      !this.#isAncestor(draft, stage)
    ) {
      note(
        `stage ${quoted(drafts[draft]?.name ?? '')} does not come after ${quoted(name)}, so its values are not known`,
        `add 'after: ${name}'`,
      );
    } else if (output !== undefined && !target.outputs.includes(output)) {
      // Of an extension that is not known here nobody can say what it publishes.
      if (target.use !== undefined && target.use.extension === undefined) return;
      const remedy =
        target.use === undefined
          ? `name it under 'outputs' of ${quoted(target.name)}`
          : target.outputs.length === 0
            ? 'its extension publishes none'
            : `its extension publishes ${target.outputs.slice(0, 10).join(', ')}`;
      note(
        `stage ${quoted(target.name)} has no output ${quoted(output)}`,
        () => didYouMean(output, target.outputs) ?? remedy,
      );
    }
  }

  #isAncestor(draft: number, stage: number): boolean {
    this.#ancestors ??= new Ancestors(this.#context.graph, this.#context.names);
    return this.#ancestors.has(draft, stage);
  }
}

/** What a run's input can be; undefined where that is any text. What an extension is given may be an expression of any text. */
function valuesOf(input: InputDefinition | undefined): readonly string[] | undefined {
  if (input === undefined || input.type === 'string' || input.type === 'number') return undefined;
  const values = input.type === 'boolean' ? ['true', 'false'] : input.options;
  return input.required || input.default !== undefined ? values : ['', ...values];
}

/** What becomes of a stage, as an expression sees it once the stage has ended. */
const STATUSES = ['SUCCESS', 'FAILED', 'SKIPPED', 'CANCELLED'];
const STATUS_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^(pass|succe|ok|green|done|complete)/i, 'SUCCESS'],
  [/^(fail|error|red|broken)/i, 'FAILED'],
  [/^skip/i, 'SKIPPED'],
  [/^(cancel|abort)/i, 'CANCELLED'],
];

function statusMeant(path: readonly string[], text: string): string | undefined {
  const meant = path[0] === 'stages' ? STATUS_WORDS.find(([pattern]) => pattern.test(text))?.[1] : undefined;
  return meant === undefined ? undefined : `did you mean '${meant}'?`;
}

/** Where files are hashed there is nothing to reckon with: the value is put into the text there. */
function callFault(
  { place, parsed }: ExpressionSite,
  name: ExpressionFunction,
): readonly [string, string?] | undefined {
  if (name !== 'hash') return place === 'when' ? undefined : [`'${name}()' can only be used in 'when'`];
  if (place !== 'cache') return ["'hash()' can only be used in the 'key' and the 'restore' of a 'cache'"];
  if (parsed.expression.kind === 'call') return undefined;
  return ["'hash()' must be the whole of its ${{ }}", "write ${{ hash('…') }} beside the rest of the text"];
}

type Note = (message: string, suggest?: string | (() => string | undefined)) => void;
