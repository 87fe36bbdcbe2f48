/**
 * What waits for sessions that serve one run and no other (`penstock runner --once`, P11). Owns which session has named which run, and of those
 * runs the stages that were offered; their lanes and counts are `Dispatch`'s.
 *
 *  NAMED-1 A session that has named a run is given nothing else for as long as it lives, and names no second one.
 *  NAMED-2 What is taken here is left in its lane, which lets go of it once a look at all queues that began later (`idle-walk.ts`) comes to it: a
 *     second later, or where there are very many queues up to a minute.
 */
import { canTake, type Session } from './sessions.ts';
import type { ReadyStages } from './ready-stage.ts';

interface NamedRun {
  readonly sessions: Set<Session>;
  /** With how many of each have been looked at: what has been granted does not wait there again. */
  readonly stages: Map<ReadyStages, number>;
}

export class NamedRuns {
  readonly #runs = new Map<string, NamedRun>();
  readonly #ofSession = new Map<Session, string>();

  has(session: Session): boolean {
    return this.#ofSession.has(session);
  }

  /** `waiting`: looked through where nobody has named the run before. */
  name(session: Session, runId: string, waiting: () => Iterable<ReadyStages>): void {
    if (this.#ofSession.has(session)) return;
    this.#ofSession.set(session, runId);
    let named = this.#runs.get(runId);
    if (named === undefined) {
      named = { sessions: new Set(), stages: new Map() };
      this.#runs.set(runId, named);
      for (const stages of waiting()) if (stages.runId === runId) named.stages.set(stages, 0);
    }
    named.sessions.add(session);
  }

  offered(stages: ReadyStages): void {
    if (stages.runId !== undefined) this.#runs.get(stages.runId)?.stages.set(stages, 0);
  }

  gone(session: Session): void {
    const runId = this.#ofSession.get(session);
    if (runId === undefined) return;
    this.#ofSession.delete(session);
    const named = this.#runs.get(runId);
    named?.sessions.delete(session);
    if (named?.sessions.size === 0) this.#runs.delete(runId);
  }

  /** The first stage of its run that it can take; `isOut`: not now. */
  pick(
    session: Session,
    isOut: (stages: ReadyStages) => boolean,
  ): { readonly stages: ReadyStages; readonly index: number } | undefined {
    const named = this.#runs.get(this.#ofSession.get(session) ?? '');
    for (const [stages, looked] of named?.stages ?? []) {
      let index = looked;
      while (index < stages.count && !stages.waits(index)) index += 1;
      if (index === stages.count) {
        named?.stages.delete(stages);
        continue;
      }
      named?.stages.set(stages, index);
      const { labels, least } = stages;
      if (!canTake(session, { runner: stages.boundTo(), labels, least }) || isOut(stages)) continue;
      named?.stages.set(stages, index + 1);
      return { stages, index };
    }
    return undefined;
  }
}
