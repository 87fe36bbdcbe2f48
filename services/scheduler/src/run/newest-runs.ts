/**
 * The runs of each tenant in the order of their ids, so that a page of the newest costs what is on it, and not what there is. In
 * memory or parked: those are open all the same.
 */
import { matchesFilter, type RunFilter, type RunId, type RunStatus } from '@penstock/run';
import type { LiveRun } from './live-run.ts';
import type { ParkedRun } from './parked-run.ts';

interface Place {
  readonly id: RunId;
  /** Undefined: it is open no more. */
  run: LiveRun | ParkedRun | undefined;
}

interface Places {
  /** The oldest first. */
  readonly places: Place[];
  gone: number;
}

/** Below this it is not worth it to close the gaps. */
const GONE_MIN = 256;

export class NewestRuns {
  readonly #ofTenant = new Map<string, Places>();

  /** Instead of what was there under its id, if anything. */
  set(tenant: string, run: LiveRun | ParkedRun): void {
    const of = this.#ofTenant.get(tenant) ?? { places: [], gone: 0 };
    this.#ofTenant.set(tenant, of);
    const { places } = of;
    const last = places.at(-1);
    // Nearly always at the end.
    if (last === undefined || last.id < run.id) {
      places.push({ id: run.id, run });
      return;
    }
    const position = positionOf(places, run.id);
    const known = places[position];
    if (known?.id !== run.id) places.splice(position, 0, { id: run.id, run });
    else {
      if (known.run === undefined) of.gone -= 1;
      known.run = run;
    }
  }

  delete(tenant: string, id: RunId): void {
    const of = this.#ofTenant.get(tenant);
    const place = of?.places[positionOf(of.places, id)];
    if (of === undefined || place?.id !== id || place.run === undefined) return;
    place.run = undefined;
    of.gone += 1;
    if (of.gone === of.places.length) this.#ofTenant.delete(tenant);
    else if (of.gone >= GONE_MIN && of.gone * 2 > of.places.length) closeGaps(of);
  }

  clear(): void {
    this.#ofTenant.clear();
  }

  /** At most so many, the newest first. */
  newest(
    count: number,
    options: {
      readonly tenants: readonly string[];
      readonly before?: RunId | undefined;
      readonly filter?: RunFilter | undefined;
    },
  ): (LiveRun | ParkedRun)[] {
    const { before, filter = {} } = options;
    const found: (LiveRun | ParkedRun)[] = [];
    for (const tenant of new Set(options.tenants)) {
      const places = this.#ofTenant.get(tenant)?.places ?? [];
      let left = count;
      for (
        let index = (before === undefined ? places.length : positionOf(places, before)) - 1;
        index >= 0 && left > 0;
        index--
      ) {
        const run = places[index]?.run;
        if (run === undefined || !matchesFilter(pictureOf(run), filter)) continue;
        found.push(run);
        left -= 1;
      }
    }
    return found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, count);
  }
}

function pictureOf(run: LiveRun | ParkedRun): {
  readonly pipelineName: string;
  readonly status: RunStatus;
  readonly repository: string | undefined;
  readonly ref: string | undefined;
} {
  if (!('state' in run)) return run;
  const { pipelineName, status, origin } = run.state;
  return { pipelineName, status, repository: origin.repository, ref: origin.ref };
}

/** Where the id stands, or would. */
function positionOf(places: readonly Place[], id: RunId): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] as Place).id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

function closeGaps(of: Places): void {
  let kept = 0;
  for (const place of of.places) if (place.run !== undefined) of.places[kept++] = place;
  of.places.length = kept;
  of.gone = 0;
}
