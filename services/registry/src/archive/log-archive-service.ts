/** The archive of logs as a part of a running registry: when it works, what it says of it, and its answers to gateways. */
import { machineTime, type Time } from '@penstock/async';
import {
  chunkBytes,
  loggedRuns,
  logsRoom,
  purgeLogs,
  readAllChunks,
  type Bus,
  type BusSubscription,
} from '@penstock/bus';
import type { ObjectStore } from '@penstock/object-store';
import { answerCalls } from '@penstock/service';
import { LogArchive, type DocumentStore } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { LogArchiver, TIGHT_SHARE } from './archiver.ts';
import { LogRelief } from './log-relief.ts';
import { isOutage } from './outages.ts';
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

/** The first one lets a server begin. */
const EVERY_MS = 60_000;
/** After a look at how full `LOGS` is that came to nothing. */
const LOOK_MS = 5_000;
const SWEEP_MS = 60 * 60_000;
/** A pass looks at all that `LOGS` has, a sweep at all that is archived: neither takes more than a share of the time, however much that is. */
const SHARE = 20;
/** The same for those that are in haste, as `LOGS` fills up. */
const SHARE_IN_HASTE = 3;

export class LogArchiveService {
  readonly #log: LogArchiveOptions['log'];
  readonly #time: Pick<Time, 'bootNow' | 'wallNow'>;
  readonly #archiver: LogArchiver;
  readonly #relief: LogRelief;
  readonly #sweepParts: Parameters<typeof sweepPacks>[0];
  readonly #packs: Packs;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #lookTimer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  readonly #subscription: BusSubscription;
  #working: Promise<void> | undefined;
  /** Not before this: a pass in haste. */
  #hasteFrom = -Infinity;
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
        chunks: (runId, signal) => readAllChunks(bus, runId, 1, signal),
        purge: (runId) => purgeLogs(bus, runId),
      },
    });
    this.#relief = new LogRelief({
      archive,
      log,
      time,
      logs: {
        room: () => logsRoom(bus),
        runs: () => loggedRuns(bus),
        chunkBytes: (runId) => chunkBytes(bus, runId),
        purge: (runId, keep) => purgeLogs(bus, runId, keep),
      },
    });
    this.#sweepParts = { archive, objects, packs: this.#packs, time, log, logRetentionMs };
    this.#subscription = answerCalls(bus, 'registry', {
      'log.part': async (part: PackPart) => ({ data: await this.#packs.part(part) }),
    });
    this.#workLater(EVERY_MS);
    this.#lookLater();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#lookTimer);
    this.#subscription.stop();
    await this.#looking;
    await this.#working;
  }

  /** Resolves when a pass, this one or that under way, is over. Never rejects: what fails is tried again by the next one, and said once. */
  work(): Promise<void> {
    const startedAt = this.#time.bootNow();
    this.#working ??= this.#pass().finally(() => {
      this.#working = undefined;
      const now = this.#time.bootNow();
      this.#hasteFrom = now + SHARE_IN_HASTE * (now - startedAt);
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

  #lookLater(afterMs = LOOK_MS): void {
    if (this.#stopped.signal.aborted) return;
    this.#lookTimer = setTimeout(() => {
      const startedAt = this.#time.bootNow();
      this.#looking = this.#look().then((againMs) =>
        this.#lookLater(Math.max(againMs, SHARE_IN_HASTE * (this.#time.bootNow() - startedAt))),
      );
    }, afterMs).unref();
  }

  /** Never rejects: what fails is tried again by the next one. A broker that is away is said by the passes. */
  async #look(): Promise<number> {
    try {
      const { share, againMs } = await this.#relief.look();
      // What has ended is better packed than removed.
      if (share >= TIGHT_SHARE && this.#time.bootNow() >= this.#hasteFrom) void this.work();
      return againMs;
    } catch (error) {
      if (!isOutage(error) && !this.#stopped.signal.aborted)
        this.#log.warn({ err: error }, 'no room could be made in LOGS; tried again');
      return LOOK_MS;
    }
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
