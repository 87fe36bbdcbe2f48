/**
 * Finds the hooks for which something waits, and has one worker for each. Any number of ingests do so; which of them sends for a hook is
 * settled by the hook's state (`hook-worker.ts`).
 */
import { randomUUID } from 'node:crypto';
import { backoffMs, bootMs, BoundedQueue, pauseOrAbort } from '@penstock/async';
import { subjects, type Bus, type BusSubscription, type HooksWaiting } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';
import { HookWorker, HOLDER_GONE_MS, type HookWorkerOptions } from './hook-worker.ts';
import type { HooksRepository } from './hooks-repository.ts';
import type { Outbox } from './outbox.ts';
import type { Posted } from './post.ts';

export interface HookSenderOptions {
  readonly bus: Pick<Bus, 'subscribe'>;
  readonly hooks: HooksRepository;
  readonly outbox: Outbox;
  readonly post: (...request: [...Parameters<HookWorkerOptions['post']>, AbortSignal]) => Promise<Posted>;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly meter: Meter;
  now(): number;
  /** Default the machine's boot clock. */
  readonly bootNow?: (() => number) | undefined;
  /** How often it looks for what nobody has told it of; default 5 s. */
  readonly lookMs?: number | undefined;
}

const LOOK_MS = 5_000;
const SWEEP_MS = 60 * 60 * 1_000;
/** Requests under way: of all, and of one tenant, whose receivers may all hang. */
const REQUESTS_MAX = 128;
const REQUESTS_PER_TENANT_MAX = 4;
/** Hooks that are worked off or known to wait; more are found again by a later look. */
const HOOKS_MAX = 5_000;
const RETRY = { firstMs: 1_000, maxMs: 60_000 };

export class HookSender {
  readonly #options: HookSenderOptions;
  readonly #holder = randomUUID();
  readonly #stopped = new AbortController();
  readonly #requests = new BoundedQueue({ atOnce: REQUESTS_MAX });
  readonly #tenants = new Map<string, { readonly queue: BoundedQueue; users: number }>();
  /** Those that are worked off now; true: told of once more meanwhile. */
  readonly #working = new Map<string, { again: boolean; readonly done: Promise<void> }>();
  /** Until when nothing of these is due, by the boot clock. */
  readonly #resting = new Map<string, number>();
  /** Who holds a hook, as this process has seen it: since when its state has not changed. */
  readonly #seen = new Map<string, { readonly revision: number; readonly at: number }>();
  readonly #failures = new Map<string, number>();
  #subscription: BusSubscription | undefined;
  #looking: Promise<void> | undefined;

  constructor(options: HookSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#subscription = this.#options.bus.subscribe<HooksWaiting>(subjects.hooksWaiting, ({ hooks }) => {
      if (Array.isArray(hooks)) for (const hook of hooks) this.wake(String(hook));
    });
    this.#looking = this.#look();
  }

  /** Requests under way are given up: who goes on sends them again. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#subscription?.stop();
    await this.#looking;
    await Promise.all([...this.#working.values()].map(({ done }) => done));
  }

  /** Something waits for the hook that did not before. */
  wake(hook: string): void {
    this.#resting.delete(hook);
    this.#begin(hook);
  }

  async #look(): Promise<void> {
    const { log, outbox, now, lookMs = LOOK_MS } = this.#options;
    const { signal } = this.#stopped;
    let sweepAt = this.#boot();
    while (!signal.aborted) {
      try {
        for (
          let hook = await outbox.nextHook('');
          hook !== undefined && !signal.aborted;
          hook = await outbox.nextHook(hook)
        ) {
          if (!this.#working.has(hook) && (this.#resting.get(hook) ?? 0) <= this.#boot()) this.#begin(hook);
        }
        if (this.#boot() >= sweepAt) {
          await outbox.sweep(now());
          sweepAt = this.#boot() + SWEEP_MS;
        }
      } catch (error) {
        log.warn({ err: error }, 'the outbox of webhooks could not be looked through; tried again');
      }
      await pauseOrAbort(lookMs, signal);
    }
  }

  #begin(hook: string): void {
    const working = this.#working.get(hook);
    if (working !== undefined) {
      working.again = true;
      return;
    }
    if (this.#stopped.signal.aborted || this.#working.size >= HOOKS_MAX) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const entry = { again: false, done: promise };
    this.#working.set(hook, entry);
    void this.#work(hook).finally(() => {
      this.#working.delete(hook);
      resolve();
      if (entry.again) this.wake(hook);
    });
  }

  async #work(id: string): Promise<void> {
    const { hooks, log } = this.#options;
    try {
      const state = await hooks.state(id);
      if (!this.#isFree(id, state)) return;
      const worker = new HookWorker(id, this.#workerOptions());
      const worked = await worker.work(state, this.#stopped.signal);
      this.#failures.delete(id);
      if (worked.next === 'later') this.#rest(id, worked.afterMs);
    } catch (error) {
      const failures = (this.#failures.get(id) ?? 0) + 1;
      this.#failures.set(id, failures);
      log.warn({ err: error, hook: id }, 'what waits for a webhook could not be worked off; tried again');
      this.#rest(id, backoffMs(failures, RETRY));
    }
  }

  /** HOOK-1: nobody holds it, or who did has not been heard of for long enough. */
  #isFree(id: string, { holder, revision }: { readonly holder: string; readonly revision: number }): boolean {
    const seen = this.#seen.get(id);
    // Its own is that of a worker here that has thrown.
    if (holder === '' || holder === this.#holder) {
      this.#seen.delete(id);
      return true;
    }
    if (seen?.revision === revision) return this.#boot() - seen.at >= HOLDER_GONE_MS;
    bounded(this.#seen).set(id, { revision, at: this.#boot() });
    return false;
  }

  #rest(id: string, afterMs: number): void {
    bounded(this.#resting).set(id, this.#boot() + afterMs);
  }

  #workerOptions(): HookWorkerOptions {
    const { hooks, outbox, post, log, meter, now } = this.#options;
    return {
      hooks,
      outbox,
      post: (url, headers, body) => post(url, headers, body, this.#stopped.signal),
      log,
      meter,
      now,
      holder: this.#holder,
      bootNow: () => this.#boot(),
      inTurn: (tenant, work) => this.#inTurn(tenant, work),
    };
  }

  async #inTurn<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    const entry = this.#tenants.get(tenant) ?? {
      queue: new BoundedQueue({ atOnce: REQUESTS_PER_TENANT_MAX }),
      users: 0,
    };
    this.#tenants.set(tenant, entry);
    entry.users += 1;
    try {
      return await entry.queue.run(() => this.#requests.run(work));
    } finally {
      entry.users -= 1;
      if (entry.users === 0) this.#tenants.delete(tenant);
    }
  }

  #boot(): number {
    return (this.#options.bootNow ?? bootMs)();
  }
}

/** What is remembered only saves looks. */
function bounded<V>(map: Map<string, V>): Map<string, V> {
  if (map.size >= HOOKS_MAX) map.clear();
  return map;
}
