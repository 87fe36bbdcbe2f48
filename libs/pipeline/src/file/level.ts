/** The stages of a pipeline, or of an extension that is made of stages: read, named and linked, not yet expanded. */
import type { Level, StageDraft } from './drafts.ts';
import type { Environment } from './environment.ts';
import type { StageReader } from './extension-use.ts';
import { fieldOf, readMap } from './fields.ts';
import { checkGeneratedNames } from './generates.ts';
import { linkStages, nameStages } from './graph.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { readStage } from './stage.ts';
import type { MapEntry, MapNode } from '../yaml/yaml-tree.ts';

/** Undefined where the stages cannot be numbered; the problems then say why. */
export function readLevel(entry: MapEntry | undefined, env: Environment, reader: StageReader): Level | undefined {
  const map =
    entry === undefined ? undefined : readMap(fieldOf(entry, '', reader.problems), 'a map of stage names to stages');
  if (map?.entries.length === 0) reader.problems.add(map, 'stages', "'stages' has no stages");
  return levelOf(map, env, reader);
}

/** The same of the map itself. */
export function levelOf(map: MapNode | undefined, env: Environment, reader: StageReader): Level | undefined {
  const drafts = map === undefined ? [] : readStages(map, reader);
  const names = nameStages(drafts, reader.problems);
  if (names !== undefined) checkGeneratedNames(drafts, names, reader.problems);
  return names === undefined ? undefined : { drafts, names, graph: linkStages(drafts, names, reader.problems), env };
}

function readStages(map: MapNode, reader: StageReader): StageDraft[] {
  if (map.entries.length > PIPELINE_LIMITS.stagesMax) {
    const first = map.entries[PIPELINE_LIMITS.stagesMax];
    reader.problems.add(
      first?.keySpan ?? map,
      'stages',
      `more than ${PIPELINE_LIMITS.stagesMax.toLocaleString('en')} stages`,
    );
    return [];
  }
  const addedLeft = reader.extensions.standing ? Infinity : PIPELINE_LIMITS.matrixAddedValuesMax;
  const budget = { combinations: 0, addedLeft };
  const drafts = map.entries.map((stage) => readStage(stage, reader, budget));
  const tooMany = drafts.filter(({ approvalSpan }) => approvalSpan !== undefined)[PIPELINE_LIMITS.gatesMax];
  if (tooMany?.approvalSpan !== undefined)
    reader.problems.add(
      tooMany.approvalSpan,
      `${tooMany.path}.approval`,
      `more than ${PIPELINE_LIMITS.gatesMax} stages with 'approval'`,
      'one gate can stand before many stages',
    );
  return drafts;
}
