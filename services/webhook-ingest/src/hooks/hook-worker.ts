/**
 * Sends what waits for one hook. It owns the hook's state while it holds it; the outbox's rows it only marks.
 *
 *  HOOK-1 One worker at a time sends for a hook. It holds it by the hook's state, which it writes again every few seconds; another takes
 *     it over when that has not changed for longer than any request of the last one can live, by its own boot clock. So one delivery of
 *     a run is under way at a time, unless a process stood still between its last look at the clock and its request.
 *  HOOK-2 A delivery is marked after it was answered: killed in between, it is sent again, with the same `webhook-id`.
 *  HOOK-3 The deliveries of a run go in the order of its events. One that fails holds up those behind it, until it is taken or dead; other
 *     runs go on.
 *  HOOK-4 A delivery that is not taken for three days is dead. A hook of which nothing is taken for three days is switched off, and
 *     so is one that answers 410; then what waits is dead, and only what somebody asks for again is tried, once. If it is taken, the hook is on.
 */
import { backoffMs } from '@penstock/async';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';
import type { HooksRepository, HookState, SendingHook } from './hooks-repository.ts';
import type { Outbox, OutboxRow } from './outbox.ts';
import type { Posted } from './post.ts';
import { POST_MS_MAX } from './post.ts';
import { signedHeaders } from './signature.ts';

export interface HookWorkerOptions {
  readonly hooks: HooksRepository;
  readonly outbox: Outbox;
  /** Unique among those who may send. */
  readonly holder: string;
  /** Waits for a place among the requests of this tenant, and of all. */
  inTurn<T>(tenant: string, work: () => Promise<T>): Promise<T>;
  post(url: string, headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<Posted>;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly meter: Meter;
  /** Milliseconds since 1970, and the boot clock. */
  now(): number;
  bootNow(): number;
}

/** How it ended: it waits for nothing any more, or the next attempt is due after so long; or somebody else holds the hook. */
export type Worked =
  | { readonly next: 'nothing' }
  | { readonly next: 'later'; readonly afterMs: number }
  | { readonly next: 'lost' };

/** A holder that has written its state so long ago sends nothing more; then its last request needs POST_MS_MAX at most. */
const HOLD_MS = 10_000;
const RENEW_MS = 4_000;
/** HOOK-1 */
export const HOLDER_GONE_MS = HOLD_MS + POST_MS_MAX + 5_000;

const BACKOFF = { firstMs: 5_000, maxMs: 60 * 60 * 1_000 };
const GIVEN_UP_MS = 3 * 24 * 60 * 60 * 1_000;
/** A clock that was set ahead must not switch hooks off by one failure. */
const FAILURES_MIN = 10;
/** Runs of a hook that are sent for at a time; one where it fails. */
const RUNS_AT_ONCE = 4;
const FAILING_AFTER = 3;
const PAGE = 100;
const TRIM_AFTER = 200;
const SWITCHED_OFF = 'the webhook was switched off';

export class HookWorker {
  readonly #options: HookWorkerOptions;
  readonly #id: string;
  #state: HookState | undefined;
  #heldUntil = 0;
  #writing: Promise<unknown> = Promise.resolve();
  #earliest = Number.POSITIVE_INFINITY;
  #ended = 0;

  constructor(id: string, options: HookWorkerOptions) {
    this.#id = id;
    this.#options = options;
  }

