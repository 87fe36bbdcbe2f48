/**
 * Waiting for what becomes of a delivery. It owns the waits of this ingest, whoever processes what they wait for. What
 * was missed of the messages about decisions is asked of the store.
 */
import { subjects, type Bus, type BusSubscription } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { isEnded, type RunView } from '@penstock/run';
import { waitForRunEnd, type RunEndSources } from '@penstock/run-client';
import { within } from '@penstock/async';
import type { DeliveriesRepository } from '../model/deliveries-repository.ts';
import type { Delivery } from '../model/delivery.ts';
import {
  capitalised,
  summaryOfDecision,
  type DecidedMessage,
  type DecidedSummary,
  type WebhookResult,
} from '../model/outcome.ts';

export type Outcome = Pick<WebhookResult, 'run_id' | 'status' | 'source' | 'error'>;

export interface OutcomeWaitsOptions extends RunEndSources {
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  /** Requests that wait at a time; beyond it they are answered at once. */
  readonly waitsMax?: number | undefined;
}

const WAITS_MAX = 2_000;
/** How late a decision is seen where the message about it was lost. */
const ASK_MS = 2_000;
/** What a look at the store may take where who waits has had all of its time. */
const LOOK_MS = 1_000;
/** The first one's sender has been answered by then. */
const LATE_RETRY_SECS = 10;

export class OutcomeWaits {
  readonly #options: OutcomeWaitsOptions;
  readonly #waits = new Map<string, Set<(decided: DecidedSummary) => void>>();
  readonly #subscription: BusSubscription;
  readonly #stopped = new AbortController();
  #count = 0;

  constructor(options: OutcomeWaitsOptions) {
    this.#options = options;
    this.#subscription = options.bus.subscribe<DecidedMessage>(subjects.decided, ({ runId, decided }) => {
      for (const resolve of this.#waits.get(runId) ?? []) resolve(decided);
    });
  }

  get full(): boolean {
    return this.#count >= (this.#options.waitsMax ?? WAITS_MAX);
  }

  /**
   * Begins to listen; what happens from now on is not missed. `until` answers at the outcome, at the latest after so many
   * milliseconds, or when aborted; it throws `Unavailable` where the outcome is not known then and the run's id may not be promised yet:
   * `mayPromise` says so of the end of the time, and a server that stops never has it.
   * `stop` has to be called in any case.
   */
  begin(delivery: Pick<Delivery, 'id' | 'runId' | 'tenant'>): {
    until(untilMs: number, signal: AbortSignal, mayPromise?: boolean): Promise<Outcome>;
    stop(): void;
  } {
    const { id, runId, tenant } = delivery;
    this.#count += 1;
    const decided = Promise.withResolvers<DecidedSummary>();
    const waits = this.#waits.get(runId) ?? new Set();
    this.#waits.set(runId, waits.add(decided.resolve));
    const end = waitForRunEnd(this.#options, runId, tenant);
    let isAsking = false;
    const ask = async (): Promise<void> => {
      if (isAsking) return;
      isAsking = true;
      const known = await this.#ask(id, runId);
      isAsking = false;
      if (known !== null) decided.resolve(known);
    };
    const asking = setInterval(() => void ask(), ASK_MS);
    return {
      until: async (untilMs, given, mayPromise = true) => {
        const signal = AbortSignal.any([given, this.#stopped.signal]);
        const deadline = performance.now() + untilMs;
        const leftMs = (): number => Math.max(0, deadline - performance.now());
        // Of all looks together.
        const lookMs = (): number => Math.max(0, deadline + LOOK_MS - performance.now());
        void ask();
        // The store is asked at the end too: what was decided by then may be that there is no run to promise.
        const known =
          (await within(untilMs, decided.promise, () => null, signal)) ??
          (await within(lookMs(), this.#ask(id, runId), () => null));
        if (known === null && this.#stopped.signal.aborted)
          throw new Unavailable('This server is shutting down; send the delivery again.', { retryAfterSecs: 1 });
        if (known === null && !mayPromise)
          throw new Unavailable('What becomes of this delivery is not known in time; send it again.', {
            retryAfterSecs: LATE_RETRY_SECS,
          });
        if (known === null) return { run_id: runId, status: 'Pending', source: 'none' };
        if (known.kind === 'nothing')
          return { run_id: null, status: known.status ?? 'Skipped', source: known.source, error: known.error };
        if (known.kind === 'ended')
          return { run_id: runId, status: known.status ?? 'Skipped', source: known.source, error: known.error };
        const status = await this.#statusOf(runId, tenant, end, { leftMs, lookMs, signal });
        // Its month may have been used up: then the decision was revised after we had read it.
        const error =
          status === 'Failed' ? (await within(lookMs(), this.#ask(id, runId), () => null))?.error : undefined;
        return { run_id: runId, status, source: known.source, error };
      },
      stop: () => {
        this.#count -= 1;
        clearInterval(asking);
        waits.delete(decided.resolve);
        if (waits.size === 0) this.#waits.delete(runId);
        end.stop();
      },
    };
  }

  /** Those that wait for a run answer now, those that wait for a decision are refused. */
  stop(): void {
    this.#stopped.abort();
    this.#subscription.stop();
  }

  /** The run exists when this is asked. It may have ended before anybody listened. */
  async #statusOf(
    runId: string,
    tenant: string,
    end: ReturnType<typeof waitForRunEnd>,
    {
      leftMs,
      lookMs,
      signal,
    }: { readonly leftMs: () => number; readonly lookMs: () => number; readonly signal: AbortSignal },
  ): Promise<string> {
    const { reads } = this.#options;
    const look = (): Promise<RunView | null> =>
      within(
        lookMs(),
        reads.view(runId, [tenant]).catch(() => null),
        () => null,
      );
    const before = await look();
    if (before !== null && isEnded(before.status)) return capitalised(before.status);
    await end.until(leftMs(), signal);
    const view = (await look()) ?? before;
    return view === null ? 'Pending' : capitalised(view.status);
  }

  async #ask(id: string, runId: string): Promise<DecidedSummary | null> {
    const known = await this.#options.deliveries.get(id).catch(() => null);
    // Where it is another run, the store says what became of the first delivery, and this is one that came again.
    return known === null || known.delivery.runId !== runId ? null : summaryOfDecision(known.decision);
  }
}
