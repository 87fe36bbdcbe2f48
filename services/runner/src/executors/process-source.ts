/** Plain processes of this machine: there is nothing to be found, every machine has them. */
import { join } from 'node:path';
import { coverFor, ProcessExecutor } from '@penstock/executor';
import type { ExecutorSource } from './executor-source.ts';
import { helperRoom, idleHelpersMax } from './idle-helpers.ts';

/** Of these, as many beyond the slots are kept however long they rest. */
const LASTING_HELPERS = 64;

export const processSource: ExecutorSource = {
  kind: 'process',
  create: ({ dataDir, leftoversFile, hasStageUsers, limits, slots, log }, guard) => {
    const idle = idleHelpersMax(helperRoom());
    const executor = new ProcessExecutor({
      guard,
      covered: { cover: hasStageUsers ? coverFor(dataDir) : dataDir, keep: join(dataDir, 'work') },
      hasUsers: hasStageUsers,
      leftoversFile,
      idleMax: slots + idle,
      idleLasting: slots + Math.min(idle, LASTING_HELPERS),
      spareCount: 1,
      limits,
      warn: (message) => log.warn({}, message),
    });
    log.info({ executor: 'process' }, executor.limitsLine);
    return executor;
  },
};
