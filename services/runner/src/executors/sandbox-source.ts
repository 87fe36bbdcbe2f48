/** The sandbox of bubblewrap, where this machine can give one. */
import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SandboxExecutor } from '@penstock/executor';
import type { ExecutorSource } from './executor-source.ts';

/**
 * Idle helpers beyond one for each slot. One holds a network stack beside its shells, 4 MB in all: fewer are kept than of plain
 * ones, and a key that has none waits for one as long as for three stages.
 */
const IDLE_HELPERS_MAX = 16;
/** This program's own files: nothing of a stage's. */
const CHECKOUT = fileURLToPath(new URL('../../../../', import.meta.url));

export const sandboxSource: ExecutorSource = {
  kind: 'sandbox',
  create: ({ dataDir, leftoversFile, stageUsers, deniedHosts, stagePaths, limits, slots, log }, guard) => {
    const executor = new SandboxExecutor({
      guard,
      layout: {
        keep: join(dataDir, 'work'),
        hidden: [dataDir, CHECKOUT, ...ownHome()],
        paths: stagePaths,
        users: stageUsers,
      },
      deniedHosts,
      leftoversFile,
      idleMax: slots + IDLE_HELPERS_MAX,
      spareCount: 1,
      limits,
      warn: (message) => log.warn({}, message),
    });
    log.info({ executor: 'sandbox' }, executor.limitsLine);
    return executor;
  },
};

/** The home of a user of services is often a folder of the system (`/`, `/usr/sbin`): only one's own is hidden. */
function ownHome(): string[] {
  const home = homedir();
  const uid = process.getuid?.();
  return uid !== 0 && lstatSync(home, { throwIfNoEntry: false })?.uid === uid ? [home] : [];
}
