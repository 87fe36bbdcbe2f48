/**
 * The manifest of an extension, `extension.yaml`: who it is, what it takes and gives, and the command or the stages that
 * it is made of, in the vocabulary of a pipeline. Read by the same rules, with every problem's line and column.
 */
import type { ExtensionBody, ExtensionManifest, OutputDefinition } from './drafts.ts';
import type { Diagnostic, Template } from '../model/definition.ts';
import { readEnvironment } from './environment.ts';
import { expandExtension } from './expand.ts';
import { ExtensionCatalog } from './extension-catalog.ts';
import { fieldOf, isNull, kindOf, readKeys, readMap, readScalar } from './fields.ts';
import type { Field } from './fields.ts';
import { readDescription, readInputs, valueNameFault } from './inputs.ts';
import { readLevel } from './level.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { Problems } from '../text/problems.ts';
import { checkReferences } from './references.ts';
import type { ReferenceContext, Root } from './references.ts';
import { readPlace, imageSecretSpans } from './place.ts';
import { readOutputs, readRun, readShell } from './stage.ts';
import { readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import { utf8Length } from '../text/text-position.ts';
import { extensionIdFault, usesOf } from './uses.ts';
import { MANIFEST_KEYS, OUTPUT_KEYS } from './vocabulary.ts';
import { screenText } from '../yaml/yaml-screen.ts';
import { readYaml } from '../yaml/yaml-tree.ts';
import type { YamlNode } from '../yaml/yaml-tree.ts';

export type ManifestResult =
  | { readonly ok: true; readonly manifest: ExtensionManifest }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

/** https://semver.org, its own expression. */
const VERSION =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;
const VERSION_LENGTH_MAX = 64;
const RUN_ROOTS: readonly Root[] = ['inputs', 'env', 'run', 'pipeline'];
const STAGES_ROOTS: readonly Root[] = ['inputs', 'env', 'run', 'pipeline', 'stages', 'matrix'];

/**
 * Reads a manifest by itself: the extensions that it uses need not be known. Never throws; diagnostics stand in the order
 * of the file, and there is at least one where `ok` is false.
 */
export function parseManifest(text: string): ManifestResult {
  const catalog = new ExtensionCatalog([], { acceptsUnresolved: true, read: readManifest });
  const read = readText(text, catalog, (body, problems) => expandExtension(body, problems));
  if ('diagnostics' in read) return { ok: false, diagnostics: read.diagnostics };
  const { id, version, description, inputs, outputs, form, uses } = read.body;
  return { ok: true, manifest: { id, version, description, inputs, outputs, form, uses } };
}

type Read = { readonly body: ExtensionBody } | { readonly diagnostics: readonly Diagnostic[] };

/** Reads a manifest together with those of the extensions that it uses. */
export function readManifest(text: string, extensions: ExtensionCatalog): Read {
  return readText(text, extensions, () => {});
}

/** `check` looks for what only shows when the stages are made, such as a label that is none: authors see it, users need not pay for it. */
function readText(
  text: string,
  extensions: ExtensionCatalog,
  check: (body: ExtensionBody, problems: Problems) => void,
): Read {
  const problems = new Problems();
  const body = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const root = isOfSize(body, problems) && screenText(body, problems) ? readYaml(body, problems) : undefined;
  const read = root === undefined ? undefined : readRoot(root, body, extensions, problems);
  if (read !== undefined && problems.count === 0) check(read, problems);
  return read !== undefined && problems.count === 0 ? { body: read } : { diagnostics: problems.diagnostics(body) };
}

function isOfSize(text: string, problems: Problems): boolean {
  if (utf8Length(text, PIPELINE_LIMITS.manifestBytesMax) <= PIPELINE_LIMITS.manifestBytesMax) return true;
  problems.add(
    { start: 0, end: 0 },
    '',
    `the manifest is larger than ${PIPELINE_LIMITS.manifestBytesMax / 1024} KiB`,
    'put scripts into files of the package',
  );
  return false;
}

function readRoot(
  root: YamlNode,
  text: string,
  extensions: ExtensionCatalog,
  problems: Problems,
): ExtensionBody | undefined {
  if (root.kind !== 'map') {
    problems.add(
      root,
      '',
      isNull(root)
        ? 'the file is empty'
        : `a manifest is a map with 'id', 'version' and 'description', not ${kindOf(root)}`,
    );
    return undefined;
  }
  const reader = { text, problems, extensions };
  const keys = readKeys(root, MANIFEST_KEYS, 'in the manifest', '', problems);
  const top = { start: root.start, end: root.start + 1 };
  const field = (key: (typeof MANIFEST_KEYS)[number]): Field | undefined => {
    const entry = keys.get(key);
    return entry === undefined ? undefined : fieldOf(entry, '', problems);
  };
  for (const key of ['id', 'version', 'description'] as const)
    if (!keys.has(key)) problems.add(top, key, `'${key}' is missing`);
  const [id, version, description] = [field('id'), field('version'), field('description')];
  const [inputField, outputField, env] = [field('inputs'), field('outputs'), field('env')];
  const [run, shellField, stages] = [field('run'), field('shell'), field('stages')];
  if (run === undefined && stages === undefined) problems.add(top, '', "the manifest has neither 'run' nor 'stages'");
  if (run !== undefined && stages !== undefined)
    problems.add(
      keys.get('stages')?.keySpan ?? top,
      'stages',
      "'run' and 'stages' cannot stand together",
      'make the command a stage',
    );
  if (stages !== undefined && shellField !== undefined)
    problems.add(keys.get('shell')?.keySpan ?? top, 'shell', "'shell' belongs to 'run'; each stage has its own");
  const sites: ExpressionSite[] = [];
  const shell = shellField === undefined ? undefined : readShell(shellField);
  const variables = env === undefined ? new Map<string, Template>() : readEnvironment(env, 'top-env', reader, sites);
  const inputs = inputField === undefined ? [] : readInputs(inputField, PIPELINE_LIMITS.inputsMax);
  const outputs =
    outputField === undefined ? NO_OUTPUTS : readOutputDefinitions(outputField, run === undefined, reader, sites);
  const named = {
    id: id === undefined ? '' : readId(id),
    version: version === undefined ? '' : readVersion(version),
    description: description === undefined ? '' : readAbout(description),
  };
  const commands = run === undefined ? [] : (readRun(run, { shell, numbers: new Set() }, reader, sites) ?? []);
  const place = readPlace(keys, '', reader, sites);
  const [placed] = place.keys;
  if (stages !== undefined && placed !== undefined)
    problems.add(placed[1], placed[0], `'${placed[0]}' belongs to 'run'; each stage has its own`);
  const level =
    run === undefined && stages !== undefined ? readLevel(keys.get('stages'), variables, reader) : undefined;
  for (const { secretsSpan, path } of level?.drafts ?? [])
    if (secretsSpan !== undefined)
      problems.add(
        secretsSpan,
        `${path}.secrets`,
        "an extension names no secrets: a stage that uses it says under 'secrets' what it gets",
        "say in the 'description' which variables are to be given",
      );
  for (const span of [place, ...(level?.drafts ?? []).map((draft) => draft.place)].flatMap(imageSecretSpans))
    problems.add(
      span,
      'image.auth',
      "an extension names no secrets, also not for an image: 'auth' belongs to the stage that uses it",
    );
  for (const { quarantineSpan, path } of level?.drafts ?? [])
    if (quarantineSpan !== undefined)
      problems.add(
        quarantineSpan,
        `${path}.quarantine`,
        'an extension has no quarantine: it is for a pipeline to say, at the stage that uses the extension',
      );
  for (const { approvalSpan, path } of level?.drafts ?? [])
    if (approvalSpan !== undefined)
      problems.add(
        approvalSpan,
        `${path}.approval`,
        'an extension has no gates: who may approve stands in the pipeline file',
        "a stage of that file with 'approval' comes before the one that uses it",
      );
  for (const { generatesSpan, path } of level?.drafts ?? [])
    if (generatesSpan !== undefined)
      problems.add(
        generatesSpan,
        `${path}.generates`,
        'an extension made of stages adds none to a run: what is to run stands in its manifest',
        "a stage of a pipeline file may say 'generates' beside 'uses' where the extension is a command",
      );
  for (const { idTokensSpan, path } of level?.drafts ?? [])
    if (idTokensSpan !== undefined)
      problems.add(
        idTokensSpan,
        `${path}.id_token`,
        "an extension asks for no id tokens: a stage that uses it says under 'id_token' what it gets",
        "say in the 'description' which variables are to be given",
      );
  const context: ReferenceContext = {
    ...(level ?? { ...EMPTY_LEVEL, env: variables }),
    template: false,
    inputs,
    extension: { roots: run === undefined ? STAGES_ROOTS : RUN_ROOTS },
    problems,
  };
  checkReferences(context, sites);
  return {
    ...named,
    inputs,
    outputs: outputs.definitions,
    form: run === undefined ? 'stages' : 'run',
    uses: usesOf(text),
    env: variables,
    commands,
    shell,
    place,
    level,
    values: outputs.values,
  };
}

const EMPTY_LEVEL: Pick<ReferenceContext, 'drafts' | 'names' | 'graph'> = {
  drafts: [],
  names: { byFullName: new Map(), byName: new Map(), draftOf: [], firstOf: [], countOf: [], fullNames: [] },
  graph: { after: [], order: [] },
};

function readId(field: Field): string {
  const node = readScalar(field, 'the id of the extension, <category>/<name>');
  if (node === undefined) return '';
  const fault = extensionIdFault(node.text);
  if (fault !== undefined) field.problems.add(node, field.path, fault.message, fault.suggestion);
  return node.text;
}

function readVersion(field: Field): string {
  const node = readScalar(field, 'a version such as 1.0.0');
  if (node === undefined) return '';
  if (VERSION.test(node.text) && node.text.length <= VERSION_LENGTH_MAX) return node.text;
  const short = /^v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?$/.exec(node.text);
  field.problems.add(
    node,
    field.path,
    `${quoted(node.text)} is not a version as of semver.org: MAJOR.MINOR.PATCH`,
    short === null
      ? undefined
      : `did you mean '${Number(short[1])}.${Number(short[2] ?? 0)}.${Number(short[3] ?? 0)}'?`,
  );
  return node.text;
}

function readAbout(field: Field): string {
  const text = readDescription(field);
  if (text === '' && field.node.kind === 'scalar' && !isNull(field.node))
    field.problems.add(
      field.node,
      field.path,
      "'description' must not be empty",
      'one line that says what the extension does',
    );
  return text;
}

interface Outputs {
  readonly definitions: readonly OutputDefinition[];
  readonly values: ReadonlyMap<string, Template>;
}

const NO_OUTPUTS: Outputs = { definitions: [], values: new Map() };

/** A list of names, or a map of names to `description` and, where the extension is made of stages, `value`. */
function readOutputDefinitions(
  field: Field,
  needsValues: boolean,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Outputs {
  const { node, problems, path } = field;
  if (node.kind !== 'map') {
    const names = readOutputs(field) ?? [];
    if (needsValues && names.length > 0)
      problems.add(
        node,
        path,
        "an extension with 'stages' says where each output comes from",
        "outputs: {version: {value: '${{ stages.build.outputs.version }}'}}",
      );
    return { definitions: names.map((name) => ({ name, description: '' })), values: new Map() };
  }
  if (node.entries.length > PIPELINE_LIMITS.outputsMax)
    problems.add(node, path, `'outputs' has more than ${PIPELINE_LIMITS.outputsMax} entries`);
  const definitions: OutputDefinition[] = [];
  const values = new Map<string, Template>();
  for (const entry of node.entries.slice(0, PIPELINE_LIMITS.outputsMax)) {
    const fault = valueNameFault(entry.key, 'an output');
    if (fault !== undefined) problems.add(entry.keySpan, path, fault);
    const inner = fieldOf(entry, path, problems);
    const map = isNull(entry.value) ? undefined : readMap(inner, "a map with 'description' or 'value'");
    const keys =
      map === undefined
        ? new Map<string, never>()
        : readKeys(map, OUTPUT_KEYS, `in output ${quoted(entry.key)}`, inner.path, problems);
    const [description, value] = [keys.get('description'), keys.get('value')];
    definitions.push({
      name: entry.key,
      description: description === undefined ? '' : readDescription(fieldOf(description, inner.path, problems)),
    });
    if (value === undefined) {
      if (needsValues)
        problems.add(
          entry.keySpan,
          inner.path,
          `the output ${quoted(entry.key)} has no 'value'`,
          "such as '${{ stages.build.outputs.version }}'",
        );
      continue;
    }
    if (!needsValues)
      problems.add(
        value.keySpan,
        inner.path,
        "'value' belongs to extensions with 'stages'",
        'write the output to the file $SERVICE_OUTPUT',
      );
    const scalar = readScalar(fieldOf(value, inner.path, problems), 'a text');
    if (scalar !== undefined)
      values.set(entry.key, readTemplate(scalar, 'output', `${inner.path}.value`, reader, sites));
  }
  return { definitions, values };
}
