/** What was asked for and could not be written is no success. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { folder, pipeline, start } from './command.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

describe.skipIf(!existsSync('/dev/full'))('a disk that is full', () => {
  it.each([
    ['a command that only prints', ['version']],
    ['a run', ['run']],
  ])('is told, and ends with 1: %s', (_what, args) => {
    const { status, stderr } = spawnSync('sh', ['-c', 'exec "$0" "$@" > /dev/full', process.execPath, MAIN, ...args], {
      cwd: folder(pipeline('  a: {run: echo x}')),
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('penstock: the output could not be written whole: the disk is full\n'),
    ]);
  });
});

it('a reader that has gone before it was told anything ends a command with 141', async () => {
  const command = start(['version'], { cwd: folder() });
  command.child.stdout?.destroy();
  expect(await command.ended).toMatchObject({ code: 141, stderr: '' });
});
