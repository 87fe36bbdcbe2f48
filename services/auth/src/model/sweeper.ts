/** Removes what is over: codes, one-time claims, sessions and refresh tokens whose time has come. Several processes may do it at once. */
import type { DocumentStore } from '@penstock/store';
import { deviceCodesSpec, oneTimeClaimsSpec, refreshTokensSpec, sessionsSpec } from './collections.ts';
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
/** How many batches one collection gets in a round; what remains waits for the next one. */
const BATCHES_MAX = 20;

export interface Sweeper {
  sweep(): Promise<void>;
  close(): void;
}

export function startSweeper({ store, now, log, everyMs = EVERY_MS }: SweeperOptions): Sweeper {
  // Codes before the claims that decide about them.
  const collections = [deviceCodesSpec, refreshTokensSpec, sessionsSpec, oneTimeClaimsSpec].map((spec) =>
    store.collection<typeof oneTimeClaimsSpec>(spec as unknown as typeof oneTimeClaimsSpec),
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
