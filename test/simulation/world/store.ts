/** What the simulated store holds. */
import type { RunEvent, RunView } from '@penstock/run';
import type { Checkpoint, EncodedRun, NewHookDelivery, RunCounter, ScheduleDocument, Tombstone } from '@penstock/store';

/** Of any collection. */
export type StoredDocument = Readonly<Record<string, unknown>> & { readonly id: string };

export class SimStore {
  up = true;
  readonly documents = new Map<string, EncodedRun>();
  readonly tombstones = new Map<string, Tombstone>();
  readonly checkpoints = new Map<number, Checkpoint>();
  readonly schedules = new Map<string, ScheduleDocument>();
  /** By key and month. */
  readonly counters = new Map<string, RunCounter>();
  /** Of the registry and of caches, by the name of their collection and their ids. */
  readonly collections = new Map<string, Map<string, StoredDocument>>();
  /** By run and version; each tenant has one hook. */
  readonly hookDeliveries = new Map<string, NewHookDelivery>();

  view(id: string): RunView | undefined {
    const document = this.documents.get(id);
    return document && (JSON.parse(document.view) as RunView);
  }

  events(id: string): RunEvent[] | undefined {
    const document = this.documents.get(id);
    return document && (JSON.parse(document.story) as { events: RunEvent[] }).events;
  }
}
