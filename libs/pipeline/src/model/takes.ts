/**
 * What a stage asks of its runner beyond `runs_on`, as labels: where it runs, and how far its run is trusted. A runner has the
 * label of each such stage that one of its executors would take; so who matches stages and runners knows nothing of executors.
 */
import type { PlaceDefinition } from './place.ts';

/** `plain`: nothing but a shell. `offline`: no network. `image`: containers, whatever else. */
export type StageKind = 'plain' | 'offline' | 'image';

export const STAGE_KINDS: readonly StageKind[] = ['plain', 'offline', 'image'];

function kindOfStage(place: PlaceDefinition<unknown> | undefined): StageKind {
  if (place?.image !== undefined || (place?.services?.length ?? 0) > 0) return 'image';
  return place?.network === 'none' ? 'offline' : 'plain';
}

/** The label of a runner that takes such stages; undefined: every runner does. */
export function takesLabel(kind: StageKind, trusted: boolean): string | undefined {
  if (trusted) return kind === 'plain' ? undefined : `takes=${kind}`;
  return kind === 'plain' ? 'takes=untrusted' : `takes=untrusted-${kind}`;
}

/** What a runner must have at least. */
export interface Least {
  readonly cpu?: number | undefined;
  readonly memoryBytes?: number | undefined;
}

/** What a stage asks of its runner. */
export interface Wanted {
  readonly labels: readonly string[];
  /** Names the labels and the rest: equal for stages that the same runners can take. */
  readonly set: string;
  readonly least: Least | undefined;
}

interface Asking {
  readonly runsOn: readonly string[];
  readonly place?: PlaceDefinition<unknown> | undefined;
}

/** Of stages that must go to one runner, for they share their files: what all of them ask for. */
export function wantedBy(stages: readonly Asking[], trusted: boolean): Wanted {
  const labels = new Set(stages[0]?.runsOn ?? []);
  for (const { place } of stages) {
    const label = takesLabel(kindOfStage(place), trusted);
    if (label !== undefined) labels.add(label);
  }
  const cpu = Math.max(0, ...stages.map(({ place }) => place?.resources?.cpu ?? 0));
  const memoryBytes = Math.max(0, ...stages.map(({ place }) => place?.resources?.memoryBytes ?? 0));
  const least =
    cpu === 0 && memoryBytes === 0
      ? undefined
      : { ...(cpu > 0 ? { cpu } : {}), ...(memoryBytes > 0 ? { memoryBytes } : {}) };
  const sorted = [...labels].toSorted();
  return {
    labels: sorted,
    set: least === undefined ? sorted.join(',') : `${sorted.join(',')} ${cpu} ${memoryBytes}`,
    least,
  };
}
