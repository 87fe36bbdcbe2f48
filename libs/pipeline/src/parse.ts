/**
 * YAML text to a checked and expanded pipeline, or to every problem of the file. Pure and total: no text makes it throw,
 * and nothing but the text decides what it answers.
 *
 * The order is that of growing cost: size and characters, lexical tokens (nesting, aliases), YAML, keys and values,
 * matrices, dependencies, names in expressions. Each step is bounded by what the step before has let through.
 */
import type { ExpressionScope, ParseResult, PipelineDefinition, ResolvedExtension, StageDefinition, Template } from './definition.ts';
import { readEnvironment } from './environment.ts';
import type { Environment } from './environment.ts';
import { renderTemplate } from './evaluate.ts';
import { fieldOf, isNull, kindOf, readKeys, readMap } from './fields.ts';
import { linkStages, nameStages } from './graph.ts';
import type { Graph, StageNames } from './graph.ts';
import { PIPELINE_LIMITS } from './limits.ts';
import type { Cell } from './matrix.ts';
import { quoted } from './printable.ts';
import { Problems } from './problems.ts';
import { checkReferences } from './references.ts';
import { readConcurrency, readEngine, readOn, readPipelineKeys, readSchedule } from './settings.ts';
import { readStage } from './stage.ts';
import type { StageDraft } from './stage.ts';
import type { ExpressionSite } from './template.ts';
import { TOP_KEYS } from './vocabulary.ts';
import { screenText } from './yaml-screen.ts';
import { readYaml } from './yaml-tree.ts';
import type { MapEntry, YamlNode } from './yaml-tree.ts';

export interface ParseOptions {
  /** The text is the server's template: `${{ webhook.* }}` is known. */
  readonly template?: boolean | undefined;
  /** What each `uses` of the file, and of the extensions that it leads to, was resolved to. */
  readonly extensions?: readonly ResolvedExtension[] | undefined;
  /** `accept`: a `uses` that is not among `extensions` is no problem; its stages then have no commands. For checks without a server. */
  readonly unresolved?: 'refuse' | 'accept' | undefined;
}

/** Reads a pipeline file. Diagnostics stand in the order of the file; there is at least one where `ok` is false. */
export function parsePipeline(text: string, options: ParseOptions = {}): ParseResult {
  const problems = new Problems();
  // A byte order mark is no part of the text, and its columns do not count it.
  const body = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const root = screenText(body, problems) ? readYaml(body, problems) : undefined;
  const definition = root === undefined ? undefined : readPipeline(root, body, options.template === true, problems);
  if (definition !== undefined && problems.count === 0) return { ok: true, definition };
  return { ok: false, diagnostics: problems.diagnostics(body) };
}

function readPipeline(root: YamlNode, text: string, template: boolean, problems: Problems): PipelineDefinition | undefined {
  if (root.kind !== 'map') {
    problems.add(root, '', isNull(root) ? 'the file is empty' : `a pipeline file is a map with 'pipeline' and 'stages', not ${kindOf(root)}`);
    return undefined;
  }
  const reader = { text, problems };
  const keys = readKeys(root, TOP_KEYS, 'at the top of the file', '', problems);
  const top = { start: root.start, end: root.start + 1 };
  const sites: ExpressionSite[] = [];
  const read = <Value>(key: (typeof TOP_KEYS)[number], use: (entry: MapEntry) => Value): Value | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : use(entry);
  };
  if (!keys.has('pipeline')) problems.add(top, 'pipeline', "'pipeline.name' is missing");
  if (!keys.has('stages')) problems.add(top, 'stages', "'stages' is missing");
  const engine = read('engine', (entry) => readEngine(fieldOf(entry, '', problems)));
  const named = read('pipeline', (entry) => readPipelineKeys(fieldOf(entry, '', problems)));
  const on = read('on', (entry) => readOn(fieldOf(entry, '', problems)));
  const schedule = read('schedule', (entry) => readSchedule(fieldOf(entry, '', problems))) ?? [];
  const env: Environment = read('env', (entry) => readEnvironment(fieldOf(entry, '', problems), 'top-env', reader, sites)) ?? new Map<string, Template>();
  const concurrency = read('concurrency', (entry) => readConcurrency(fieldOf(entry, '', problems), reader, sites));
  const drafts = read('stages', (entry) => readStages(entry, reader)) ?? [];
  const names = nameStages(drafts, problems);
  if (names === undefined) return undefined;
  const graph = linkStages(drafts, names, problems);
  checkReferences({ drafts, names, graph, env, template, problems }, sites);
  if (problems.count > 0 || named?.name === undefined) return undefined;
  const stages = expandStages(drafts, names, graph, env, problems);
  return {
    name: named.name,
    ...(named.description === undefined ? {} : { description: named.description }),
    ...(engine === undefined ? {} : { engine }),
    ...(on === undefined ? {} : { on }),
    schedule,
    ...(concurrency === undefined ? {} : { concurrency }),
    stages,
  };
}

