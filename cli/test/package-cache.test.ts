import { expect, it } from 'vitest';
import { keepPackage, openPackageCache } from '../src/extensions/package-cache.ts';
import { FileError } from '../src/process/errors.ts';

it('a package that finds no folder is told with the place, the reason and the remedy', async () => {
  const cache = openPackageCache({ XDG_CACHE_HOME: '/proc/none' });
  const kept = keepPackage(cache, 'a'.repeat(64), async function* none() {});
  await expect(kept).rejects.toThrow(FileError);
  await expect(kept).rejects.toThrow(
    /^the extension cannot be kept: \/proc\/none\S* cannot be written \(.*\): let XDG_CACHE_HOME name a folder that can be$/,
  );
});
