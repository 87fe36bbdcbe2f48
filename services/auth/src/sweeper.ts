/** Removes what is over: codes, marks, sessions and refresh tokens whose time has come. Several processes may do it at once. */
import type { DocumentStore } from '@penstock/store';
import { deviceCodesSpec, marksSpec, refreshTokensSpec, sessionsSpec } from './collections.ts';
import type { Log } from '@penstock/telemetry/log';

export interface SweeperOptions {
  readonly store: DocumentStore;
  readonly now: () => number;
  readonly log: Pick<Log, 'warn'>;
  /** Default 10 minutes: nothing that is over is believed meanwhile, it only takes up room. */
  readonly everyMs?: number | undefined;
}

const EVERY_MS = 10 * 60_000;
const BATCH = 500;
/** Of one collection at a time: what is left waits for the next round. */
const BATCHES_MAX = 20;

export interface Sweeper {
  sweep(): Promise<void>;
  close(): void;
}

export function startSweeper({ store, now, log, everyMs = EVERY_MS }: SweeperOptions): Sweeper {
  // Codes before the marks that decide about them.
  const collections = [deviceCodesSpec, refreshTokensSpec, sessionsSpec, marksSpec].map((spec) =>
    store.collection<typeof marksSpec>(spec as unknown as typeof marksSpec),
  );
  const sweep = async (): Promise<void> => {
    for (const collection of collections) {
      for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
        const removed = await collection.deleteWhere({
          where: { expiresAt: { lt: now() } },
          orderBy: { field: 'expiresAt', direction: 'asc' },
          limit: BATCH,
        });
        if (removed < BATCH) break;
      }
    }
  };
  const timer = setInterval(
    () => void sweep().catch((error: unknown) => log.warn({ err: error }, 'what is over could not be removed; later')),
    everyMs,
  );
  timer.unref();
  return { sweep, close: () => clearInterval(timer) };
}
