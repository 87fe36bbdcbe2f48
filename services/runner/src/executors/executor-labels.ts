/** What a runner has, as labels: its executors, and which stages one of them would take. */
import { chooseExecutor, type ExecutorKind, type IsolationLevel, type StagePlace } from '@penstock/executor';
import { STAGE_KINDS, takesLabel } from '@penstock/pipeline';

/** One stage of each kind. */
const PLACES: Readonly<Record<(typeof STAGE_KINDS)[number], StagePlace | undefined>> = {
  plain: undefined,
  offline: { network: 'none' },
  image: { image: { name: 'image' } },
};

/** `untrusted`: the least isolation of a stage whose run is not trusted. */
export function executorLabels(
  executors: readonly { readonly kind: ExecutorKind }[],
  untrusted: IsolationLevel,
): string[] {
  const labels = executors.map(({ kind }) => `executor=${kind}`);
  for (const kind of STAGE_KINDS) {
    for (const trusted of [true, false]) {
      const label = takesLabel(kind, trusted);
      const needs = { place: PLACES[kind], isolation: trusted ? ('none' as const) : untrusted };
      if (label !== undefined && chooseExecutor(executors, needs) !== undefined) labels.push(label);
    }
  }
  return labels;
}
