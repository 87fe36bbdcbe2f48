/** What a granted attempt is to execute: the stage's definition with every expression evaluated. */
import {
  evaluate,
  renderTemplate,
  type AddedBy,
  type ArtifactsDefinition,
  type CacheDefinition,
  type Expression,
  type ExpressionScope,
  type IdTokenUse,
  type PlaceDefinition,
  type ReportsDefinition,
  type ResolvedExtension,
  type SecretUse,
  type Template,
} from '@penstock/pipeline';
import { addedTextOptions } from './added-stages.ts';
import { countTexts, environmentOf, scopeOf } from './scope.ts';
import { WorkTooLarge } from './errors.ts';
import { numberOf } from './evolve.ts';
import { ancestorsOf, type Plan, ranksOf } from './plan.ts';
import type { InheritedArtifacts } from './stage-state.ts';
import type { RunState, TriggerOrigin } from './state.ts';

/** A text whose hashes have their values where the files are. */
type CacheText = readonly (string | { readonly hash: readonly string[] })[];

/** Files that are to be there before the stage, and to be found again by later runs. */
export interface CacheWork {
  readonly key: CacheText;
  readonly paths: readonly string[];
  readonly restore: readonly CacheText[];
}

/** What the stages that it adds are read with where it runs, so that its log says what is wrong with them. */
export interface GenerateWork {
  readonly extensions: readonly ResolvedExtension[];
  readonly added: AddedBy;
}

export interface StageWork {
  readonly workspace: 'shared' | 'fresh';
  readonly commands: readonly { readonly script: string; readonly bindings: Readonly<Record<string, string>> }[];
  readonly env: Readonly<Record<string, string>>;
  readonly workdir?: string | undefined;
  readonly shell?: string | undefined;
  readonly outputs: readonly string[];
  /** Names of secrets, never a value; absent: none. */
  readonly secrets?: readonly SecretUse[] | undefined;
  /** For whom it gets id tokens, and in which variables; absent: none. */
  readonly idTokens?: readonly IdTokenUse[] | undefined;
  readonly place?: PlaceDefinition<string> | undefined;
  /** What of its files is kept; absent: nothing. */
  readonly artifacts?: Pick<ArtifactsDefinition, 'paths' | 'when' | 'required'> | undefined;
  /** Which files say how its tests went; absent: none. */
  readonly reports?: ReportsDefinition | undefined;
  readonly caches?: readonly CacheWork[] | undefined;
  /** Kept files of earlier stages, in their order: what a folder that is made anew for this stage begins with. */
  readonly inherits?: readonly InheritedArtifacts[] | undefined;
  /** It may add stages to its run; absent: it adds none. */
  readonly generates?: GenerateWork | undefined;
  readonly timeoutMs: number;
  /** Which execution of the stage it is, where that is another than the number of its grant (P12). */
  readonly number?: number | undefined;
  /** The extension that the stage comes from: its package is to lie where `SERVICE_EXTENSION_PATH` says. */
  readonly extension?: { readonly id: string; readonly version: string; readonly hash: string } | undefined;
}

/** UTF-16 units of all values of a stage; more fits no message. A value of 64 KiB may be named 25,600 times. */
const WORK_TEXT_MAX = 1024 * 1024;
/** Of the texts within its expressions: what is handed on through extensions counts once for each of them. */
const INNER_TEXT_MAX = 8 * WORK_TEXT_MAX;

/** Throws WorkTooLarge before a text is made that fits no message. */
export function workOf(run: RunState, plan: Plan, stageName: string): StageWork {
  const index = plan.indexOf.get(stageName) ?? -1;
  const definition = plan.stages[index]?.definition;
  const stage = run.stages.get(index);
  if (definition === undefined) throw new RangeError(`there is no stage '${stageName}'`);
  const tooLarge = (): Error => new WorkTooLarge(run.id, stageName);
  const verdicts = { success: true, failure: false, onText: countTexts(INNER_TEXT_MAX, tooLarge) };
  const count = countTexts(WORK_TEXT_MAX, tooLarge);
  const counted = (text: string): string => {
    count(text);
    return text;
  };
  const env = environmentOf(run, plan, index, verdicts, counted);
  const scope = scopeOf(run, plan, index, verdicts, env);
  const inputs = definition.extension === undefined ? inputEnvironment(run, plan, counted) : {};
  const textOf = (expression: Expression): string => {
    const value = evaluate(expression, scope);
    // NUL ends a variable for the operating system: it could not be passed at all.
    return counted(value === null ? '' : String(value)).replaceAll('\0', '');
  };
  return {
    workspace: definition.workspace,
    commands: definition.commands.map(({ script, bindings }) => ({
      script,
      bindings: Object.fromEntries(Object.entries(bindings).map(([name, expression]) => [name, textOf(expression)])),
    })),
    // The file may set a variable of the same name; what the host says about the push cannot be put in its place by it.
    env: { ...inputs, ...env, ...(run.origin.repository === undefined ? {} : originEnvironment(run.origin)) },
    ...(definition.workdir === undefined ? {} : { workdir: counted(renderTemplate(definition.workdir, scope)) }),
    ...(definition.shell === undefined ? {} : { shell: definition.shell }),
    outputs: definition.outputs,
    ...(definition.secrets === undefined ? {} : { secrets: definition.secrets }),
    ...(definition.idTokens === undefined ? {} : { idTokens: definition.idTokens }),
    ...(definition.place === undefined ? {} : { place: renderedPlace(definition.place, scope, counted) }),
    ...keptFields(definition.artifacts),
    ...(definition.reports === undefined ? {} : { reports: definition.reports }),
    ...cacheFields(definition.caches, (template) => cacheText(template, textOf)),
    ...inheritedFields(run, plan, index),
    ...generatesFields(plan, stageName),
    timeoutMs: definition.timeoutMs,
    ...(stage?.returned === undefined ? {} : { number: numberOf(stage) }),
    ...(definition.extension === undefined ? {} : { extension: definition.extension }),
  };
}

