/** The walk through a tree whose patterns take too long to match. */
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findFiles, WalkTooLarge } from '../src/reading/walk.ts';

it('ends by an error also where they have done so with the last name: whether that matches is not known', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-walk-'));
  await writeFile(join(folder, 'last'), '');
  const at = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  let left = 1;
  const patterns = {
    get isExhausted(): boolean {
      return left <= 0;
    },
    leadInto: () => true,
    name: () => false,
    includes(): boolean {
      left -= 1;
      return false;
    },
  };
  try {
    expect(() => findFiles(at, patterns, 10)).toThrow(WalkTooLarge);
  } finally {
    closeSync(at);
    await rm(folder, { recursive: true });
  }
});
