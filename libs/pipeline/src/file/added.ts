/**
 * Reads a text that a stage adds to its run: a map of stages in the vocabulary of a pipeline file. They are named
 * `<stage>/<name>`, come after that stage, and know no others but each other.
 */
import type { PipelineDefinition } from '../model/definition.ts';
import type { AddedBy } from '../model/generates.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { utf8Length } from '../text/text-position.ts';
import type { MapNode, YamlNode } from '../yaml/yaml-tree.ts';
import { expandPipeline, type ExpandOptions } from './expand.ts';
import type { StageReader } from './extension-use.ts';
import { isNull, kindOf } from './fields.ts';
import { checkCeiling, checkTakenNames } from './generates.ts';
import { levelOf } from './level.ts';
import { checkReferences } from './references.ts';

/** Of a text that is looked through for anything to read. */
const EMPTY_LENGTH_MAX = 64 * 1024;

/** Before anything else of it is looked at. */
export function isAddedTextOfSize(text: string, problems: Problems): boolean {
  const { addedTextBytesMax } = PIPELINE_LIMITS;
  if (utf8Length(text, addedTextBytesMax) <= addedTextBytesMax) return true;
  problems.add(
    { start: 0, end: 0 },
    '',
    `the stages to be added are larger than ${addedTextBytesMax / 1024} KiB`,
    'put long scripts into files',
  );
  return false;
}

/** Comments and blank lines, which the reader of a file takes for a mistake. */
export function holdsNothing(text: string): boolean {
  return text.length < EMPTY_LENGTH_MAX && text.split('\n').every((line) => /^\s*(#|$)/.test(line));
}

export function noStages({ stage }: Pick<AddedBy, 'stage'>): PipelineDefinition {
  return { name: stage, schedule: [], stages: [] };
}

/** Undefined: the problems say why. Of an empty text: no stages. */
export function readAdded(
  root: YamlNode,
  reader: StageReader,
  added: AddedBy,
  options: Omit<ExpandOptions, 'within'>,
): PipelineDefinition | undefined {
  const { problems } = reader;
  if (isNull(root)) return noStages(added);
  if (root.kind !== 'map') {
    problems.add(root, '', `what a stage adds is a map of stages, not ${kindOf(root)}`);
    return undefined;
  }
  if (root.entries.length === 0) return noStages(added);
  if (isPipelineFile(root)) {
    problems.add(
      root,
      '',
      `what ${quoted(added.stage)} adds is a map of stages, and this is a pipeline file`,
      "write what stands under 'stages' alone",
    );
    return undefined;
  }
  const level = levelOf(root, new Map(Object.entries(added.env)), reader);
  if (level === undefined) return undefined;
  checkReferences({ ...level, inputs: added.inputs, template: false, problems }, []);
  checkCeiling(level.drafts, added, problems);
  checkTakenNames(level.drafts, level.names, added, problems);
  if (problems.count > 0) return undefined;
  return { ...noStages(added), stages: expandPipeline(level, problems, { ...options, within: added.stage }) };
}

function isPipelineFile({ entries }: MapNode): boolean {
  const names = new Set(entries.map(({ key }) => key));
  return names.has('pipeline') && names.has('stages');
}
