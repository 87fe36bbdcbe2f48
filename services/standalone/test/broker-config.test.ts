import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const CONFIG = fileURLToPath(new URL('../src/broker-config.ts', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-broker-config-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('the limit of the store, below which no later one may be', () => {
  it.each([
    ['is more than would be taken now', String(2 ** 50), 'true'],
    ['is less', '1', 'false'],
  ])('is kept where the disk takes nothing and it %s', (_, earlier, isTaken) => {
    const file = join(folder, 'store-bytes-max');
    mkdirSync(join(folder, 'store'));
    writeFileSync(file, earlier);
    const code = `import(${JSON.stringify(CONFIG)})
      .then(({ storeLimits }) => storeLimits(${JSON.stringify(join(folder, 'store'))}, ${JSON.stringify(file)}))
      .then(() => console.log('true'), () => console.log('false'))`;
    const asked = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$0" "$@"', process.execPath, '-e', code], {
      encoding: 'utf8',
    });
    expect([asked.stdout.trim(), readFileSync(file, 'utf8')]).toEqual([isTaken, earlier]);
  });
});
