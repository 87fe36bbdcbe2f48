/** A CI file of another engine as a pipeline file of ours, with a list of what could not be translated. */
import { parsePipeline, type Diagnostic } from '@penstock/pipeline';
import { assertFewStages, assertSmall, draftText, nameApart, newStage, type Draft, type DraftStage } from './draft.ts';
import { fromGithub } from './github/github.ts';
import { fromGitlab } from './gitlab/gitlab.ts';
import { countEntries, Ledger, type Note } from './ledger.ts';
import { missing } from './shell-text.ts';
import { readSource, UnreadableSource, type SourceMap } from './source.ts';
import { fromWoodpecker } from './woodpecker/woodpecker.ts';

export const FORMATS = ['github', 'gitlab', 'woodpecker'] as const;
export type Format = (typeof FORMATS)[number];

export interface Migration {
  readonly format: Format;
  /** The pipeline file. */
  readonly text: string;
  /** What it does not say, by the lines of the file that was translated. */
  readonly notes: readonly Note[];
  /** Keys of the file; those about which there is no note. */
  readonly keys: number;
  readonly translated: number;
  /** Why the pipeline file would be refused; empty but for files that nobody has thought of. */
  readonly problems: readonly Diagnostic[];
}

const NAMES: Readonly<Record<Format, string>> = {
  github: 'GitHub Actions',
  gitlab: 'GitLab CI',
  woodpecker: 'Woodpecker',
};
const TRANSLATORS: Readonly<Record<Format, (root: SourceMap, ledger: Ledger, name: string) => Draft>> = {
  github: fromGithub,
  gitlab: fromGitlab,
  woodpecker: fromWoodpecker,
};
const REPAIRS_MAX = 40;
/** Of a name in the path of a problem, which may be shortened. */
const SHOWN_MAX = 60;
const UNTRANSLATED = missing('the script');

/**
 * `file` is the path as it was named, by which a format is known and a pipeline is called that has no name.
 *
 * @throws UnreadableSource where the text is no YAML, over 1 MiB, or of no format that is known
 */
export function migrate(
  text: string,
  { file, format: said }: { readonly file: string; readonly format?: Format | undefined },
): Migration {
  const root = readSource(text);
  const format = said ?? formatOf(root, file);
  if (format === undefined)
    throw new UnreadableSource(
      'it looks like no workflow of GitHub Actions, GitLab CI or Woodpecker; say which one it is',
    );
  const keys = countEntries(root);
  const ledger = new Ledger();
  const draft = TRANSLATORS[format](root, ledger, nameOf(file, format));
  ledger.tellRest(root);
  if (draft.stages.length === 0) throw new UnreadableSource(`it has no ${format === 'woodpecker' ? 'steps' : 'jobs'}`);
  assertFewStages(draft.stages.length);
  assertSmall(draft);
  nameStagesApart(draft);
  dropUnknownBefore(draft, ledger);
  const problems = repaired(draft, ledger);
  const { notes } = ledger;
  const heading = [
    `Translated from ${NAMES[format]} by 'penstock migrate'.`,
    ...(notes.length === 0
      ? []
      : [`${notes.length} thing${notes.length === 1 ? '' : 's'} could not be translated; the command lists them.`]),
  ];
  return {
    format,
    text: draftText(draft, heading),
    notes,
    keys,
    translated: Math.max(0, keys - notes.length),
    problems,
  };
}

/** Steps may be called alike; stages may not. */
function nameStagesApart(draft: Draft): void {
  const names = new Set<string>();
  for (const stage of draft.stages) {
    stage.name = nameApart(stage.name, names);
    names.add(stage.name);
  }
}

/** A stage can only come after one that is there. */
function dropUnknownBefore(draft: Draft, ledger: Ledger): void {
  const names = new Set(draft.stages.map(({ name }) => name));
  for (const stage of draft.stages) {
    for (const name of stage.after)
      if (!names.has(name)) ledger.tell(1, `'${stage.name}' after '${name}', which is not in the file`);
    stage.after = stage.after.filter((name) => names.has(name));
    stage.artifacts.from = stage.artifacts.from.filter((name) => names.has(name));
  }
}

function formatOf(root: SourceMap, file: string): Format | undefined {
  const keys = new Set(root.entries.map(({ key }) => key));
  if (keys.has('jobs') && keys.has('on')) return 'github';
  if (keys.has('steps') || keys.has('pipeline')) return 'woodpecker';
  if (/gitlab-ci/.test(file) || keys.has('include')) return 'gitlab';
  if (/woodpecker|drone/.test(file)) return undefined;
  const hasScript = root.entries.some(
    ({ value }) =>
      value.kind === 'map' && value.entries.some(({ key }) => ['script', 'extends', 'trigger'].includes(key)),
  );
  return hasScript ? 'gitlab' : undefined;
}

function nameOf(file: string, format: Format): string {
  const base = (file.split(/[\\/]/).pop() ?? '').replace(/\.ya?ml$/i, '').replace(/^\./, '');
  return base === '' || base === '-' || /^(gitlab-ci|woodpecker)$/.test(base) ? `from ${NAMES[format]}` : base;
}

/**
 * Takes out what our own parser refuses, and tells it: an expression for a program that must not get one, a comparison that can
 * never be true. What is left at the end is returned.
 */
function repaired(draft: Draft, ledger: Ledger): readonly Diagnostic[] {
  for (let count = 0; ; count++) {
    const result = parsePipeline(draftText(draft, []));
    if (result.ok) return [];
    const [first] = result.diagnostics;
    if (first === undefined || count >= REPAIRS_MAX || !takenOut(draft, first, ledger)) return result.diagnostics;
  }
}

