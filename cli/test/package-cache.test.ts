import { ExtensionCache } from '@penstock/extension';
import { expect, it } from 'vitest';
import { keepPackage, keptPackage, openPackageCache } from '../src/extensions/package-cache.ts';
import { FileError } from '../src/process/errors.ts';

it('a package that finds no folder is told with the place, the reason and the remedy', async () => {
  const cache = openPackageCache({ XDG_CACHE_HOME: '/proc/none' });
  const kept = keepPackage(cache, 'a'.repeat(64), async function* none() {});
  await expect(kept).rejects.toThrow(FileError);
  await expect(kept).rejects.toThrow(
    /^the extension cannot be kept: \/proc\/none\S* cannot be written \(.*\): let XDG_CACHE_HOME name a folder that can be$/,
  );
});

class OfAnotherUser extends ExtensionCache {
  override find(): Promise<string | undefined> {
    return Promise.reject(Object.assign(new Error('EPERM: utime'), { code: 'EPERM', path: '/cache/a/bytes' }));
  }
}

it('so is one that is there, and whose use cannot be written down', async () => {
  const kept = keptPackage(new OfAnotherUser('/cache', { bytesMax: 1 }), 'a'.repeat(64));
  await expect(kept).rejects.toThrow(FileError);
  await expect(kept).rejects.toThrow('/cache/a/bytes cannot be written (no permission): let XDG_CACHE_HOME name');
});

it('where a part of the path is no folder there is no package', async () => {
  expect(await keptPackage(openPackageCache({ XDG_CACHE_HOME: '/dev/null' }), 'a'.repeat(64))).toBeUndefined();
});
