/** Plain processes of this machine: there is nothing to be found, every machine has them. */
import { join } from 'node:path';
import { coverFor, ProcessExecutor } from '@penstock/executor';
import type { ExecutorSource } from './executor-source.ts';

/**
 * Helpers kept idle beyond one for each slot: those of keys that take turns. With too few each stage waits for a new one: with
 * 2, ten keys ran at a fifth of one key's rate. One holds 140 KB of memory and half a dozen descriptors.
 */
const IDLE_HELPERS_MAX = 64;

export const processSource: ExecutorSource = {
  kind: 'process',
  create: ({ dataDir, leftoversFile, hasStageUsers, limits, slots, log }, guard) => {
    const executor = new ProcessExecutor({
      guard,
      covered: { cover: hasStageUsers ? coverFor(dataDir) : dataDir, keep: join(dataDir, 'work') },
      leftoversFile,
      idleMax: slots + IDLE_HELPERS_MAX,
      spareCount: 1,
      limits,
      warn: (message) => log.warn({}, message),
    });
    log.info({ executor: 'process' }, executor.limitsLine);
    return executor;
  },
};
