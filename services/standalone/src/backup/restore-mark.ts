/** The mark of a data folder that is not whole yet, which a server asks for before it starts. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export const RESTORING = 'restoring';

/** Throws an Error that says what to do. */
export function refuseHalfRestored(dataDir: string): void {
  if (existsSync(join(dataDir, RESTORING)))
    throw new Error(
      `the data folder ${dataDir} is being restored, or its restoring was cut off: empty it, then restore it once more`,
    );
}
