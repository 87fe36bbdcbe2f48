/** What must hold of the outbox of webhooks (P35): behind a checkpoint it has everything that was to be told, each as the run then stood. */
import { announcementBody, announcementsIn } from '@penstock/run';
import type { World } from '../world/world.ts';
import type { SimStore } from '../world/store.ts';
import type { RunTruth } from './run-truth.ts';

export class HookRules {
  readonly #world: World;
  /** By run and version: the body. */
  readonly #expected = new Map<string, Map<number, string>>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The last event of the run has just been applied. */
  happened(run: Pick<RunTruth, 'id' | 'state' | 'events'>): void {
    for (const announcement of announcementsIn(run.events, run.events.length - 1)) {
      const bodies = this.#expected.get(run.id) ?? new Map<number, string>();
      this.#expected.set(run.id, bodies);
      bodies.set(announcement.version, JSON.stringify(announcementBody(announcement, run.state)));
    }
  }

  /** The run's log was cut behind so many of its events. */
  forgotten(runId: string): void {
    this.#expected.delete(runId);
  }

  /** The checkpoint covers so many events of the run. */
  checkpointed(run: Pick<RunTruth, 'id' | 'state'>, covered: number, { hookDeliveries }: SimStore): void {
    // What means nothing to its owner is told without its stages.
    if (run.state.pipelineName.endsWith('unrestorable')) return;
    const bodies = this.#expected.get(run.id);
    for (const [version, body] of bodies ?? []) {
      if (version > covered) continue;
      bodies?.delete(version);
      const told = hookDeliveries.get(`${run.id} ${version}`);
      const what = `version ${version} of run ${run.id}`;
      this.#world.check(told !== undefined, 'P35', `the checkpoint covers ${what}, which the outbox does not have`);
      this.#world.check(
        told === undefined || told.body === body,
        'P35',
        `of ${what} is told ${told?.body}; it was ${body}`,
      );
      this.#world.mark('hook told');
    }
  }
}
