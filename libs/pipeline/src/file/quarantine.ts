/** Reads `quarantine` of a stage. Whether it still holds depends on a run's beginning, never on when its file is read. */
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { endOfDay, type Quarantine } from '../model/quarantine.ts';
import { fieldOf, mustBe, readKeys, readMap, readName, type Field } from './fields.ts';
import { QUARANTINE_KEYS } from './vocabulary.ts';

export function readQuarantine(field: Field): Quarantine | undefined {
  const { problems, path } = field;
  const map = readMap(field, "a map with 'until', such as {until: 2026-12-31, reason: '#123'}");
  if (map === undefined) return undefined;
  const keys = readKeys(map, QUARANTINE_KEYS, "in 'quarantine'", path, problems);
  const until = keys.get('until');
  const reason = keys.get('reason');
  const said =
    reason === undefined
      ? undefined
      : readName(fieldOf(reason, path, problems), 'a text', PIPELINE_LIMITS.quarantineReasonLengthMax);
  if (until === undefined) {
    problems.add(
      map,
      path,
      "'quarantine' has no 'until'",
      "it holds to the end of that day, as in 'until: 2026-12-31'",
    );
    return undefined;
  }
  const { node, ...rest } = fieldOf(until, path, problems);
  const endsAt = node.kind === 'scalar' ? endOfDay(node.text) : undefined;
  if (node.kind !== 'scalar' || endsAt === undefined) {
    mustBe({ node, ...rest }, 'a day such as 2026-12-31');
    return undefined;
  }
  return {
    until: node.text,
    endsAt,
    ...(said === undefined ? {} : { reason: said }),
    start: node.start,
    path,
  };
}