function readStages(entry: MapEntry, reader: { text: string; problems: Problems }): StageDraft[] {
  const map = readMap(fieldOf(entry, '', reader.problems), 'a map of stage names to stages');
  if (map === undefined) return [];
  if (map.entries.length === 0) reader.problems.add(map, 'stages', "'stages' has no stages");
  if (map.entries.length > PIPELINE_LIMITS.stagesMax) {
    const first = map.entries[PIPELINE_LIMITS.stagesMax];
    reader.problems.add(first?.keySpan ?? map, 'stages', `more than ${PIPELINE_LIMITS.stagesMax.toLocaleString('en')} stages`);
    return [];
  }
  const budget = { combinations: 0 };
  return map.entries.map((stage) => readStage(stage, reader, budget));
}

/** Replaces each draft by its stages. What all of them share is one object, so that a matrix of 256 costs little more than one stage. */
function expandStages(drafts: readonly StageDraft[], names: StageNames, graph: Graph, env: Environment, problems: Problems): StageDefinition[] {
  const stages: StageDefinition[] = [];
  const common = toRecord(env);
  const commonSize = sizeOf(env);
  let size = 0;
  for (const [index, draft] of drafts.entries()) {
    const cells: readonly (Cell | undefined)[] = draft.matrix?.cells ?? [undefined];
    const scripts = draft.commands.reduce((sum, command) => sum + command.script.length, 0);
    size += cells.length * (scripts + commonSize + sizeOf(draft.env));
    if (size > PIPELINE_LIMITS.definitionTextMax) {
      problems.add(draft.nameSpan, draft.path, `the scripts and variables of all stages are more than ${PIPELINE_LIMITS.definitionTextMax / 1024 / 1024} MiB after expansion`);
      return stages;
    }
    const after = (graph.after[index] ?? []).map((stage) => names.fullNames[stage] ?? '');
    const merged = draft.env.size === 0 ? common : toRecord(new Map([...env, ...draft.env]));
    for (const cell of cells) stages.push(expandStage(draft, cell, after, merged, problems));
  }
  return stages;
}

function expandStage(draft: StageDraft, cell: Cell | undefined, after: readonly string[], env: Readonly<Record<string, Template>>, problems: Problems): StageDefinition {
  const values = cell === undefined ? undefined : toRecord(cell.values);
  return {
    name: cell?.name ?? draft.name,
    after,
    ...(draft.when === undefined ? {} : { when: draft.when }),
    runsAfterFailure: draft.runsAfterFailure,
    commands: draft.commands,
    env,
    timeoutMs: draft.timeoutMs,
    retry: draft.retry,
    allowFailure: draft.allowFailure,
    ...(draft.workdir === undefined ? {} : { workdir: draft.workdir }),
    ...(draft.shell === undefined ? {} : { shell: draft.shell }),
    workspace: draft.workspace,
    runsOn: labelsOf(draft, values ?? {}, problems),
    outputs: draft.outputs,
    ...(draft.matrix === undefined || values === undefined
      ? {}
      : {
          matrix: {
            of: draft.name,
            values,
            ...(draft.matrix.maxParallel === undefined ? {} : { maxParallel: draft.matrix.maxParallel }),
            failFast: draft.matrix.failFast,
          },
        }),
  };
}

/** The labels with the cell's values filled in, sorted, each once. */
function labelsOf(draft: StageDraft, matrix: Readonly<Record<string, string>>, problems: Problems): string[] {
  if (draft.runsOn.length === 0) return [];
  const scope: ExpressionScope = { stages: {}, matrix, env: {}, run: {}, pipeline: {}, webhook: {}, success: true, failure: false };
  const labels = new Set<string>();
  for (const { template, span } of draft.runsOn) {
    const label = renderTemplate(template, scope);
    if (label.length > PIPELINE_LIMITS.labelLengthMax || !/^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$/.test(label)) {
      problems.add(span, `${draft.path}.runs_on`, `${quoted(label)} cannot be a label: 1 to ${PIPELINE_LIMITS.labelLengthMax} letters, digits, '_', '.', ':', '/' and '-'`);
    }
    labels.add(label);
  }
  return [...labels].toSorted();
}

function sizeOf(env: Environment): number {
  let size = 0;
  for (const [name, template] of env) for (const part of template) size += name.length + (typeof part === 'string' ? part.length : 50);
  return size;
}

/** An object without a prototype: names such as `__proto__` and `constructor` are data. */
function toRecord<Value>(entries: ReadonlyMap<string, Value>): Record<string, Value> {
  const record = Object.create(null) as Record<string, Value>;
  for (const [key, value] of entries) record[key] = value;
  return record;
}
