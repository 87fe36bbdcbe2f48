/**
 * Why no runner can take a stage, in a sentence: which label is missing where, or how much is asked for. Made for one answer: runners are
 * gone through once for all stages with the same labels, as a file may ask for thousands of sizes that no runner has.
 */
import type { Least } from '@penstock/pipeline';
import type { Looks } from './place.ts';

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
  readonly tenant: string | undefined;
}

/** Beyond these only the labels are told. */
const RUNNERS_LOOKED_AT_MAX = 1_000;
const RUNNERS_NAMED_MAX = 3;
/** A label of one is as quickly looked for as a tenth of what else is looked at. */
const LOOK = 1 / 10;
const GIBIBYTE = 1024 ** 3;

export class Lacking {
  readonly #runnersOf: (tenant: string | undefined) => Iterable<ConnectedRunner>;
  readonly #looks: Looks;
  /** By labels, runner and tenant; undefined: some have all of the labels. */
  readonly #known = new Map<string, string | undefined>();

  /** `runnersOf`: those that a tenant may know of. */
  constructor(runnersOf: (tenant: string | undefined) => Iterable<ConnectedRunner>, looks: Looks) {
    this.#runnersOf = runnersOf;
    this.#looks = looks;
  }

  sentenceOf(wanted: Wanted): string {
    const { labels, least, boundTo, tenant } = wanted;
    const name = JSON.stringify([tenant, boundTo, ...labels]);
    if (!this.#known.has(name)) {
      if (this.#looks.left <= 0) return 'No runner that is connected has all that it asks for.';
      this.#known.set(name, this.#ofLabels(wanted));
    }
    return this.#known.get(name) ?? `No runner with its labels is as large as it asks for (${sizeOf(least)}).`;
  }

  #ofLabels({ labels, boundTo, tenant }: Wanted): string | undefined {
    const known: { readonly runner: ConnectedRunner; readonly missing: readonly string[] }[] = [];
    for (const runner of this.#runnersOf(tenant)) {
      this.#looks.left -= LOOK;
      if (boundTo !== undefined && runner.runner !== boundTo) continue;
      this.#looks.left -= LOOK * labels.length;
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
    return undefined;
  }
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
