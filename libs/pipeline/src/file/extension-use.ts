/** Reads `uses` and `with` of a stage: which extension it is, and what its inputs are given. */
import type { LoadedExtension, StageUse } from './drafts.ts';
import type { InputDefinition, Template } from '../model/definition.ts';
import { renderTemplate } from '../expressions/evaluate.ts';
import type { ExtensionCatalog } from './extension-catalog.ts';
import { fieldOf, joinPath, readMap, readScalar } from './fields.ts';
import { inputFault, notAValue, noteUnknownInput } from './inputs.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { Matrix } from './matrix.ts';
import { quoted } from '../text/printable.ts';
import { hasExpression, readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite } from './template.ts';
import { utf8Length } from '../text/text-position.ts';
import { EXTENSION_DECIDES } from './vocabulary.ts';
import type { MapEntry } from '../yaml/yaml-tree.ts';

/** What reading a stage needs to know of the file. */
export interface StageReader extends ExpressionReader {
  readonly extensions: ExtensionCatalog;
}

/** Which of the extension's stages they would be for is not said. */
const NOT_BESIDE_STAGES = [
  ['artifacts', 'keep the files by a stage of your own behind it'],
  ['reports', 'keep the files by a stage of your own behind it'],
  ['cache', 'it belongs to the stages of the extension, in its manifest'],
  ['generates', 'add the stages by a stage of your own behind it'],
] as const;

/** The extension of a stage; undefined where it has none. */
export function readUse(
  keys: ReadonlyMap<string, MapEntry>,
  path: string,
  matrix: Matrix | undefined,
  reader: StageReader,
  sites: ExpressionSite[],
): StageUse | undefined {
  const { problems } = reader;
  const [uses, given] = [keys.get('uses'), keys.get('with')];
  if (uses === undefined) {
    if (given !== undefined)
      problems.add(
        given.keySpan,
        `${path}.with`,
        "'with' stands without 'uses'",
        keys.has('run') ? "variables for a command go under 'env'" : undefined,
      );
    return undefined;
  }
  for (const key of EXTENSION_DECIDES) {
    const entry = keys.get(key);
    if (entry !== undefined)
      problems.add(
        entry.keySpan,
        `${path}.${key}`,
        `'${key}' cannot stand beside 'uses': the extension decides it`,
        key === 'run' ? 'make a stage of its own of the command' : undefined,
      );
  }
  const extension = findExtension(uses, path, reader);
  const values = given === undefined ? new Map<string, Given>() : readValues(given, path, reader, sites);
  if (extension === undefined) return { extension, inputs: new Map() };
  for (const [key, remedy] of NOT_BESIDE_STAGES) {
    const entry = keys.get(key);
    if (entry !== undefined && extension.body.level !== undefined)
      problems.add(
        entry.keySpan,
        `${path}.${key}`,
        `'${key}' cannot stand beside an extension that has stages of its own`,
        remedy,
      );
  }
  const inputs = new Map<string, Template>();
  // Whose value is at fault was given one all the same.
  const names = new Set(given?.value.kind === 'map' ? given.value.entries.map(({ key }) => key) : []);
  for (const [name, { entry }] of values) {
    if (!extension.body.inputs.some((input) => input.name === name))
      noteUnknownInput(entry, extension.body.inputs, `extension ${quoted(extension.id)}`, `${path}.with`, problems);
  }
  for (const input of extension.body.inputs) {
    const value = values.get(input.name);
    if (value !== undefined) checkValue(input, value, matrix, `${path}.with`, reader);
    else if (input.required && !names.has(input.name))
      problems.add(
        uses.value,
        `${path}.with`,
        `extension ${quoted(extension.id)} needs the input ${quoted(input.name)}`,
        `add 'with: {${input.name}: …}'`,
      );
    inputs.set(input.name, value?.template ?? [input.default ?? '']);
  }
  return { extension, inputs };
}

function findExtension(
  uses: MapEntry,
  path: string,
  { extensions, problems }: StageReader,
): LoadedExtension | undefined {
  const field = fieldOf(uses, path, problems);
  const node = readScalar(field, 'an extension such as build/node@^1');
  if (node === undefined) return undefined;
  if (hasExpression(node.text)) {
    problems.add(
      node,
      field.path,
      "'uses' cannot hold an expression: which extension runs is known before the run begins",
    );
    return undefined;
  }
  const found = extensions.find(node.text);
  if ('fault' in found) problems.add(node, field.path, found.fault.message, found.fault.suggestion);
  return 'extension' in found ? found.extension : undefined;
}

interface Given {
  readonly entry: MapEntry;
  readonly template: Template;
  readonly sites: readonly ExpressionSite[];
}

function readValues(given: MapEntry, path: string, reader: StageReader, sites: ExpressionSite[]): Map<string, Given> {
  const values = new Map<string, Given>();
  const { problems } = reader;
  const field = fieldOf(given, path, problems);
  const map = readMap(field, 'a map of inputs to values');
  for (const entry of map?.entries ?? []) {
    const { key, value } = entry;
    const fault = notAValue(value);
    const valuePath = joinPath(field.path, key);
    if (fault !== undefined || value.kind !== 'scalar') {
      problems.add(
        value,
        valuePath,
        `the input ${quoted(key)} must be a text, a number or a boolean, not ${fault ?? 'that'}`,
        fault === 'empty' ? `write ${key}: '' for an empty text` : undefined,
      );
    } else if (utf8Length(value.text, PIPELINE_LIMITS.envValueBytesMax) > PIPELINE_LIMITS.envValueBytesMax) {
      problems.add(
        value,
        valuePath,
        `the value of ${quoted(key)} is longer than ${PIPELINE_LIMITS.envValueBytesMax / 1024} KiB`,
      );
    } else {
      const own: ExpressionSite[] = [];
      values.set(key, { entry, template: readTemplate(value, 'with', valuePath, reader, own), sites: own });
      sites.push(...own);
    }
  }
  return values;
}

/** A value that is known before the run is of the input's type; one that a matrix gives, in each of its combinations. */
function checkValue(
  input: InputDefinition,
  { entry, template, sites }: Given,
  matrix: Matrix | undefined,
  path: string,
  { problems }: StageReader,
): void {
  const note = (text: string, cell: string): void => {
    const fault = inputFault(input, text);
    if (fault !== undefined)
      problems.add(
        entry.value,
        joinPath(path, input.name),
        `the input ${quoted(input.name)} ${fault.message}${cell}`,
        fault.suggestion,
      );
  };
  if (template.length === 0) {
    // Either an empty text, or expressions that were at fault.
    if (entry.value.kind === 'scalar' && entry.value.text === '') note('', '');
  } else if (template.every((part) => typeof part === 'string')) note(template.join(''), '');
  else if (
    matrix !== undefined &&
    sites.every(
      ({ parsed }) => parsed.calls.length === 0 && parsed.paths.every(({ path: [root] }) => root === 'matrix'),
    )
  ) {
    for (const { name, values } of matrix.cells) {
      const scope = {
        stages: {},
        matrix: Object.fromEntries(values),
        env: {},
        run: {},
        pipeline: {},
        webhook: {},
        inputs: {},
        success: true,
        failure: false,
      };
      note(renderTemplate(template, scope), ` (in ${quoted(name)})`);
    }
  }
}
