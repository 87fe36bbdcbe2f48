/**
 * Makes the stages of a definition out of drafts: a matrix becomes one stage for each of its combinations, and a stage
 * that uses an extension made of stages becomes those, named `<stage>/<inner>`. What comes out knows nothing of either.
 *
 * EXPAND-1. What comes after such a stage comes after all its last ones. Its first ones come after what it comes after, and
 *    take over its `when`; with that skipped, nothing of it runs, also not what asks for `always()` inside.
 * EXPAND-2. `stages.<stage>.outputs.<name>` is the value that the manifest names; `stages.<stage>.status` sums up its stages.
 * EXPAND-3. `inputs.<name>` is the expression that the using stage gives, in terms of the stages around it; the values of its
 *    matrix are filled in, since the inner stages have a matrix of their own or none.
 * EXPAND-4. Everything is counted before it is made (`expansion-budget.ts`).
 */
import { artifactsOf } from './artifacts-from.ts';
import type { ExtensionBody, Level, LoadedExtension, StageDraft } from './drafts.ts';
import type { Command, Expression, MatrixCell, StageDefinition, Template } from '../model/definition.ts';
import type { Environment } from './environment.ts';
import { ExpansionBudget } from './expansion-budget.ts';
import type { Lacking, Site } from './expansion-budget.ts';
import { sizeOfApproval, sizeOfCaches, sizeOfEnvironment, sizeOfFrom, sizeOfPlace } from './draft-sizes.ts';
import { compare, inputMeaning, statusOf, toRecord, variablesOf, type Expanded } from './extension-values.ts';
import { Ancestors } from './graph.ts';
import { labelsOf } from './labels.ts';
import { ROOT_CONTEXT } from './level-context.ts';
import type { LevelContext } from './level-context.ts';
import { hasChosenImage, NO_PLACE, placeOf } from './place.ts';
import type { PlaceDraft } from './place.ts';
import type { ApprovalDefinition } from '../model/approval.ts';
import type { ArtifactsDefinition } from '../model/kept-files.ts';
import type { CacheDefinition } from '../model/cache.ts';
import type { PlaceDefinition } from '../model/place.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { Cell } from './matrix.ts';
import type { Problems } from '../text/problems.ts';
import { NO_RETRY } from './stage.ts';
import {
  asExpression,
  conjunction,
  disjunction,
  literal,
  substitute,
  substituteTemplate,
} from '../expressions/substitute.ts';
import type { Substitution } from '../expressions/substitute.ts';

/** Inside a first stage of an extension there is nothing before it. */
const NOTHING_BEFORE = { success: true, failure: false, always: true } as const;

export interface ExpandOptions {
  readonly lacking?: Lacking | undefined;
  /** See `ParseOptions`. */
  readonly standing?: boolean | undefined;
  /** The stage that adds them to its run; absent: they stand in the file. */
  readonly within?: string | undefined;
}

export function expandPipeline(
  level: Level,
  problems: Problems,
  { lacking = new Map(), standing, within }: ExpandOptions,
): StageDefinition[] {
  const context =
    within === undefined
      ? ROOT_CONTEXT
      : { ...ROOT_CONTEXT, prefix: `${within}/`, family: `${within}/`, after: [within] };
  return [...expandLevel(new ExpansionBudget(problems, lacking, standing), level, context).stages];
}

/** Makes the stages of an extension that nobody uses yet, to find what is wrong with them. */
export function expandExtension(body: ExtensionBody, problems: Problems): void {
  const extension: LoadedExtension = { id: body.id, version: body.version, hash: '', body, height: 1 };
  const inputs = new Map(body.inputs.map(({ name }) => [name, literal('')]));
  if (body.level !== undefined)
    expandLevel(new ExpansionBudget(problems, new Map()), body.level, {
      ...ROOT_CONTEXT,
      extension,
      prefix: 'stage/',
      family: 'stage/',
      inputs,
      variables: variablesOf(body, inputs),
    });
}

/** Dependencies first, for the value of a name is known once its stage has been expanded; the result is in file order. */
function expandLevel(whole: ExpansionBudget, level: Level, context: LevelContext): Expanded {
  const expansion = new LevelExpansion(whole, level, context);
  for (const draft of level.graph.order ?? []) if (!whole.isFull) expansion.expandDraft(draft);
  return expansion.result();
}

