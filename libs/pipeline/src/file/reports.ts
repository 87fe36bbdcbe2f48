/** Reads `reports` of a stage: which files say how its tests went. */
import type { ReportsDefinition } from '../model/kept-files.ts';
import { fieldOf, readKeys, readMap, type Field } from './fields.ts';
import { readFilePatterns } from './file-patterns.ts';
import { REPORTS_KEYS } from './vocabulary.ts';

export function readReports(field: Field): ReportsDefinition | undefined {
  const { path, problems } = field;
  const map = readMap(field, "a map such as {junit: ['reports/*.xml']}");
  if (map === undefined) return undefined;
  const found = readKeys(map, REPORTS_KEYS, "in 'reports'", path, problems).get('junit');
  if (found === undefined) {
    problems.add(map.entries[0]?.keySpan ?? map, path, "'reports' has no 'junit'", "such as 'junit: [reports/*.xml]'");
    return undefined;
  }
  const junit = readFilePatterns(fieldOf(found, path, problems), 'reports');
  return junit === undefined ? undefined : { junit };
}
