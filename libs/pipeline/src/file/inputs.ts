/** The inputs of a pipeline or an extension: what the file declares, and whether a value is of the declared type. */
import {
  fieldOf,
  isNull,
  kindOf,
  mustBe,
  readBoolean,
  readKeys,
  readList,
  readMap,
  readScalar,
  readWord,
} from './fields.ts';
import type { Field } from './fields.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { printable, quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';
import { hasExpression } from './template.ts';
import { utf8Length } from '../text/text-position.ts';
import { INPUT_KEYS, INPUT_TYPES } from './vocabulary.ts';
import type { InputDefinition, InputType } from '../model/definition.ts';
import type { MapEntry, MapNode } from '../yaml/yaml-tree.ts';

function inputVariable(name: string): string {
  return `INPUT_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** Why a text is no value of an input, as the end of a sentence, with a suggestion. */
export function inputFault(
  input: Pick<InputDefinition, 'type' | 'options'>,
  text: string,
): { readonly message: string; readonly suggestion?: string | undefined } | undefined {
  switch (input.type) {
    case 'string':
      return undefined;
    case 'number':
      return /^-?[0-9]{1,15}(\.[0-9]{1,15})?$/.test(text)
        ? undefined
        : { message: `must be a number, not ${quoted(text)}` };
    case 'boolean':
      if (text === 'true' || text === 'false') return undefined;
      return {
        message: `must be true or false, not ${quoted(text)}`,
        suggestion: /^(yes|on|y|1|true)$/i.test(text)
          ? 'did you mean true?'
          : /^(no|off|n|0|false)$/i.test(text)
            ? 'did you mean false?'
            : undefined,
      };
    case 'choice':
      if (input.options.includes(text)) return undefined;
      return {
        message: `must be one of ${input.options.slice(0, 10).map(quoted).join(', ')}${input.options.length > 10 ? ', …' : ''}, not ${quoted(text)}`,
        suggestion: didYouMean(text, input.options),
      };
  }
}

/** Reads `inputs` of a pipeline or a manifest. Problems are noted and their inputs left out. */
export function readInputs(field: Field, countMax: number): InputDefinition[] {
  const map = readMap(field, 'a map of names to inputs');
  if (map === undefined) return [];
  const { problems, path } = field;
  if (map.entries.length > countMax) {
    problems.add(map, path, `more than ${countMax} inputs`);
    return [];
  }
  const byVariable = new Map<string, string>();
  const inputs: InputDefinition[] = [];
  for (const entry of map.entries) {
    const fault = valueNameFault(entry.key, 'an input');
    if (fault !== undefined) problems.add(entry.keySpan, path, fault);
    const other = byVariable.get(inputVariable(entry.key));
    if (other !== undefined)
      problems.add(
        entry.keySpan,
        path,
        `the inputs ${quoted(other)} and ${quoted(entry.key)} would share the variable ${quoted(inputVariable(entry.key))}`,
      );
    byVariable.set(inputVariable(entry.key), entry.key);
    const input = readInput(entry, fieldOf(entry, path, problems));
    if (input !== undefined) inputs.push(input);
  }
  return inputs;
}

/** Names of inputs and outputs. */
export function valueNameFault(name: string, what: string): string | undefined {
  if (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) && name.length <= PIPELINE_LIMITS.inputNameLengthMax) return undefined;
  return `${quoted(name)} cannot be the name of ${what}: letters, digits, '_' and '-', no digit first`;
}

function readInput(entry: MapEntry, field: Field): InputDefinition | undefined {
  const base = { name: entry.key, variable: inputVariable(entry.key) };
  // `name:` with nothing after it: any text, not required.
  if (isNull(entry.value)) return { ...base, type: 'string', description: '', required: false, options: [] };
  const map = readMap(field, "a map with 'type'");
  if (map === undefined) return undefined;
  const { problems, path } = field;
  const keys = readKeys(map, INPUT_KEYS, `in input ${quoted(entry.key)}`, path, problems);
  const inner = (key: (typeof INPUT_KEYS)[number]): Field | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : fieldOf(found, path, problems);
  };
  const [typeField, required, description, defaultField] = [
    inner('type'),
    inner('required'),
    inner('description'),
    inner('default'),
  ];
  const [optionsField, choicesField] = [inner('options'), inner('choices')];
  if (optionsField !== undefined && choicesField !== undefined)
    problems.add(
      keys.get('choices')?.keySpan ?? map,
      choicesField.path,
      "'options' and 'choices' are the same",
      "remove 'choices'",
    );
  const listed = optionsField ?? choicesField;
  const type =
    typeField === undefined ? (listed === undefined ? 'string' : 'choice') : readWord(typeField, INPUT_TYPES);
  const options = readOptions(type, listed, map, field);
  const isRequired = required === undefined ? false : (readBoolean(required) ?? false);
  const read = {
    ...base,
    type: type ?? 'string',
    description: description === undefined ? '' : readDescription(description),
    required: isRequired,
    options,
  };
  if (defaultField === undefined) return read;
  const text = readDefault(defaultField, type === undefined ? undefined : { type, options });
  if (isRequired)
    problems.add(
      defaultField.node,
      defaultField.path,
      `the input ${quoted(entry.key)} is required, so that its default is never used`,
      "remove 'required' or 'default'",
    );
  return text === undefined ? read : { ...read, default: text };
}

function readOptions(type: InputType | undefined, field: Field | undefined, map: MapNode, of: Field): string[] {
  if (type === undefined) return [];
  if (field === undefined) {
    if (type === 'choice')
      of.problems.add(
        map.entries[0]?.keySpan ?? map,
        of.path,
        `the input ${quoted(of.name)} is a choice without 'options'`,
        'options: [one, other]',
      );
    return [];
  }
  if (type !== 'choice')
    of.problems.add(
      field.node,
      field.path,
      `'options' belongs to inputs of the type 'choice', and ${quoted(of.name)} is of the type '${type}'`,
    );
  const nodes = readList(field, 'a list of texts', PIPELINE_LIMITS.choicesMax) ?? [];
  const options = new Set<string>();
  for (const node of nodes) {
    if (node.text.length > PIPELINE_LIMITS.choiceLengthMax || printable(node.text) !== node.text)
      field.problems.add(
        node,
        field.path,
        `an option is a text of at most ${PIPELINE_LIMITS.choiceLengthMax} characters on one line`,
      );
    else if (options.has(node.text))
      field.problems.add(node, field.path, `the option ${quoted(node.text)} stands twice`);
    options.add(node.text);
  }
  if (options.size === 0) mustBe(field, 'a list of at least one text');
  return [...options];
}

function readDefault(field: Field, input: Pick<InputDefinition, 'type' | 'options'> | undefined): string | undefined {
  const node = readScalar(field, 'a text, a number or a boolean');
  if (node === undefined) return undefined;
  if (hasExpression(node.text)) {
    field.problems.add(
      node,
      field.path,
      "'default' cannot hold an expression",
      'take the value as an input that has no default',
    );
    return undefined;
  }
  if (utf8Length(node.text, PIPELINE_LIMITS.envValueBytesMax) > PIPELINE_LIMITS.envValueBytesMax)
    field.problems.add(node, field.path, `'default' is longer than ${PIPELINE_LIMITS.envValueBytesMax / 1024} KiB`);
  const fault = input === undefined ? undefined : inputFault(input, node.text);
  if (fault !== undefined) field.problems.add(node, field.path, `'default' ${fault.message}`, fault.suggestion);
  return node.text;
}

/** A text for people on one line. */
export function readDescription(field: Field): string {
  const node = readScalar(field, 'a text');
  if (node === undefined) return '';
  const text = node.text.trim();
  if (text.length > PIPELINE_LIMITS.extensionDescriptionLengthMax || printable(text) !== text) {
    field.problems.add(
      node,
      field.path,
      `'description' must be a text of at most ${PIPELINE_LIMITS.extensionDescriptionLengthMax} characters on one line`,
    );
  } else if (hasExpression(text)) field.problems.add(node, field.path, "'description' cannot hold an expression");
  return text;
}

/** What a value is that is no text, for messages. */
export function notAValue(value: MapEntry['value']): string | undefined {
  return value.kind === 'scalar' && !isNull(value) ? undefined : kindOf(value);
}

/** Notes an input that the extension does not have. */
export function noteUnknownInput(
  entry: MapEntry,
  inputs: readonly InputDefinition[],
  whose: string,
  path: string,
  problems: Problems,
): void {
  const names = inputs.map(({ name }) => name);
  problems.add(
    entry.keySpan,
    path,
    `${whose} has no input ${quoted(entry.key)}`,
    () =>
      didYouMean(entry.key, names) ??
      (names.length === 0 ? 'it has none' : `it has ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}`),
  );
}
