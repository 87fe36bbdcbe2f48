/** Reads `artifacts` of a stage: patterns, or a map with them and what else is said of the files that are kept. */
import { fieldOf, readBoolean, mustBe, readKeys, readList, readWord, type Field } from './fields.ts';
import { parseDuration } from '../model/duration.ts';
import { readFilePatterns } from './file-patterns.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { ArtifactsDefinition, KeptWhen } from '../model/kept-files.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';
import { ARTIFACTS_KEYS } from './vocabulary.ts';

const WHENS: readonly KeptWhen[] = ['success', 'failure', 'always'];

/** Before it is known which stages its names mean. */
export interface ArtifactsDraft {
  readonly kept: Omit<ArtifactsDefinition, 'from'>;
  /** Absent: it does not say. */
  readonly from: readonly ScalarNode[] | undefined;
}

export function readArtifacts(field: Field): ArtifactsDraft | undefined {
  const { node, path, problems } = field;
  if (node.kind !== 'map') {
    const paths = readFilePatterns(field, 'artifacts');
    return paths === undefined ? undefined : { kept: { paths, when: 'success', required: false }, from: undefined };
  }
  const keys = readKeys(node, ARTIFACTS_KEYS, "in 'artifacts'", path, problems);
  const inner = <Value>(
    key: (typeof ARTIFACTS_KEYS)[number],
    read: (value: Field) => Value | undefined,
  ): Value | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : read(fieldOf(found, path, problems));
  };
  const paths = inner('paths', (value) => readFilePatterns(value, 'artifacts'));
  const when = inner('when', (value) => readWord(value, WHENS)) ?? 'success';
  const required = inner('required', readBoolean) ?? false;
  const expireMs = inner('expire', readExpire);
  const from = inner('from', (value) => readList(value, 'a stage or a list of stages', PIPELINE_LIMITS.stagesMax));
  const isOfOthersOnly = keys.has('from') && keys.size === 1;
  if (!keys.has('paths') && !isOfOthersOnly)
    problems.add(node.entries[0]?.keySpan ?? node, path, "'artifacts' has no 'paths'", "such as 'paths: [dist/**]'");
  if (paths === undefined && !isOfOthersOnly) return undefined;
  return { kept: { paths: paths ?? [], when, required, ...(expireMs === undefined ? {} : { expireMs }) }, from };
}

function readExpire(field: Field): number | undefined {
  const { node } = field;
  const ms = node.kind === 'scalar' ? parseDuration(node.text) : undefined;
  if (ms !== undefined && ms >= PIPELINE_LIMITS.artifactExpireMsMin && ms <= PIPELINE_LIMITS.artifactExpireMsMax)
    return ms;
  mustBe(field, 'a time such as 7d, 12h or 1d12h, from 1m to 3650d', () =>
    node.kind === 'scalar' && /^[0-9]{1,4}$/.test(node.text) ? `add the unit: '${node.text}d'` : undefined,
  );
  return undefined;
}
