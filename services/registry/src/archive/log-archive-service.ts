/** The archive of logs as a part of a running registry: when it works, what it says of it, and its answers to gateways. */
import { machineTime, type Time } from '@penstock/async';
import { loggedRuns, purgeLogs, readChunks, type Bus, type BusSubscription } from '@penstock/bus';
import type { ObjectStore } from '@penstock/object-store';
import { answerCalls } from '@penstock/service';
import { LogArchive, type DocumentStore } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { LogArchiver } from './archiver.ts';
import { sweepPacks } from './pack-sweep.ts';
import { type PackPart, Packs } from './packs.ts';

export interface LogArchiveOptions {
  readonly bus: Bus;
  readonly store: DocumentStore;
  readonly objects: ObjectStore;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly logRetentionMs: number;
  readonly time?: Pick<Time, 'bootNow' | 'wallNow'> | undefined;
}

/** So soon, for how full `LOGS` is is seen by a pass alone; the first one lets a server begin. */
const EVERY_MS = 60_000;
const SWEEP_MS = 60 * 60_000;
/** A pass looks at all that `LOGS` has, a sweep at all that is archived: neither takes more than a share of the time, however much that is. */
const SHARE = 20;

export class LogArchiveService {
  readonly #log: LogArchiveOptions['log'];
  readonly #time: Pick<Time, 'bootNow' | 'wallNow'>;
  readonly #archiver: LogArchiver;
  readonly #sweepParts: Parameters<typeof sweepPacks>[0];
  readonly #packs: Packs;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  readonly #subscription: BusSubscription;
  #working: Promise<void> | undefined;
  #isFailing = false;
  #sweepAt = -Infinity;

  constructor(options: LogArchiveOptions) {
    const { bus, store, objects, log, logRetentionMs, time = machineTime } = options;
    this.#log = log;
    this.#time = time;
    this.#packs = new Packs(objects);
    const archive = new LogArchive(store);
    this.#archiver = new LogArchiver({
      archive,
      objects,
      log,
      time,
      logs: {
        runs: () => loggedRuns(bus),
        chunks: (runId, signal) => readChunks(bus, runId, 1, signal),
        purge: (runId) => purgeLogs(bus, runId),
      },
    });
    this.#sweepParts = { archive, objects, packs: this.#packs, time, log, logRetentionMs };
    this.#subscription = answerCalls(bus, 'registry', {
      'log.part': async (part: PackPart) => ({ data: await this.#packs.part(part) }),
    });
    this.#workLater(EVERY_MS);
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    this.#subscription.stop();
    await this.#working;
  }

  /** Resolves when a pass, this one or that under way, is over. Never rejects: what fails is tried again by the next one, and said once. */
  work(): Promise<void> {
    this.#working ??= this.#pass().finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  #workLater(milliseconds: number): void {
    if (this.#stopped.signal.aborted) return;
    this.#timer = setTimeout(() => {
      const startedAt = this.#time.bootNow();
      void this.work().then(() => this.#workLater(Math.max(EVERY_MS, SHARE * (this.#time.bootNow() - startedAt))));
    }, milliseconds).unref();
  }

  async #pass(): Promise<void> {
    const log = this.#log;
    const { signal } = this.#stopped;
    try {
      const done = await this.#archiver.pass(signal);
      if (done.runs + done.purged > 0) log.info({ ...done }, 'archived logs of ended runs');
      const startedAt = this.#time.bootNow();
      if (startedAt >= this.#sweepAt && !signal.aborted) {
        const swept = await sweepPacks(this.#sweepParts, signal);
        const now = this.#time.bootNow();
        this.#sweepAt = now + Math.max(SWEEP_MS, SHARE * (now - startedAt));
        if (Object.values(swept).some((count) => count > 0)) log.info({ ...swept }, 'swept archived logs');
      }
      if (this.#isFailing) log.info({}, 'logs of ended runs are archived again');
      this.#isFailing = false;
    } catch (error) {
      if (signal.aborted) return;
      if (!this.#isFailing)
        log.warn({ err: error }, 'logs of ended runs are not archived; they stay in LOGS, and it is tried again');
      this.#isFailing = true;
    }
  }
}
