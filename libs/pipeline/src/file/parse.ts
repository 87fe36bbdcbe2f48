/**
 * YAML text to a checked and expanded pipeline, or to every problem of the file. Pure and total: no text makes it throw,
 * and nothing but the text decides what it answers.
 *
 * The order is that of growing cost: size and characters, lexical tokens (nesting, aliases), YAML, keys and values,
 * matrices, dependencies, names in expressions. Each step is bounded by what the step before has let through.
 */
import type { Generation, ParseResult, PipelineDefinition, ResolvedExtension, Template } from '../model/definition.ts';
import type { AddedBy } from '../model/generates.ts';
import { holdsNothing, isAddedTextOfSize, noStages, readAdded } from './added.ts';
import { readEnvironment } from './environment.ts';
import type { Environment } from './environment.ts';
import { expandPipeline } from './expand.ts';
import { ExtensionCatalog } from './extension-catalog.ts';
import type { StageReader } from './extension-use.ts';
import type { Lacking } from './expansion-budget.ts';
import { fieldOf, isNull, kindOf, readKeys } from './fields.ts';
import { readInputs } from './inputs.ts';
import { readLevel } from './level.ts';
import { readManifest } from './manifest.ts';
import { Problems } from '../text/problems.ts';
import { checkReferences } from './references.ts';
import { readConcurrency, readEngine, readOn, readPipelineKeys } from './settings.ts';
import { checkScheduleInputs, readSchedule } from './schedule.ts';
import type { ExpressionSite } from './template.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { TOP_KEYS } from './vocabulary.ts';
import { screenText } from '../yaml/yaml-screen.ts';
import { readYaml } from '../yaml/yaml-tree.ts';
import type { MapEntry, YamlNode } from '../yaml/yaml-tree.ts';

export interface ParseOptions {
  /** The text is the server's template: `${{ webhook.* }}` is known. */
  readonly template?: boolean | undefined;
  /** What each `uses` of the file, and of the extensions that it leads to, was resolved to. */
  readonly extensions?: readonly ResolvedExtension[] | undefined;
  /** Why a `uses` could not be resolved, by its text: said at its place. */
  readonly refusals?: ReadonlyMap<string, string> | undefined;
  /** `accept`: a `uses` that is not among `extensions` is no problem; its stages then have no commands. For checks without a server. */
  readonly unresolved?: 'refuse' | 'accept' | undefined;
  /** What cannot be had where the file is to run: a stage that asks for it is refused at that key. */
  readonly lacking?: Lacking | undefined;
  /** The text is what a stage adds to its run; absent: a pipeline file. */
  readonly added?: AddedBy | undefined;
  /** A run or a schedule has the text already, so it was good at a door: rules that have come since do not hold. */
  readonly standing?: boolean | undefined;
}

/** Reads a pipeline file. Diagnostics stand in the order of the file; there is at least one where `ok` is false. */
export function parsePipeline(text: string, options: ParseOptions = {}): ParseResult {
  const problems = new Problems();
  // A byte order mark is no part of the text, and its columns do not count it.
  const body = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const { added } = options;
  if (added !== undefined && holdsNothing(body)) return { ok: true, definition: noStages(added) };
  const isOfSize = added === undefined || isAddedTextOfSize(body, problems);
  const root = isOfSize && screenText(body, problems) ? readYaml(body, problems) : undefined;
  const definition =
    root === undefined
      ? undefined
      : added === undefined
        ? readPipeline(root, body, options, problems)
        : readAdded(root, readerOf(body, options, problems), added, options);
  if (definition !== undefined && problems.count === 0) return { ok: true, definition };
  return { ok: false, diagnostics: problems.diagnostics(body) };
}

function readerOf(text: string, options: ParseOptions, problems: Problems): StageReader {
  const extensions = new ExtensionCatalog(options.extensions ?? [], {
    acceptsUnresolved: options.unresolved === 'accept',
    isOfRun: options.added !== undefined,
    refusals: options.refusals,
    standing: options.standing,
    read: readManifest,
  });
  return { text, problems, extensions };
}

function readPipeline(
  root: YamlNode,
  text: string,
  options: ParseOptions,
  problems: Problems,
): PipelineDefinition | undefined {
  if (root.kind !== 'map') {
    problems.add(
      root,
      '',
      isNull(root) ? 'the file is empty' : `a pipeline file is a map with 'pipeline' and 'stages', not ${kindOf(root)}`,
    );
    return undefined;
  }
  const reader = readerOf(text, options, problems);
  const keys = readKeys(root, TOP_KEYS, 'at the top of the file', '', problems);
  const top = { start: root.start, end: root.start + 1 };
  const sites: ExpressionSite[] = [];
  const read = <Value>(key: (typeof TOP_KEYS)[number], use: (entry: MapEntry) => Value): Value | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : use(entry);
  };
  if (!keys.has('pipeline'))
    problems.add(top, 'pipeline', "'pipeline.name' is missing", 'write pipeline: {name: …} at the top of the file');
  if (!keys.has('stages'))
    problems.add(top, 'stages', "'stages' is missing", "it is a map of names to stages, each with a 'run'");
  const engine = read('engine', (entry) => readEngine(fieldOf(entry, '', problems)));
  const named = read('pipeline', (entry) => readPipelineKeys(fieldOf(entry, '', problems)));
  const on = read('on', (entry) => readOn(fieldOf(entry, '', problems)));
  const schedule = read('schedule', (entry) => readSchedule(fieldOf(entry, '', problems))) ?? [];
  const inputs =
    read('inputs', (entry) => readInputs(fieldOf(entry, '', problems), PIPELINE_LIMITS.pipelineInputsMax)) ?? [];
  checkScheduleInputs(schedule, inputs, problems);
  const env: Environment =
    read('env', (entry) => readEnvironment(fieldOf(entry, '', problems), 'top-env', reader, sites)) ??
    new Map<string, Template>();
  const concurrency = read('concurrency', (entry) => readConcurrency(fieldOf(entry, '', problems), reader, sites));
  const level = readLevel(keys.get('stages'), env, reader);
  if (level === undefined) return undefined;
  checkReferences({ ...level, inputs, template: options.template === true, problems }, sites);
  if (problems.count > 0 || named?.name === undefined) return undefined;
  const stages = expandPipeline(level, problems, options);
  return {
    name: named.name,
    ...(named.description === undefined ? {} : { description: named.description }),
    ...(engine === undefined ? {} : { engine }),
    ...(on === undefined ? {} : { on }),
    ...(inputs.length === 0 ? {} : { inputs }),
    schedule: schedule.map(({ line }) => line),
    ...(concurrency === undefined ? {} : { concurrency }),
    stages,
    ...(stages.some(({ generates }) => generates !== undefined) ? { generation: generationOf(env, options) } : {}),
  };
}

function generationOf(env: Environment, { extensions = [] }: ParseOptions): Generation {
  const record = Object.create(null) as Record<string, Template>;
  for (const [name, template] of env) record[name] = template;
  return { env: record, extensions };
}
