/** Reads values of a wanted kind out of the YAML tree, and says in the user's words what else stands there. */
import { formatDuration, parseDuration } from '../model/duration.ts';
import { isPlainName, quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';
import { keyHint, placeHint } from './foreign-names.ts';
import { hasExpression } from './template.ts';
import { otherName } from './vocabulary.ts';
import type { MapEntry, MapNode, ScalarNode, YamlNode } from '../yaml/yaml-tree.ts';

/** Keys under which some system has the commands of a stage. */
const COMMAND_KEYS: ReadonlySet<string> = new Set(['run', 'script', 'commands', 'steps', 'uses']);

/** The values that YAML's core schema takes for null. */
const NULLS: ReadonlySet<string> = new Set(['', '~', 'null', 'Null', 'NULL']);

export function isNull(node: YamlNode): boolean {
  return node.kind === 'scalar' && node.plain && NULLS.has(node.text);
}

/** What a value is, for "must be …, not …". */
export function kindOf(node: YamlNode): string {
  if (node.kind !== 'scalar') return node.kind === 'map' ? 'a map' : 'a list';
  if (isNull(node)) return 'empty';
  return node.text === '' ? 'an empty text' : quoted(node.text);
}

/** Access to one value: where problems go, and what the value is called in them. */
export interface Field {
  readonly node: YamlNode;
  /** The key as it is named in messages, such as `run`. */
  readonly name: string;
  /** The dotted path of a diagnostic. */
  readonly path: string;
  readonly problems: Problems;
}

/**
 * The entries of a map by key. Keys that are not allowed are noted: with a suggestion.
 * `where` ends the message, as in "unknown key 'aftr' in stage 'build'".
 */
export function readKeys(
  map: MapNode,
  allowed: readonly string[],
  where: string,
  path: string,
  problems: Problems,
): Map<string, MapEntry> {
  const found = new Map<string, MapEntry>();
  for (const entry of map.entries) {
    const { key, keySpan } = entry;
    if (allowed.includes(key)) {
      found.set(key, entry);
      continue;
    }
    const keyPath = joinPath(path, key);
    if (key === '<<')
      problems.add(
        keySpan,
        keyPath,
        "merge keys ('<<') are not supported",
        'write the keys out, or use an alias for a whole value',
      );
    else {
      problems.add(keySpan, keyPath, `unknown key ${quoted(key)} ${where}`, () => remedyOf(entry, allowed));
    }
  }
  return found;
}

function remedyOf(entry: MapEntry, allowed: readonly string[]): string {
  const { key } = entry;
  const hint = keyHint(key, allowed);
  if (hint !== undefined) return hint;
  const other = otherName(key, allowed);
  if (other !== undefined) return `did you mean '${other}'?`;
  return (
    placeHint(key, allowed) ??
    didYouMean(key, allowed) ??
    (isStageOutside(entry, allowed) ? "stages stand under 'stages'" : `there ${allOf(allowed)}`)
  );
}

function allOf(names: readonly string[]): string {
  const shown = names.map((name) => `'${name}'`);
  return shown.length < 2 ? `is ${shown.join('')}` : `are ${shown.slice(0, -1).join(', ')} and ${shown.at(-1) ?? ''}`;
}

/** A map with commands at the top of the file. */
function isStageOutside({ value }: MapEntry, allowed: readonly string[]): boolean {
  return allowed.includes('stages') && hasCommands(value);
}

function hasCommands(node: YamlNode): boolean {
  return node.kind === 'map' && node.entries.some(({ key }) => COMMAND_KEYS.has(key));
}

/** Of a step of other systems among the commands of a stage. */
export function stepRemedy(node: YamlNode): string | undefined {
  if (!hasCommands(node)) return undefined;
  return "an entry is a command itself: a step with a name or variables of its own, or one with 'uses', is a stage";
}

export function joinPath(path: string, key: string): string {
  const shown = key.length > 80 ? `${key.slice(0, 79)}…` : key;
  return path === '' ? shown : `${path}.${shown}`;
}

/** A map, or undefined and a problem. */
export function readMap(field: Field, wanted: string): MapNode | undefined {
  if (field.node.kind === 'map') return field.node;
  mustBe(field, wanted);
  return undefined;
}

export function mustBe(field: Field, wanted: string, suggest?: string | (() => string | undefined)): void {
  field.problems.add(field.node, field.path, `'${field.name}' must be ${wanted}, not ${kindOf(field.node)}`, suggest);
}

/** A text; numbers and booleans are taken as they are written. */
export function readScalar(field: Field, wanted: string): ScalarNode | undefined {
  if (field.node.kind === 'scalar' && !isNull(field.node)) return field.node;
  mustBe(field, wanted);
  return undefined;
}

/** A text without expressions, of a bounded length, on one line and without control characters. */
export function readName(field: Field, wanted: string, lengthMax: number): string | undefined {
  const scalar = readScalar(field, wanted);
  if (scalar === undefined) return undefined;
  const fault = nameFault(scalar.text, lengthMax);
  if (fault === undefined) return scalar.text;
  field.problems.add(scalar, field.path, `'${field.name}' ${fault}`);
  return undefined;
}

/** Why a text cannot be a name, as the end of a sentence. */
export function nameFault(text: string, lengthMax: number): string | undefined {
  if (text === '') return 'must not be empty';
  if (text.length > lengthMax) return `is longer than ${lengthMax} characters`;
  if (hasExpression(text)) return 'cannot hold an expression: it is read before anything has a value';
  return isPlainName(text)
    ? undefined
    : `has characters that a name cannot have (line breaks, control characters, blanks at its ends): ${quoted(text)}`;
}

/** One text or a list of them, each with its place. A list may be empty. `remedy`: of an entry that is no text. */
export function readList(
  field: Field,
  wanted: string,
  countMax: number,
  remedy?: (entry: YamlNode) => string | undefined,
): ScalarNode[] | undefined {
  const { node } = field;
  if (node.kind === 'scalar') {
    const only = readScalar(field, wanted);
    return only === undefined ? undefined : [only];
  }
  if (node.kind === 'map') {
    mustBe(field, wanted);
    return undefined;
  }
  if (node.items.length > countMax)
    field.problems.add(node, field.path, `'${field.name}' has more than ${countMax} entries`);
  const items: ScalarNode[] = [];
  for (const item of node.items) {
    if (item.kind === 'scalar' && !isNull(item)) items.push(item);
    else
      field.problems.add(item, field.path, `'${field.name}' must be ${wanted}; this entry is ${kindOf(item)}`, () =>
        remedy?.(item),
      );
  }
  return items.length === node.items.length && items.length <= countMax ? items : undefined;
}

export function readBoolean(field: Field): boolean | undefined {
  const { node } = field;
  if (node.kind === 'scalar' && node.plain) {
    if (/^(true|True|TRUE)$/.test(node.text)) return true;
    if (/^(false|False|FALSE)$/.test(node.text)) return false;
  }
  mustBe(field, 'true or false', () => {
    if (node.kind !== 'scalar') return undefined;
    if (/^(yes|on|y|1|true)$/i.test(node.text)) return 'did you mean true?';
    return /^(no|off|n|0|false)$/i.test(node.text) ? 'did you mean false?' : undefined;
  });
  return undefined;
}

export function readInteger(field: Field, min: number, max: number): number | undefined {
  const { node } = field;
  const value = node.kind === 'scalar' && /^[-+]?[0-9]{1,9}$/.test(node.text) ? Number(node.text) : undefined;
  if (value !== undefined && value >= min && value <= max) return value;
  mustBe(field, `a whole number from ${min} to ${max}`);
  return undefined;
}

/** One of some words. */
export function readWord<Word extends string>(field: Field, words: readonly Word[]): Word | undefined {
  const { node } = field;
  const found = node.kind === 'scalar' ? words.find((word) => word === node.text) : undefined;
  if (found === undefined)
    mustBe(field, oneOf(words), () => (node.kind === 'scalar' ? didYouMean(node.text, words) : undefined));
  return found;
}

export function oneOf(words: readonly string[]): string {
  const shown = words.map((word) => `'${word}'`);
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1) ?? ''}`;
}

/** A duration in milliseconds between two bounds. */
export function readDuration(field: Field, minMs: number, maxMs: number): number | undefined {
  const { node } = field;
  const ms = node.kind === 'scalar' ? parseDuration(node.text) : undefined;
  if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms;
  mustBe(field, `a duration such as 90s, 10m or 1h30m, from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`, () =>
    node.kind === 'scalar' && /^[0-9]{1,7}$/.test(node.text)
      ? `add the unit: '${node.text}s' or '${node.text}m'`
      : undefined,
  );
  return undefined;
}

/** The access to the value of a map's entry. */
export function fieldOf(entry: MapEntry, path: string, problems: Problems): Field {
  return { node: entry.value, name: entry.key, path: joinPath(path, entry.key), problems };
}
