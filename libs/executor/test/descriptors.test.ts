/** A machine that has no file, or no memory, left for another helper or stage: nothing stays for want of it, and the owner goes on. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canMount, SmallDisk } from '@penstock/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProcessExecutor } from '../src/process/executor.ts';
import { Helper } from '../src/process/helper.ts';
import { Scratch } from '../src/process/scratch.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.close());

const open = (): number => readdirSync('/proc/self/fd').length;

it.each([
  ['', undefined],
  [' that mounts', 'none none none none 0 0\n'],
])('a helper%s that cannot be started leaves no file open', (_what, mounts) => {
  // More than the kernel takes as one argument: the call itself fails.
  const launch = { isolation: 'group', file: '/bin/true', args: ['x'.repeat(200_000)], mounts } as const;
  // The first makes pipes for those after it.
  expect(() => new Helper(launch, scratch)).toThrow('E2BIG');
  const before = open();
  for (let time = 0; time < 10; time += 1) expect(() => new Helper(launch, scratch)).toThrow('E2BIG');
  expect(open()).toBe(before);
});

/** What comes of each, with no file left, and with each number of files that are left from then on. */
function shortOfFiles(imports: string, attempt: string): { stdout: string; stderr: string; status: number | null } {
  const program = `
    import { openSync, closeSync } from 'node:fs';
    ${imports}
    const held = [];
    try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
    const said = new Set();
    for (let left = 0; left < 14; left += 1) {
      try { ${attempt}; said.add('started'); }
      catch (error) { said.add(error.tag ?? error.code); }
      await new Promise(setImmediate);
      closeSync(held.pop());
    }
    for (const fd of held) closeSync(fd);
    globalThis.scratch?.close();
    console.log([...said].sort().join(' '));
  `;
  return spawnSync('sh', ['-c', `ulimit -n 64; exec "$0" --input-type=module -e "$1"`, process.execPath, program], {
    encoding: 'utf8',
  });
}

const sourceOf = (file: string): string => JSON.stringify(join(import.meta.dirname, '../src', file));

it('without a file left for its pipes it fails, and its owner does not', () => {
  const { stdout, stderr, status } = shortOfFiles(
    `import { Helper } from ${sourceOf('process/helper.ts')};
     import { Scratch } from ${sourceOf('process/scratch.ts')};
     const scratch = (globalThis.scratch = new Scratch());
     const launch = { isolation: 'group', file: '/bin/true', args: [] };`,
    'const helper = new Helper(launch, scratch); helper.kill(); await helper.gone.catch(() => {})',
  );
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain('EMFILE');
});

it('without a file left for the pipes of its guard no session begins, and its runner goes on', () => {
  const { stdout, stderr, status } = shortOfFiles(
    `import { Guard } from ${sourceOf('guard/guard.ts')};`,
    'const guard = new Guard(); await guard.fire()',
  );
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain('GuardGone');
});

it.runIf(canMount('scripts of stages on a full disk'))('a script that has no room leaves no part of itself', () => {
  const disk = new SmallDisk(64 * 1024);
  try {
    expect(() => scratch.writeScript('x'.repeat(256 * 1024), undefined, disk.folder)).toThrow('ENOSPC');
    expect(readdirSync(disk.folder)).toEqual([]);
  } finally {
    disk.remove();
  }
});

it('a stage that is refused once its script was written leaves nothing of that', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-refused-'));
  const executor = new ProcessExecutor({ idleMax: 0 });
  try {
    const sink = new RecordingSink();
    const stage = executor.start(
      {
        helperKey: 'key',
        commands: [{ script: '#'.repeat(150_000), bindings: {} }],
        // More than a process can be given.
        env: Object.fromEntries(Array.from({ length: 20 }, (_none, at) => [`V${at}`, 'x'.repeat(100_000)])),
        cwd: folder,
        run: { folder, temporary: folder },
        timeoutMs: 60_000,
      },
      sink,
    );
    expect(await stage.ended).toEqual({ kind: 'exit', code: 126 });
    expect(sink.text('system')).toContain('its scripts and variables take');
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    await executor.close();
    rmSync(folder, { recursive: true });
  }
});