function generatesFields(plan: Plan, stage: string): Pick<StageWork, 'generates'> {
  const { added, extensions = [] } = addedTextOptions(plan, stage) ?? {};
  return added === undefined ? {} : { generates: { extensions, added } };
}

/** How long they are kept is for the run's owner. */
function keptFields(artifacts: ArtifactsDefinition | undefined): Pick<StageWork, 'artifacts'> {
  if (artifacts === undefined || artifacts.paths.length === 0) return {};
  const { paths, when, required } = artifacts;
  return { artifacts: { paths, when, required } };
}

function cacheFields(
  caches: readonly CacheDefinition<Template>[] | undefined,
  textOf: (template: Template) => CacheText,
): Pick<StageWork, 'caches'> {
  if (caches === undefined) return {};
  return {
    caches: caches.map(({ key, paths, restore }) => ({ key: textOf(key), paths, restore: restore.map(textOf) })),
  };
}

function cacheText(template: Template, textOf: (expression: Expression) => string): CacheText {
  return template.map((part) => {
    if (typeof part === 'string') return part;
    const { expression } = part;
    if (expression.kind !== 'call' || expression.name !== 'hash') return textOf(expression);
    return { hash: expression.arguments.map((argument) => textOf(argument)) };
  });
}

/**
 * A clean folder begins with what the stage's direct dependencies have kept, the shared one with what all before it have; of a path what stands
 * last has the last word, so who comes after another stands behind it, wherever the file has it.
 */
function inheritedFields(run: RunState, plan: Plan, index: number): Pick<StageWork, 'inherits'> {
  const planned = plan.stages[index];
  // Of a long chain each stage has many before it: they are looked for only where one can have kept something.
  if (planned === undefined || !keepsFiles(plan)) return {};
  const { workspace, artifacts } = planned.definition;
  const sources =
    artifacts?.from?.map((name) => plan.indexOf.get(name) ?? -1) ??
    (workspace === 'fresh' ? planned.dependencies : [...ancestorsOf(plan, index)]);
  const rankOf = ranksOf(plan);
  const inherits = sources
    .toSorted((a, b) => (rankOf[a] ?? -1) - (rankOf[b] ?? -1))
    .flatMap((source) => {
      const stage = run.stages.get(source);
      if (stage?.artifacts === undefined) return [];
      const { manifest, files, bytes, run: keptIn } = stage.artifacts;
      return [{ stage: stage.name, manifest, files, bytes, ...(keptIn === undefined ? {} : { run: keptIn }) }];
    });
  return inherits.length === 0 ? {} : { inherits };
}

const keeping = new WeakMap<Plan, boolean>();

/** Whether any of its stages is to keep files. */
function keepsFiles(plan: Plan): boolean {
  let keeps = keeping.get(plan);
  if (keeps === undefined) {
    keeps = plan.stages.some(({ definition }) => definition.artifacts !== undefined);
    keeping.set(plan, keeps);
  }
  return keeps;
}

/** `INPUT_<NAME>` for every input of the pipeline. A stage of an extension has those of the extension instead. */
function inputEnvironment(
  { inputs }: RunState,
  { definition }: Plan,
  text: (value: string) => string,
): Record<string, string> {
  if (inputs === undefined) return {};
  return Object.fromEntries(
    (definition.inputs ?? []).map(({ name, variable }) => [variable, text(inputs[name] ?? '')]),
  );
}

/** A service's variables see what those of a stage see. */
function renderedPlace(
  place: PlaceDefinition<Template>,
  scope: ExpressionScope,
  counted: (text: string) => string,
): PlaceDefinition<string> {
  const { services, ...rest } = place;
  if (services === undefined) return rest;
  const textOf = (template: Template): string => counted(renderTemplate(template, scope)).replaceAll('\0', '');
  return {
    ...rest,
    services: services.map(({ env, ...service }) => ({
      ...service,
      env: Object.fromEntries(Object.entries(env).map(([name, template]) => [name, textOf(template)])),
    })),
  };
}

/** What a stage may know of the push that it runs for, as data: a ref may be called `$(touch x)`. */
function originEnvironment({ repository, ref, commit, provider }: TriggerOrigin): Record<string, string> {
  const values = {
    SERVICE_REPOSITORY: repository,
    SERVICE_REF: ref,
    SERVICE_COMMIT: commit,
    SERVICE_PROVIDER: provider,
  };
  // NUL ends a variable for the operating system: it could not be passed at all.
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value.replaceAll('\0', '')]],
    ),
  );
}

/** The concurrency group of a new run, evaluated before it has any state; undefined: none. */
export function groupOf(run: Omit<RunState, 'group'>, plan: Plan): string | undefined {
  const template = plan.definition.concurrency?.group;
  if (template === undefined) return undefined;
  const group = renderTemplate(template, scopeOf(run, plan, -1, { success: true, failure: false }));
  return group === '' ? undefined : group;
}
