/** What a container and its owner share, without an engine. */
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Control } from '../../src/container/control.ts';

const FILES = 32;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-control-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('CONTROL-3: is stopped after its end, while the files of its stage are kept, say, without a file being touched that was opened since', async () => {
  const control = await Control.make(join(folder, 'control'), undefined, false);
  control.close();
  const paths = Array.from({ length: FILES }, (_none, at) => join(folder, `kept-${at}`));
  for (const path of paths) writeFileSync(path, 'a result');
  // They have the numbers that the control had.
  const opened = paths.map((path) => openSync(path, constants.O_RDWR));
  try {
    control.stop();
  } finally {
    for (const fd of opened) closeSync(fd);
  }
  expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(paths.map(() => 'a result'));
});
