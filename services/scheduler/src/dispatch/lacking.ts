/** Why no runner can take a stage, in a sentence: which label is missing where, or how much is asked for. Pure. */
import type { Least } from '@penstock/pipeline';

export interface ConnectedRunner {
  readonly runner: string;
  readonly labels: ReadonlySet<string>;
  readonly capacity?: { readonly cpu: number; readonly memoryBytes: number } | undefined;
}

interface Wanted {
  readonly labels: readonly string[];
  readonly least?: Least | undefined;
  /** The runner that it must go to, which has the run's working folder. */
  readonly boundTo?: string | undefined;
}

/** Beyond these only the labels are told. */
const RUNNERS_LOOKED_AT_MAX = 1_000;
const RUNNERS_NAMED_MAX = 3;
const GIBIBYTE = 1024 ** 3;

export function lackingSentence({ labels, least, boundTo }: Wanted, runners: Iterable<ConnectedRunner>): string {
  const known: { readonly runner: ConnectedRunner; readonly missing: readonly string[] }[] = [];
  for (const runner of runners) {
    if (boundTo !== undefined && runner.runner !== boundTo) continue;
    known.push({ runner, missing: labels.filter((label) => !runner.labels.has(label)) });
    if (known.length === RUNNERS_LOOKED_AT_MAX) break;
  }
  if (boundTo !== undefined && known.length === 0)
    return `The runner '${boundTo}', which has the run's working folder, is not connected.`;
  if (known.length === 0) return 'No runner is connected.';
  const nowhere = labels.filter((label) => known.every(({ missing }) => missing.includes(label)));
  const nearest = known.toSorted((a, b) => a.missing.length - b.missing.length);
  const named = nearest
    .filter(({ missing }) => missing.length > 0)
    .slice(0, RUNNERS_NAMED_MAX)
    .map(({ runner, missing }) => `'${runner.runner}' lacks ${quoted(missing)}`);
  const where = named.length === 0 ? '' : `: ${named.join(', ')}`;
  if (boundTo !== undefined && nearest[0]?.missing.length !== 0)
    return `The runner '${boundTo}', which has the run's working folder, has not all of its labels any more${where}.`;
  if (nowhere.length > 0)
    return `No runner has the ${nowhere.length === 1 ? 'label' : 'labels'} ${quoted(nowhere)}${where}.`;
  if (nearest[0]?.missing.length !== 0) return `No runner has all of the labels ${quoted(labels)} together${where}.`;
  return `No runner with its labels is as large as it asks for (${sizeOf(least)}).`;
}

function quoted(labels: readonly string[]): string {
  return labels.map((label) => `'${label}'`).join(', ');
}

function sizeOf({ cpu, memoryBytes }: Least = {}): string {
  const parts = [
    ...(cpu === undefined ? [] : [`${cpu} CPUs`]),
    ...(memoryBytes === undefined ? [] : [`${Math.ceil((memoryBytes / GIBIBYTE) * 10) / 10} GiB of memory`]),
  ];
  return parts.join(' and ');
}