function takenOut(draft: Draft, { path, message }: Diagnostic, ledger: Ledger): boolean {
  const stage = draft.stages
    .filter(({ name }) => path.startsWith(`stages.${name.slice(0, SHOWN_MAX)}`))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
  const tell = (what: string): true => {
    ledger.tell(1, `${what}: ${message}`);
    return true;
  };
  if (stage !== undefined) {
    const shown = path.slice('stages.'.length);
    const rest = (shown.startsWith(stage.name) ? shown.slice(stage.name.length) : shown.slice(shown.indexOf('…') + 1))
      .split('.')
      .filter(Boolean);
    return partTakenOut(stage, rest, tell) || replaced(draft, stage, tell);
  }
  const [first = '', second = ''] = path.split('.');
  if (first === 'env') return variablesTakenOut(draft.env, second, '', tell);
  if (first === 'inputs' && Object.keys(draft.inputs).length > 0) {
    const named = Object.keys(draft.inputs).includes(second) ? [second] : Object.keys(draft.inputs);
    for (const name of named) delete draft.inputs[name];
    return tell(`the inputs ${named.join(', ')}`);
  }
  if (first.startsWith('schedule') && draft.schedules.length > 0) {
    draft.schedules = [];
    return tell('the schedules');
  }
  if (first === 'concurrency' && draft.concurrency !== undefined) {
    draft.concurrency = undefined;
    return tell('the concurrency group');
  }
  if (first === 'on' && draft.hasOn) {
    draft.hasOn = false;
    return tell('what starts the pipeline');
  }
  return false;
}

function partTakenOut(
  stage: DraftStage,
  [part = '', name = '']: readonly string[],
  tell: (what: string) => true,
): boolean {
  const of = `of '${stage.name}'`;
  const key = part.replace(/\[.*$/, '');
  if (key === 'after' && stage.after.length > 0) {
    stage.after = [];
    failItself(stage, 'what comes before');
    return tell(`what '${stage.name}' comes after`);
  }
  if (key === 'when' && stage.when !== undefined) {
    stage.when = undefined;
    failItself(stage, 'the condition');
    return tell(`the condition ${of}`);
  }
  if (key === 'env') return variablesTakenOut(stage.env, name, ` ${of}`, tell);
  if (key === 'secrets' && Object.keys(stage.secrets).length > 0) {
    stage.secrets = {};
    return tell(`the secrets ${of}`);
  }
  if (key === 'cache' && stage.caches.length > 0) {
    stage.caches = [];
    return tell(`the cache ${of}`);
  }
  if (key === 'artifacts') {
    stage.artifacts = { paths: [], from: [] };
    return tell(`the artifacts ${of}`);
  }
  if (key === 'services' && Object.keys(stage.services).length > 0) {
    const named = Object.hasOwn(stage.services, name) ? [name] : Object.keys(stage.services);
    for (const service of named) delete stage.services[service];
    return tell(`the services ${named.join(', ')} ${of}`);
  }
  if (key === 'run' && stage.run[0] !== UNTRANSLATED) {
    stage.run = [UNTRANSLATED];
    return tell(`the script ${of}`);
  }
  if (key === 'image' && stage.image !== undefined) {
    stage.image = undefined;
    return tell(`the image ${of}`);
  }
  if (key === 'matrix' && stage.matrix !== undefined) {
    if (stage.matrix.exclude.length > 0) stage.matrix.exclude = [];
    else stage.matrix = undefined;
    return tell(`the matrix ${of}`);
  }
  for (const [own, unset] of [
    ['timeout', () => (stage.timeout = undefined)],
    ['retry', () => (stage.retry = undefined)],
    ['workdir', () => (stage.workdir = undefined)],
    ['runs_on', () => (stage.runsOn = [])],
    ['outputs', () => (stage.outputs = [])],
    ['reports', () => (stage.reports = [])],
    ['id_token', () => (stage.idTokens = [])],
  ] as const)
    if (own === key) {
      unset();
      return tell(`${key} ${of}`);
    }
  return false;
}

/** What says when a stage runs is gone: it is not to run by mistake (CONDITION-2). A gate asks somebody, whenever that is. */
function failItself(stage: DraftStage, what: string): void {
  if (stage.approval === undefined && stage.run[0] !== UNTRANSLATED) stage.run.unshift(missing(what));
}

/** The one that is named; else those with names or expressions that cannot stand. */
function variablesTakenOut(
  env: Record<string, string>,
  name: string,
  of: string,
  tell: (what: string) => boolean,
): boolean {
  const names = Object.hasOwn(env, name)
    ? [name]
    : Object.keys(env).filter(
        (one) => one.length > SHOWN_MAX || !/^[A-Za-z_]\w*$/.test(one) || env[one]?.includes('${{') === true,
      );
  for (const one of names) delete env[one];
  return names.length > 0 && tell(`the variables ${names.join(', ')}${of}`);
}

/** The last resort: a stage that keeps its place and fails. */
function replaced(draft: Draft, stage: DraftStage, tell: (what: string) => true): boolean {
  if (stage.run[0] === UNTRANSLATED && Object.keys(stage.env).length === 0) return false;
  const stub = { ...newStage(stage.name), after: stage.after, when: stage.when, run: [UNTRANSLATED] };
  draft.stages[draft.stages.indexOf(stage)] = stub;
  return tell(`the stage '${stage.name}'`);
}
