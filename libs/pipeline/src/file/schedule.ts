/** Reads `schedule`: the cron lines by which a server starts the pipeline, and the inputs that each of them gives. */
import type { InputDefinition, ScheduleLine } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { printable } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import type { MapEntry, ScalarNode, YamlNode } from '../yaml/yaml-tree.ts';
import { readCron } from './cron.ts';
import { fieldOf, isNull, joinPath, kindOf, mustBe, readKeys, readMap, readScalar, type Field } from './fields.ts';
import { inputFault, noteUnknownInput } from './inputs.ts';
import { resolveInputs } from './resolve-inputs.ts';
import { hasExpression } from './template.ts';
import { SCHEDULE_KEYS } from './vocabulary.ts';

/** A line, and where its inputs stand. */
interface ReadLine {
  readonly line: ScheduleLine;
  readonly node: YamlNode;
  readonly inputs: readonly MapEntry[];
}

const WANTED = 'a cron line, a map with one, or a list of them';

export function readSchedule(field: Field): ReadLine[] {
  const { node, problems, path } = field;
  if (isNull(node)) {
    mustBe(field, WANTED);
    return [];
  }
  const items = node.kind === 'list' ? node.items : [node];
  if (items.length > PIPELINE_LIMITS.schedulesMax) {
    problems.add(node, path, `'schedule' has more than ${PIPELINE_LIMITS.schedulesMax} lines`);
    return [];
  }
  const lines: ReadLine[] = [];
  const known = new Set<string>();
  for (const item of items) {
    const read = readLine({ ...field, node: item });
    if (read === undefined) continue;
    const name = JSON.stringify([read.line.cron, Object.entries(read.line.inputs ?? {}).toSorted()]);
    if (known.has(name)) problems.add(item, path, 'this line stands twice', 'leave one of them out');
    known.add(name);
    lines.push(read);
  }
  return lines;
}

/** Whether the pipeline takes what the lines give. What they do not give is asked for when a run is made. */
export function checkScheduleInputs(
  lines: readonly ReadLine[],
  inputs: readonly InputDefinition[],
  problems: Problems,
): void {
  const path = 'schedule.inputs';
  for (const { line, node, inputs: entries } of lines) {
    const before = problems.count;
    for (const entry of entries) {
      const input = inputs.find(({ name }) => name === entry.key);
      if (input === undefined) {
        noteUnknownInput(entry, inputs, 'the pipeline', path, problems);
        continue;
      }
      const fault = inputFault(input, line.inputs?.[entry.key] ?? '');
      if (fault !== undefined)
        problems.add(entry.value, joinPath(path, entry.key), `'${entry.key}' ${fault.message}`, fault.suggestion);
    }
    const lenient = inputs.map((input) => ({ ...input, required: false }));
    const resolved = resolveInputs({ inputs: lenient }, new Map(Object.entries(line.inputs ?? {})));
    if (problems.count === before && !resolved.ok) problems.add(node, path, resolved.message);
  }
}

function readLine(field: Field): ReadLine | undefined {
  const { node, problems, path } = field;
  if (node.kind === 'list' || isNull(node)) {
    problems.add(node, path, `'schedule' must be ${WANTED}; this entry is ${kindOf(node)}`);
    return undefined;
  }
  if (node.kind === 'scalar') {
    const cron = readCronText(node, path, problems);
    return cron === undefined ? undefined : { line: { cron }, node, inputs: [] };
  }
  const keys = readKeys(node, SCHEDULE_KEYS, "in a line of 'schedule'", path, problems);
  const [cronEntry, inputsEntry] = [keys.get('cron'), keys.get('inputs')];
  if (cronEntry === undefined) {
    problems.add(node.entries[0]?.keySpan ?? node, path, "this line of 'schedule' has no 'cron'");
    return undefined;
  }
  const scalar = readScalar(fieldOf(cronEntry, path, problems), 'a cron line');
  const cron = scalar === undefined ? undefined : readCronText(scalar, joinPath(path, 'cron'), problems);
  const given = inputsEntry === undefined ? undefined : readGiven(fieldOf(inputsEntry, path, problems));
  if (cron === undefined) return undefined;
  if (given === undefined || given.entries.length === 0) return { line: { cron }, node, inputs: [] };
  return { line: { cron, inputs: given.values }, node, inputs: given.entries };
}

function readGiven(
  field: Field,
): { readonly entries: readonly MapEntry[]; readonly values: Readonly<Record<string, string>> } | undefined {
  const map = readMap(field, 'a map of inputs to their values');
  if (map === undefined) return undefined;
  const entries: MapEntry[] = [];
  const values = Object.create(null) as Record<string, string>;
  for (const entry of map.entries) {
    const value = readScalar(fieldOf(entry, field.path, field.problems), 'a text, a number, true or false');
    if (value === undefined) continue;
    if (hasExpression(value.text)) {
      field.problems.add(value, joinPath(field.path, entry.key), 'an input of a schedule cannot hold an expression');
      continue;
    }
    entries.push(entry);
    values[entry.key] = value.text;
  }
  return { entries, values };
}

/** With one blank between its fields: two lines that mean the same by it are one. */
function readCronText(node: ScalarNode, path: string, problems: Problems): string | undefined {
  const cron =
    node.text.length > PIPELINE_LIMITS.cronLengthMax
      ? { message: `a cron line is longer than ${PIPELINE_LIMITS.cronLengthMax} characters`, suggestion: undefined }
      : readCron(node.text);
  if (!('message' in cron)) return node.text.trim().replaceAll(/[ \t]+/gu, ' ');
  problems.add(node, path, printable(cron.message), cron.suggestion);
  return undefined;
}
