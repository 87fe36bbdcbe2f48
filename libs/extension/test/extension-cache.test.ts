import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CacheFull, ExtensionCache, inspectPackage } from '../src/index.ts';
import { archiveOf, streamOf } from './archives.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-cache-'));
});
afterEach(() => {
  execFileSync('chmod', ['-R', 'u+w', folder]);
  rmSync(folder, { recursive: true, force: true });
});

async function packageOf(text: string): Promise<{ readonly hash: string; readonly bytes: Buffer }> {
  const bytes = await archiveOf([{ name: 'run.sh', content: text.padEnd(100_000, '#'), mode: 0o755 }]);
  return { bytes, hash: (await inspectPackage(streamOf(bytes))).hash };
}

const never = (): AsyncIterable<Uint8Array> => {
  throw new Error('fetched again');
};
const kept = (): string[] => readdirSync(folder).toSorted();

describe('the cache of extensions', () => {
  it('fetches once, however many ask, and then works without anybody to fetch from', async () => {
    const { hash, bytes } = await packageOf('one');
    const cache = new ExtensionCache(folder, { bytesMax: 1e7 });
    let fetches = 0;
    const fetch = (): AsyncIterable<Uint8Array> => {
      fetches += 1;
      return streamOf(bytes);
    };
    const paths = await Promise.all(Array.from({ length: 5 }, async () => await cache.ensure(hash, fetch)));
    expect([fetches, new Set(paths).size]).toEqual([1, 1]);
    expect(readFileSync(join(paths[0] ?? '', 'run.sh'), 'utf8')).toMatch(/^one/);
    expect(await new ExtensionCache(folder, { bytesMax: 1e7 }).ensure(hash, never)).toBe(paths[0]);
  });

  it('keeps nothing of bytes with another hash, nor of a fetch that fails, and asks again the next time', async () => {
    const [one, two] = [await packageOf('one'), await packageOf('two')];
    const cache = new ExtensionCache(folder, { bytesMax: 1e7 });
    await expect(cache.ensure(one.hash, () => streamOf(two.bytes))).rejects.toThrow(
      `the package has the SHA-256 ${two.hash}, not ${one.hash}`,
    );
    await expect(cache.ensure(one.hash, never)).rejects.toThrow('fetched again');
    expect(kept()).toEqual([]);
    await cache.ensure(one.hash, () => streamOf(one.bytes));
    expect(kept()).toEqual([one.hash]);
  });

  it('makes room by taking the least recently used away, and nothing that may be in use', async () => {
    let now = 1_000_000_000;
    const cache = new ExtensionCache(folder, { bytesMax: 250_000, keepMs: 1_000, now: () => now });
    const [one, two, three] = [await packageOf('one'), await packageOf('two'), await packageOf('three')];
    await cache.ensure(one.hash, () => streamOf(one.bytes));
    await cache.ensure(two.hash, () => streamOf(two.bytes));
    await expect(cache.ensure(three.hash, () => streamOf(three.bytes))).rejects.toBeInstanceOf(CacheFull);
    now += 500;
    await cache.ensure(one.hash, never);
    now += 800;
    await cache.ensure(three.hash, () => streamOf(three.bytes));
    expect(kept()).toEqual([one.hash, three.hash].toSorted());
  });

  it('takes nothing away that is held, until it is released', async () => {
    let now = 1_000_000_000;
    const cache = new ExtensionCache(folder, { bytesMax: 250_000, keepMs: 1_000, now: () => now });
    const packages = [
      await packageOf('one'),
      await packageOf('two'),
      await packageOf('three'),
      await packageOf('four'),
    ];
    const [one, two, three, four] = packages;
    if (one === undefined || two === undefined || three === undefined || four === undefined) return;
    const held = await cache.hold(one.hash, () => streamOf(one.bytes));
    await cache.ensure(two.hash, () => streamOf(two.bytes));
    now += 5_000;
    await cache.ensure(three.hash, () => streamOf(three.bytes));
    expect(kept()).toEqual([one.hash, three.hash].toSorted());
    held.release();
    now += 5_000;
    await cache.ensure(four.hash, () => streamOf(four.bytes));
    expect(kept()).toEqual([three.hash, four.hash].toSorted());
  });

  it('several processes that ask at once end up with one', async () => {
    const { hash, bytes } = await packageOf('shared');
    const script = `
      import { ExtensionCache } from ${JSON.stringify(join(import.meta.dirname, '..', 'src', 'index.ts'))};
      const bytes = Buffer.from(process.argv[2], 'base64');
      const path = await new ExtensionCache(process.argv[1], { bytesMax: 1e7 }).ensure(${JSON.stringify(hash)}, async function* () { yield bytes; });
      process.stdout.write(path);`;
    const paths = await Promise.all(
      Array.from({ length: 3 }, async () => await outputOf(script, [folder, bytes.toString('base64')])),
    );
    expect(paths).toEqual(Array.from({ length: 3 }, () => join(folder, hash, 'package')));
    expect(kept()).toEqual([hash]);
  });
});

async function outputOf(script: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  for await (const chunk of child.stdout) output += String(chunk);
  return output;
}
