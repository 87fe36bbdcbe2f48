/** The deletions that the log has behind the checkpoint (P34): the tombstone of each may be missing. */
import type { RunId, Sequence } from '@penstock/run';
import type { DirtyDeletion } from '../partition/deletions.ts';
import type { DeletedEntry } from '../run/commit.ts';

interface Position {
  readonly incarnation: number;
  readonly sequence: Sequence;
}

export class ReplayedDeletions {
  readonly #deleted = new Map<RunId, { readonly entry: DeletedEntry; readonly at: Position }>();

  replay(entries: readonly DeletedEntry[], at: Position): void {
    for (const entry of entries) this.#deleted.set(entry.id, { entry, at });
  }

  /** One of a log that was lost stands for the opening: its tombstone is to count as newer. */
  restored({ incarnation, sequence }: Position): DirtyDeletion[] {
    return Array.from(this.#deleted.values(), ({ entry, at }) => ({
      entry,
      sequence: at.incarnation === incarnation ? at.sequence : sequence,
    }));
  }
}
