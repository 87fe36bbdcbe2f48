/**
 * Puts into the outbox what hooks want to hear of runs (P35). It is asked by the projector before documents are written, with
 * what has been committed since the last ones, so that what a document stands for is in the outbox.
 *
 *  ANNOUNCER-1 A run's events up to the version of its document in the store have been announced; those behind it may have been, and
 *     are inserted again, which changes nothing.
 *  ANNOUNCER-2 A hook whose outbox is full costs its tenant: what comes on top is left out and said, and nobody waits for room.
 */
import { announcementBody, announcementsIn, evolve, type Announcement, type RunEvent } from '@penstock/run';
import type { HookBacklog, HookSubscription, NewHookDelivery, RunsLedger } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import type { LiveRun } from '../run/live-run.ts';
import type { DirtyRun } from '../partition/projection-backlog.ts';

export interface HookAnnouncerOptions {
  readonly ledger: Pick<RunsLedger, 'hooksOf' | 'addHookDeliveries' | 'hookBacklog'>;
  readonly log: Pick<Log, 'warn' | 'error'>;
  /** The boot clock, and milliseconds since 1970. */
  readonly bootNow: () => number;
  readonly wallNow: () => number;
  /** Gives others a turn. */
  readonly turn: () => Promise<void>;
  /** Something waits to be sent for these. */
  readonly onWaiting: (hooks: readonly string[]) => void;
  readonly onLeftOut: (count: number) => void;
}

interface Captured {
  readonly run: LiveRun;
  readonly events: readonly RunEvent[];
  readonly announcements: readonly Announcement[];
}

/** What may wait for one hook: of a receiver that is away for long, and of a tenant with many runs. */
const BACKLOG_MAX: HookBacklog = { deliveries: 10_000, bytes: 64 * 1024 * 1024 };
/** A hook's outbox is measured at most this often; meanwhile it may grow beyond its bound by what its tenant does in the time. */
const MEASURE_MS = 10_000;
const MEASURED_MAX = 10_000;
/** Of bodies that are made before they are written. */
const CHARACTERS_AT_ONCE = 4 * 1024 * 1024;
/** Events whose bodies are made without giving the event loop back. */
const SLICE = 32;

export class HookAnnouncer {
  readonly #options: HookAnnouncerOptions;
  readonly #measured = new Map<string, { readonly at: number; readonly isFull: boolean }>();

  constructor(options: HookAnnouncerOptions) {
    this.#options = options;
  }

  /** Throws what the store does; then nothing of it counts as announced. */
  async announce(dirty: readonly Pick<DirtyRun, 'run' | 'events'>[]): Promise<void> {
    const captured = dirty.flatMap(({ run, events }): Captured[] => {
      const announcements = announcementsIn(events, run.announcedVersion);
      return announcements.length === 0 ? [] : [{ run, events, announcements }];
    });
    if (captured.length > 0) await this.#add(captured);
    for (const { run, events } of dirty) run.announcedVersion = events.length;
  }

  async #add(captured: readonly Captured[]): Promise<void> {
    const { ledger, onWaiting } = this.#options;
    const hooks = await ledger.hooksOf([...new Set(captured.map(({ run }) => run.state.tenant))]);
    if (hooks.length === 0) return;
    const byTenant = Map.groupBy(hooks, ({ tenant }) => tenant);
    let deliveries: NewHookDelivery[] = [];
    let characters = 0;
    let inSlice = 0;
    const waiting = new Set<string>();
    const write = async (): Promise<void> => {
      await ledger.addHookDeliveries(deliveries);
      deliveries = [];
      characters = 0;
    };
    for (const each of captured) {
      const wanted = await this.#withRoom(byTenant.get(each.run.state.tenant) ?? [], each);
      if (wanted.length === 0) continue;
      for (const some of this.#deliveriesOf(each, wanted)) {
        deliveries.push(...some);
        for (const { hook, body } of some) {
          waiting.add(hook);
          characters += body.length;
        }
        if (characters >= CHARACTERS_AT_ONCE) await write();
        inSlice += 1;
        if (inSlice % SLICE === 0) await this.#options.turn();
      }
    }
    if (deliveries.length > 0) await write();
    if (waiting.size > 0) onWaiting([...waiting]);
  }

  /** Those that want to hear something of it, and have room for it. */
  async #withRoom(hooks: readonly HookSubscription[], { run, announcements }: Captured): Promise<HookSubscription[]> {
    const { provider = '', repository = '' } = run.state.origin;
    const found: HookSubscription[] = [];
    for (const hook of hooks) {
      if (hook.repository !== '' && hook.repository.toLowerCase() !== `${provider}/${repository}`.toLowerCase())
        continue;
      const count = announcements.filter(({ type }) => hook.events.includes(type)).length;
      if (count === 0) continue;
      if (await this.#isFull(hook)) this.#options.onLeftOut(count);
      else found.push(hook);
    }
    return found;
  }

  async #isFull({ id, tenant }: HookSubscription): Promise<boolean> {
    const { ledger, log, bootNow } = this.#options;
    const known = this.#measured.get(id);
    if (known !== undefined && bootNow() - known.at < MEASURE_MS) return known.isFull;
    const { deliveries, bytes } = await ledger.hookBacklog(id, BACKLOG_MAX);
    const isFull = deliveries >= BACKLOG_MAX.deliveries || bytes >= BACKLOG_MAX.bytes;
    if (isFull && known?.isFull !== true)
      log.warn({ hook: id, tenant, deliveries, bytes }, 'the outbox of a webhook is full: further events are left out');
    if (this.#measured.size >= MEASURED_MAX) this.#measured.clear();
    this.#measured.set(id, { at: bootNow(), isFull });
    return isFull;
  }

  /** Those of one event after those of another, for a run may have thousands. What cannot be told of one run costs no other. */
  *#deliveriesOf(
    { run, events, announcements }: Captured,
    hooks: readonly HookSubscription[],
  ): Generator<readonly NewHookDelivery[]> {
    const { wallNow, log } = this.#options;
    try {
      const wanted = announcements.filter(({ type }) => hooks.some((hook) => hook.events.includes(type)));
      const [first] = wanted;
      if (first === undefined) return;
      const state = run.stateAt(first.version);
      for (const announcement of wanted) {
        const { version, type: event } = announcement;
        while (state.version < version) evolve(state, events[state.version] as RunEvent);
        const body = JSON.stringify(announcementBody(announcement, state)).toWellFormed();
        yield hooks
          .filter((hook) => hook.events.includes(event))
          .map((hook) => ({ hook: hook.id, run: run.id, version, event, body, createdAt: wallNow() }));
      }
    } catch (error) {
      log.error(
        { err: error, runId: run.id },
        'webhooks are not told of these events of a run, for it cannot be folded',
      );
    }
  }
}
