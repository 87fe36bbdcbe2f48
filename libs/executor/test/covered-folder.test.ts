import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const asRoot = process.getuid?.() === 0;
const ways: readonly Isolation[] = asRoot ? ['namespace', 'user-namespace'] : ['user-namespace'];

describe.each(ways)("the owner's data, in the way %s,", (isolation) => {
  let data: string;
  let executor: ProcessExecutor;
  beforeEach(() => {
    data = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-covered-')));
    mkdirSync(join(data, 'work'));
    writeFileSync(join(data, 'api-key'), 'the-secret');
    executor = new ProcessExecutor({
      isolations: [isolation],
      covered: { cover: data, keep: join(data, 'work') },
      warn: () => {},
    });
  });
  afterEach(async () => {
    await executor.close();
    execFileSync('rm', ['-rf', data]);
  });

  async function stage(script: string): Promise<string> {
    const sink = new RecordingSink();
    const commands = [{ script, bindings: {} }];
    await executor.start(
      { helperKey: 'key', commands, env: { DATA: data }, cwd: join(data, 'work'), timeoutMs: 60_000 },
      sink,
    ).ended;
    return sink.text();
  }

  it('is not seen by a stage that takes the cover away, whatever right its user has', async () => {
    const look = 'ls -A "$DATA"; cat "$DATA/api-key"';
    const uncover =
      'umount -R "$DATA"; umount -l "$DATA/work"; umount -l "$DATA"; mount -t tmpfs none "$DATA"; mount --move "$DATA" /mnt';
    const script = `set +e; exec 2>&1; cd /; ${uncover}; ${look}; unshare -m sh -c '${uncover}; ${look}'; unshare -Urm sh -c '${uncover}; ${look}'; nsenter -t 1 -m sh -c '${look}'; echo looked`;
    const seen = await stage(script);
    expect(seen).toContain('looked');
    expect(seen).not.toContain('the-secret');
    expect(seen).not.toMatch(/^api-key$/m);
    // The runs' folders stay.
    await stage('echo kept >file');
    expect(existsSync(join(data, 'work', 'file'))).toBe(true);
  });

  it('cannot be joined by what is never removed: a stage makes no file immutable', async () => {
    await stage('set +e; mkdir tree; echo x >tree/file; chattr +i tree/file tree');
    execFileSync('rm', ['-rf', join(data, 'work', 'tree')]);
    expect(existsSync(join(data, 'work', 'tree'))).toBe(false);
  });

  it('nor are the pipes that the output of other stages will come through', async () => {
    expect(
      await stage(
        `find /dev/shm ${tmpdir()} -maxdepth 3 -path "*/penstock-*-${process.pid}-*" -type p 2>/dev/null | head -3`,
      ),
    ).toBe('');
  });
});
