/** The key of a runner of the fleet: made at its first start, and kept in its data folder, so that it is the same runner after the next. */
import { readFileSync, writeFileSync } from 'node:fs';
import { newKeySeed, publicKeyOf } from '@penstock/bus';

export function runnerSeed(file: string): Uint8Array {
  try {
    const seed = Buffer.from(readFileSync(file, 'utf8').trim());
    // Throws for what is none.
    publicKeyOf(seed);
    return seed;
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isMissing)
      throw new Error(`the key of this runner, ${file}, cannot be used: remove it, and the next start makes another`, {
        cause: error,
      });
  }
  const seed = newKeySeed();
  writeFileSync(file, `${Buffer.from(seed).toString('utf8')}\n`, { mode: 0o600, flag: 'wx' });
  return seed;
}
