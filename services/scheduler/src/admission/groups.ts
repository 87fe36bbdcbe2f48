/**
 * Concurrency groups of a partition: the runs of a group (named per key) go one at a time in the order of their
 * creation. A run stays in its group until it has settled: it has ended, and its processes are gone.
 */
import type { RunId } from '@penstock/run';
export class ConcurrencyGroups {
  /** Run ids by group, the one whose turn it is first. */
  readonly #groups = new Map<string, RunId[]>();

  /** The runs of the group, the one whose turn it is first; a copy. */
  members(key: string, group: string): readonly RunId[] {
    return [...(this.#groups.get(groupId(key, group)) ?? [])];
  }

  /** How many stand before the run, and the first of them, at most `max`; `comesBefore` says where in their order another one stands. */
  placeOf(
    runId: RunId,
    { key, group, max }: { readonly key: string; readonly group: string; readonly max: number },
    comesBefore: (other: RunId) => boolean,
  ): { readonly first: readonly RunId[]; readonly before: number } {
    const members = this.#groups.get(groupId(key, group)) ?? [];
    let [low, high] = [0, members.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (comesBefore(members[middle] as RunId)) low = middle + 1;
      else high = middle;
    }
    // A take-over after a loss may find an order that is none.
    const before = Math.max(0, members[low] === runId ? low : members.indexOf(runId));
    return { first: members.slice(0, Math.min(before, max)), before };
  }

  last(key: string, group: string): string | undefined {
    return this.#groups.get(groupId(key, group))?.at(-1);
  }

  /** Enters a run behind the others. */
  enter(key: string, group: string, runId: RunId): void {
    const id = groupId(key, group);
    const members = this.#groups.get(id);
    if (members === undefined) this.#groups.set(id, [runId]);
    else members.push(runId);
  }

  /** Whether it is this run's turn. */
  isFirst(key: string, group: string, runId: RunId): boolean {
    return this.#groups.get(groupId(key, group))?.[0] === runId;
  }

  /** Takes a run out; answers the run whose turn has come through it. */
  leave(key: string, group: string, runId: RunId): string | undefined {
    const id = groupId(key, group);
    const members = this.#groups.get(id);
    const position = members?.indexOf(runId) ?? -1;
    if (members === undefined || position < 0) return undefined;
    members.splice(position, 1);
    if (members.length === 0) this.#groups.delete(id);
    return position === 0 ? members[0] : undefined;
  }
}

function groupId(key: string, group: string): string {
  return `${key}\n${group}`;
}