/** One level in the making. */
class LevelExpansion {
  readonly #whole: ExpansionBudget;
  readonly #level: Level;
  readonly #context: LevelContext;
  /** By the number of the stage in the level, matrices expanded. */
  readonly #expanded: (Expanded | undefined)[] = [];
  /** Names mean themselves: the pipeline itself, as long as it uses nothing that is made of stages. */
  readonly #isPlain: boolean;
  readonly #common: Environment;
  readonly #commonSize: number;
  readonly #commonRecord: Readonly<Record<string, Template>>;
  readonly #statuses = new Map<Expanded, Expression>();
  #ancestors: Ancestors | undefined;

  constructor(whole: ExpansionBudget, level: Level, context: LevelContext) {
    this.#whole = whole;
    this.#level = level;
    this.#context = context;
    this.#isPlain =
      context.extension === undefined && context.prefix === '' && level.drafts.every(({ use }) => use === undefined);
    this.#common = new Map([...context.envBelow, ...this.#environment(level.env, undefined)]);
    this.#commonSize = sizeOfEnvironment(this.#whole, this.#common);
    this.#commonRecord = toRecord(this.#common);
  }

  result(): Expanded {
    const { names, graph } = this.#level;
    const before = new Set(graph.after.flat());
    const of = (pick: (expanded: Expanded) => readonly string[], isWanted: (stage: number) => boolean): string[] =>
      names.fullNames.flatMap((_name, stage) => {
        const expanded = this.#expanded[stage];
        return expanded !== undefined && isWanted(stage) ? pick(expanded) : [];
      });
    return {
      stages: this.#expanded.flatMap((expanded) => expanded?.stages ?? []),
      entries: of(
        ({ entries }) => entries,
        (stage) => this.#isEntry(names.draftOf[stage] ?? 0),
      ),
      ends: of(
        ({ ends }) => ends,
        (stage) => !before.has(stage),
      ),
      outputs: this.#outputs(),
    };
  }