  /** `state` as it was read by who found the hook free. Throws what the store does; then the hook is another's after a while. */
  async work(state: HookState, signal: AbortSignal): Promise<Worked> {
    const { hooks, outbox, holder, now } = this.#options;
    this.#state = state;
    if (!(await this.#write({ holder }))) return { next: 'lost' };
    for (;;) {
      const hook = await hooks.sending(this.#id);
      if (hook === null) {
        await hooks.forget(this.#id);
        return { next: 'nothing' };
      }
      this.#earliest = Number.POSITIVE_INFINITY;
      const sent = await this.#pass(hook, signal);
      if (!this.#isHeld && !(await this.#write({}))) return { next: 'lost' };
      if (sent > 0 && !signal.aborted) continue;
      if (this.#ended >= TRIM_AFTER) {
        await outbox.trim(this.#id);
        this.#ended = 0;
      }
      if (!(await this.#write({ holder: '' }))) return { next: 'lost' };
      // What was added before the state was written has told nobody who would listen.
      if (this.#earliest === Number.POSITIVE_INFINITY) return { next: 'nothing' };
      return { next: 'later', afterMs: Math.max(0, this.#earliest - now()) };
    }
  }

  get #isHeld(): boolean {
    return this.#options.bootNow() < this.#heldUntil;
  }

  /** Goes once through everything that waits; answers how many deliveries have ended. */
  async #pass(hook: SendingHook, signal: AbortSignal): Promise<number> {
    const { outbox } = this.#options;
    const blocked = new Set<string>();
    const before = this.#ended;
    for (let after = ''; !signal.aborted;) {
      const page = await outbox.waiting(this.#id, after, PAGE);
      const runs = Map.groupBy(
        page.filter(({ run }) => !blocked.has(run)),
        ({ run }) => run,
      );
      const rest = [...runs];
      const atOnce = (this.#state?.failures ?? 0) >= FAILING_AFTER ? 1 : RUNS_AT_ONCE;
      const settled = await Promise.allSettled(
        Array.from({ length: atOnce }, async () => {
          for (let next = rest.shift(); next !== undefined && !signal.aborted; next = rest.shift())
            if (!(await this.#sendRun(hook, next[1], signal))) blocked.add(next[0]);
        }),
      );
      // Only when no request is under way any more: the next worker may be here at once.
      for (const each of settled) if (each.status === 'rejected') throw each.reason;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE || !(await this.#renew())) break;
      after = blocked.has(last.run) ? outbox.afterRun(last) : last.id;
    }
    return this.#ended - before;
  }

  /** HOOK-3. False: what is behind these has to wait too. */
  async #sendRun(hook: SendingHook, rows: readonly OutboxRow[], signal: AbortSignal): Promise<boolean> {
    for (const { id, dueAt } of rows) {
      if (signal.aborted || !(await this.#renew())) return false;
      const now = this.#options.now();
      // Of a clock that was set back since, no more than the longest wait is believed.
      if (dueAt > now && dueAt - now <= BACKOFF.maxMs) {
        this.#earliest = Math.min(this.#earliest, dueAt);
        return false;
      }
      if (!(await this.#options.inTurn(hook.tenant, () => this.#send(hook, id, signal)))) return false;
    }
    return true;
  }

  /** True: it has ended, taken or dead. */
  async #send(hook: SendingHook, id: string, signal: AbortSignal): Promise<boolean> {
    const { outbox, meter, now, bootNow } = this.#options;
    const row = await outbox.get(id);
    if (row === null || !row.open) return true;
    // Waiting for a turn may have taken long.
    if (signal.aborted || !this.#isHeld) return false;
    const isOff = (this.#state?.switchedOffAt ?? 0) > 0;
    if (isOff && !row.asked) return await this.#end(row, { why: SWITCHED_OFF });
    const triedAt = now();
    const begunAt = bootNow();
    const body = Buffer.from(String(row.body));
    const posted: Posted =
      hook.secret === null
        ? {
            outcome: 'failed',
            status: 0,
            why: 'its secret cannot be read by this server: make the webhook anew',
            retryAfterMs: 0,
          }
        : await this.#options.post(hook.url, signedHeaders(row.id, triedAt, body, hook.secret), body);
    if (signal.aborted && posted.outcome !== 'taken') return false;
    const answer = {
      attempts: row.attempts + 1,
      triedAt,
      status: posted.status,
      answerMs: Math.round(bootNow() - begunAt),
      why: posted.why,
    };
    if (posted.outcome === 'taken') {
      meter.add('penstock_outgoing_total', { outcome: 'taken' });
      await this.#succeeded();
      return await this.#end(row, { ...answer, taken: true });
    }
    meter.add('penstock_outgoing_total', { outcome: 'failed' });
    await this.#failed(hook, posted);
    if (isOff || posted.outcome === 'gone' || now() - row.createdAt >= GIVEN_UP_MS) return await this.#end(row, answer);
    const afterMs = Math.ceil(Math.max(posted.retryAfterMs, backoffMs(answer.attempts, BACKOFF)));
    const dueAt = now() + afterMs;
    this.#earliest = Math.min(this.#earliest, dueAt);
    await outbox.change(row, { ...answer, dueAt });
    return false;
  }

  async #end(row: Parameters<Outbox['change']>[0], change: Parameters<Outbox['change']>[1]): Promise<true> {
    const { outbox, meter, now } = this.#options;
    await outbox.change(row, { ...change, open: false, asked: false, endedAt: now() });
    if (change.taken !== true) meter.add('penstock_outgoing_total', { outcome: 'dead' });
    this.#ended += 1;
    return true;
  }

  async #succeeded(): Promise<void> {
    const { failures = 0, switchedOffAt = 0 } = this.#state ?? {};
    if (failures === 0 && switchedOffAt === 0) return;
    if (switchedOffAt > 0) this.#options.log.info({ hook: this.#id }, 'a webhook that was switched off is on again');
    await this.#write({ failures: 0, failingSince: 0, switchedOffAt: 0, why: '' });
  }

  async #failed({ tenant }: SendingHook, { outcome, why }: Posted): Promise<void> {
    const { log, now } = this.#options;
    const { failures = 0, failingSince = 0, switchedOffAt = 0 } = this.#state ?? {};
    const since = failingSince === 0 ? now() : failingSince;
    const isOver = outcome === 'gone' || (now() - since >= GIVEN_UP_MS && failures + 1 >= FAILURES_MIN);
    const isSwitchedOff = switchedOffAt === 0 && isOver;
    if (failures === 0) log.info({ hook: this.#id, tenant, why }, 'a webhook was not taken; it is tried again');
    if (isSwitchedOff)
      log.warn({ hook: this.#id, tenant, why }, 'a webhook is switched off, for nothing is taken any more');
    await this.#write({
      failures: failures + 1,
      failingSince: since,
      why,
      ...(isSwitchedOff ? { switchedOffAt: now() } : {}),
    });
  }

  /** False: another has it, or it could not be written in time. */
  async #renew(): Promise<boolean> {
    if (this.#options.bootNow() < this.#heldUntil - (HOLD_MS - RENEW_MS)) return true;
    return await this.#write({});
  }

  /** One after the other. HOOK-1: counted from before it is sent. */
  #write(change: Partial<HookState>): Promise<boolean> {
    const written = this.#writing.then(async () => {
      const { hooks, bootNow } = this.#options;
      if (this.#state === undefined) return false;
      const sentAt = bootNow();
      const next = await hooks.writeState({ ...this.#state, ...change });
      if (next === null) this.#state = undefined;
      else this.#state = next;
      this.#heldUntil = next === null ? 0 : sentAt + HOLD_MS;
      return next !== null;
    });
    this.#writing = written.catch(() => {});
    return written;
  }
}