  expandDraft(index: number): void {
    const draft = this.#level.drafts[index];
    if (draft === undefined) return;
    const first = this.#level.names.firstOf[index] ?? 0;
    const body = draft.use?.extension?.body;
    const cells: readonly (Cell | undefined)[] = draft.matrix?.cells ?? [undefined];
    const after = this.#isEntry(index)
      ? this.#context.after
      : [...new Set((this.#level.graph.after[index] ?? []).flatMap((stage) => this.#expanded[stage]?.ends ?? []))];
    if (body?.level === undefined) this.#makeStages(draft, index, cells, after);
    else
      for (const [offset, cell] of cells.entries())
        if (!this.#whole.isFull)
          this.#expanded[first + offset] = this.#makeGroup(draft, index, cell, after, body, body.level);
  }

  /** Plain stages, and those that take their command from an extension. What their cells share is one object. */
  #makeStages(draft: StageDraft, index: number, cells: readonly (Cell | undefined)[], after: readonly string[]): void {
    const context = this.#context;
    const first = this.#level.names.firstOf[index] ?? 0;
    const site = this.#siteOf(draft);
    const used = draft.use?.extension;
    const by = this.#substitution(undefined);
    // Beside `uses`, names mean what they mean in the file; the variables of the extension are its own.
    const around = used === undefined ? by : this.#outside(draft, by, site);
    const inputs = used === undefined ? context.inputs : this.#inputsOf(draft, used.body, around);
    const inner = used === undefined ? by : { meaning: inputMeaning(inputs) };
    const commands = this.#commands(used?.body.commands ?? draft.commands, inner, site);
    const env = this.#stageEnvironment(
      draft,
      by,
      used === undefined ? new Map() : this.#environment(used.body.env, inner, site),
      used === undefined ? context.variables : variablesOf(used.body, inputs),
    );
    const names = cells.map((cell) => `${context.prefix}${cell?.name ?? draft.name}`);
    const { when, runsAfterFailure } = this.#condition(draft, index, around, site);
    const artifacts = this.#artifacts(draft, index);
    const textSize =
      this.#whole.sizeOfCommands(commands) +
      env.size +
      sizeOfPlace(this.#whole, draft.place) +
      sizeOfCaches(this.#whole, draft.caches) +
      sizeOfApproval(this.#whole, draft.approval) +
      (this.#whole.standing ? 0 : sizeOfFrom(artifacts)) +
      (when === undefined || this.#isPlain ? 0 : this.#whole.sizeOfExpression(when));
    if (!this.#whole.admit(names, after, textSize, site)) return;
    const workdir = this.#workdir(draft, around, site);
    const caches = this.#caches(draft.caches, around, site);
    const approval = this.#approval(draft, by, site);
    const secrets = draft.secrets ?? context.secrets;
    const quarantine = draft.quarantine ?? context.quarantine;
    const idTokens = draft.idTokens ?? context.idTokens;
    const shell = used === undefined ? draft.shell : used.body.shell;
    const extension = used ?? context.extension;
    const hasManyImages = [draft.place, used?.body.place ?? NO_PLACE].some(hasChosenImage);
    let place: PlaceDefinition<Template> | undefined;
    for (const [offset, cell] of cells.entries()) {
      if (this.#whole.isFull) return;
      const name = names[offset] ?? draft.name;
      const values = cell === undefined ? undefined : toRecord(cell.values);
      const matrix = this.#matrixOf(draft, values);
      const labels = this.#labels(draft, values);
      if (offset === 0 || hasManyImages) place = this.#place(draft, used, values, by, inner, site);
      if (offset === 0) this.#whole.admitPlace(place, draft.place, site);
      const stage: StageDefinition = {
        name,
        after,
        ...(when === undefined ? {} : { when }),
        runsAfterFailure,
        commands,
        env: env.record,
        timeoutMs: draft.timeoutMs ?? context.timeoutMs ?? PIPELINE_LIMITS.timeoutMsDefault,
        retry: draft.retry ?? context.retry ?? NO_RETRY,
        allowFailure: draft.allowFailure || context.allowFailure,
        ...(workdir === undefined ? {} : { workdir }),
        ...(shell === undefined ? {} : { shell }),
        workspace: draft.workspace ?? context.workspace ?? 'shared',
        runsOn: labels.length > 0 ? labels : context.runsOn,
        outputs: draft.outputs,
        ...(secrets === undefined ? {} : { secrets }),
        ...(idTokens === undefined ? {} : { idTokens }),
        ...(place === undefined ? {} : { place }),
        ...(artifacts === undefined ? {} : { artifacts }),
        ...(draft.reports === undefined ? {} : { reports: draft.reports }),
        ...(quarantine === undefined ? {} : { quarantine }),
        ...(caches === undefined ? {} : { caches }),
        ...(matrix === undefined ? {} : { matrix }),
        ...(approval === undefined ? {} : { approval }),
        ...(draft.generates === undefined ? {} : { generates: draft.generates }),
        ...(extension === undefined
          ? {}
          : { extension: { id: extension.id, version: extension.version, hash: extension.hash } }),
      };
      this.#expanded[first + offset] = { stages: [stage], entries: [name], ends: [name], outputs: undefined };
    }
  }

  /** The stages of an extension in the place of one stage that uses it. */
  #makeGroup(
    draft: StageDraft,
    index: number,
    cell: Cell | undefined,
    after: readonly string[],
    body: ExtensionBody,
    level: Level,
  ): Expanded {
    const context = this.#context;
    const site = this.#siteOf(draft);
    const by = this.#substitution(cell);
    const own = this.#environment(draft.env, by, site);
    const outside = this.#outside(draft, by, site);
    const inputs = this.#inputsOf(draft, body, outside);
    const { when, runsAfterFailure } = this.#condition(draft, index, outside, site);
    const values = cell === undefined ? undefined : toRecord(cell.values);
    const labels = this.#labels(draft, values);
    const matrix = this.#matrixOf(draft, values);
    const place = this.#place(draft, undefined, values, by, by, site);
    return expandLevel(this.#whole, level, {
      extension: draft.use?.extension,
      prefix: `${context.prefix}${cell?.name ?? draft.name}/`,
      family: `${context.family}${draft.name}/`,
      inputs,
      envBelow: this.#common,
      envAbove: new Map([...own, ...context.envAbove]),
      variables: variablesOf(body, inputs),
      after,
      when,
      runsAfterFailure,
      timeoutMs: draft.timeoutMs ?? context.timeoutMs,
      retry: draft.retry ?? context.retry,
      workspace: draft.workspace ?? context.workspace,
      workdir: this.#workdir(draft, outside, site),
      runsOn: labels.length > 0 ? labels : context.runsOn,
      place,
      secrets: draft.secrets ?? context.secrets,
      idTokens: draft.idTokens ?? context.idTokens,
      allowFailure: draft.allowFailure || context.allowFailure,
      quarantine: draft.quarantine ?? context.quarantine,
      matrix,
      site,
    });
  }

  /** As the stage itself is written: its variables are others than those of the extension that it uses. */
  #outside(draft: StageDraft, by: Substitution, site: Site): Substitution {
    const seen = new Map([...this.#common, ...this.#environment(draft.env, by, site), ...this.#context.envAbove]);
    return {
      meaning: (path) => (path[0] === 'env' ? asExpression(seen.get(path[1] ?? '') ?? ['']) : by.meaning(path)),
    };
  }

  /** When the stage is looked at, and what must then hold. */
  #condition(
    draft: StageDraft,
    index: number,
    by: Substitution,
    site: Site,
  ): { readonly when: Expression | undefined; readonly runsAfterFailure: boolean } {
    const context = this.#context;
    const own = (calls?: Substitution['calls']): Expression | undefined =>
      draft.when === undefined ? undefined : this.#whole.bounded(substitute(draft.when, { ...by, calls }), site);
    if (context.extension === undefined)
      return { when: this.#isPlain ? draft.when : own(), runsAfterFailure: draft.runsAfterFailure };
    if (this.#isEntry(index))
      return { when: conjunction(context.when, own(NOTHING_BEFORE)), runsAfterFailure: context.runsAfterFailure };
    if (!draft.runsAfterFailure) return { when: own(), runsAfterFailure: false };
    return { when: conjunction(this.#hasBegun(index), own()), runsAfterFailure: true };
  }

  /** That not all of the extension's first stages before this one were skipped. */
  #hasBegun(index: number): Expression | undefined {
    const { names, graph } = this.#level;
    this.#ancestors ??= new Ancestors(graph, names);
    const entries = names.fullNames.flatMap((_name, stage) =>
      this.#isEntry(names.draftOf[stage] ?? 0) && this.#ancestors?.has(index, stage) === true
        ? (this.#expanded[stage]?.entries ?? [])
        : [],
    );
    return disjunction(entries.map((name) => compare(name, '!=', 'SKIPPED')));
  }

  #isEntry(index: number): boolean {
    return (this.#level.graph.after[index] ?? []).length === 0;
  }

  #labels(draft: StageDraft, values: Readonly<Record<string, string>> | undefined): string[] {
    const labels = labelsOf(
      draft.runsOn,
      values ?? {},
      `${draft.path}.runs_on`,
      this.#whole.problems,
      this.#context.site?.span,
    );
    const { span } = this.#context.site ?? draft.runsOn[0] ?? { span: draft.nameSpan };
    this.#whole.admitLabels(labels, { span, path: `${draft.path}.runs_on` });
    return labels;
  }

  #matrixOf(draft: StageDraft, values: Readonly<Record<string, string>> | undefined): MatrixCell | undefined {
    const context = this.#context;
    // The expansions of an outer matrix share the stages inside, each with its like.
    if (draft.matrix === undefined || values === undefined)
      return context.matrix === undefined ? undefined : { ...context.matrix, of: `${context.family}${draft.name}` };
    const { maxParallel, failFast } = draft.matrix;
    return {
      of: `${context.prefix}${draft.name}`,
      values,
      ...(maxParallel === undefined ? {} : { maxParallel }),
      failFast,
    };
  }

  /** What the stage says stands above what its extension says, and both above what the stage around it says. */
  #place(
    draft: StageDraft,
    used: LoadedExtension | undefined,
    values: Readonly<Record<string, string>> | undefined,
    by: Substitution,
    inner: Substitution,
    site: Site,
  ): PlaceDefinition<Template> | undefined {
    const given = (place: PlaceDraft, substitution: Substitution): PlaceDefinition<Template> | undefined =>
      placeOf(place, {
        matrix: values ?? {},
        template: (template) => substituteTemplate(template, substitution),
        environment: (env) => toRecord(this.#environment(env, substitution, site)),
        problems: this.#whole.problems,
        site: this.#context.site?.span,
      });
    const own = given(draft.place, by);
    const ofExtension = used === undefined ? undefined : given(used.body.place, inner);
    const around = this.#context.place;
    if (ofExtension === undefined && (own === undefined || around === undefined)) return own ?? around;
    return { ...around, ...ofExtension, ...own };
  }

  #approval({ approval }: StageDraft, by: Substitution, site: Site): ApprovalDefinition<Template> | undefined {
    if (approval?.message === undefined) return approval;
    return { ...approval, message: this.#template(approval.message, by, site) };
  }

  #artifacts(draft: StageDraft, index: number): ArtifactsDefinition | undefined {
    const { names, graph } = this.#level;
    return artifactsOf(draft, {
      names,
      comesAfter: (stage) => (this.#ancestors ??= new Ancestors(graph, names)).has(index, stage),
      stagesOf: (stage) => this.#expanded[stage]?.stages.map(({ name }) => name) ?? [],
      problems: this.#whole.problems,
      site: this.#context.site?.span,
    });
  }

  #caches(
    caches: readonly CacheDefinition<Template>[] | undefined,
    by: Substitution,
    site: Site,
  ): readonly CacheDefinition<Template>[] | undefined {
    if (this.#isPlain || caches === undefined) return caches;
    return caches.map(({ key, paths, restore }) => ({
      key: this.#template(key, by, site),
      paths,
      restore: restore.map((text) => this.#template(text, by, site)),
    }));
  }

  #workdir(draft: StageDraft, by: Substitution, site: Site): Template | undefined {
    const own = draft.workdir === undefined ? undefined : this.#template(draft.workdir, by, site);
    const { workdir } = this.#context;
    return own === undefined || workdir === undefined ? (own ?? workdir) : [...workdir, '/', ...own];
  }

  #commands(commands: readonly Command[], by: Substitution, site: Site): readonly Command[] {
    if (this.#isPlain || commands.every(({ bindings }) => Object.keys(bindings).length === 0)) return commands;
    return commands.map(({ script, bindings }) => ({
      script,
      bindings: Object.fromEntries(
        Object.entries(bindings).map(([name, expression]) => [
          name,
          this.#whole.bounded(substitute(expression, by), site),
        ]),
      ),
    }));
  }

  #stageEnvironment(
    draft: StageDraft,
    by: Substitution,
    ofExtension: Environment,
    variables: Environment,
  ): { readonly record: Readonly<Record<string, Template>>; readonly size: number } {
    const { envAbove } = this.#context;
    if (draft.env.size + ofExtension.size + variables.size + envAbove.size === 0)
      return { record: this.#commonRecord, size: this.#commonSize };
    const merged = new Map([
      ...this.#common,
      ...ofExtension,
      ...this.#environment(draft.env, by, this.#siteOf(draft)),
      ...envAbove,
      ...variables,
    ]);
    return { record: toRecord(merged), size: sizeOfEnvironment(this.#whole, merged) };
  }

  #environment(env: Environment, by: Substitution | undefined, site?: Site): Environment {
    if (this.#isPlain || env.size === 0) return env;
    const substitution = by ?? this.#substitution(undefined);
    return new Map(
      [...env].map(([name, template]) => [
        name,
        this.#template(template, substitution, site ?? this.#context.site ?? NOWHERE),
      ]),
    );
  }

  #template(template: Template, by: Substitution, site: Site): Template {
    if (this.#isPlain) return template;
    return substituteTemplate(template, by).map((part) =>
      typeof part === 'string' ? part : { expression: this.#whole.bounded(part.expression, site) },
    );
  }

  #inputsOf(draft: StageDraft, body: ExtensionBody, by: Substitution): Map<string, Expression> {
    const inputs = new Map<string, Expression>();
    for (const { name } of body.inputs)
      inputs.set(
        name,
        this.#whole.bounded(
          asExpression(substituteTemplate(draft.use?.inputs.get(name) ?? [''], by)),
          this.#siteOf(draft),
        ),
      );
    return inputs;
  }

  /** What names mean at this level; with the values of a combination filled in where the expression leaves it. */
  #substitution(cell: Cell | undefined): Substitution {
    const { extension, inputs, prefix } = this.#context;
    const { byFullName } = this.#level.names;
    return {
      meaning: (path) => {
        const [root, name = '', member, output = ''] = path;
        // Those of the pipeline itself are known with the run only.
        if (root === 'inputs') return extension === undefined ? undefined : (inputs.get(name) ?? literal(''));
        if (root === 'matrix') return cell === undefined ? undefined : literal(cell.values.get(name) ?? '');
        if (root !== 'stages') return undefined;
        const expanded = this.#expanded[byFullName.get(name) ?? -1];
        if (expanded?.outputs !== undefined)
          return member === 'status' ? this.#statusOf(expanded) : (expanded.outputs.get(output) ?? literal(''));
        return prefix === '' ? undefined : { kind: 'path', path: [root, `${prefix}${name}`, ...path.slice(2)] };
      },
    };
  }

  /** Made once: a file can ask for it in every line. */
  #statusOf(expanded: Expanded): Expression {
    const status = this.#statuses.get(expanded) ?? statusOf(expanded);
    this.#statuses.set(expanded, status);
    return status;
  }

  #outputs(): ReadonlyMap<string, Expression> | undefined {
    const body = this.#context.extension?.body;
    if (body === undefined) return undefined;
    const by = this.#substitution(undefined);
    const site = this.#context.site ?? NOWHERE;
    return new Map(
      [...body.values].map(([name, template]) => [
        name,
        this.#whole.bounded(asExpression(substituteTemplate(template, by)), site),
      ]),
    );
  }

  #siteOf(draft: StageDraft): Site {
    return this.#context.site ?? { span: draft.nameSpan, path: draft.path };
  }
}

const NOWHERE: Site = { span: { start: 0, end: 0 }, path: '' };
