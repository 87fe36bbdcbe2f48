import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Workspaces } from '../src/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-work-'));
});
afterEach(() => execFileSync('rm', ['-rf', folder]));

const attempt = (name: string, more = {}) => ({ runId: 'run-1', attempt: name, fresh: false, declaresOutputs: false, ...more });

describe('the folders of a run', () => {
  test('are shared by its stages, but for those that ask for a fresh one, which goes with its attempt', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const one = await workspaces.prepare(attempt('a'));
    const two = await workspaces.prepare(attempt('b'));
    const fresh = await workspaces.prepare(attempt('c', { fresh: true, declaresOutputs: true }));
    expect(two.workspace).toBe(one.workspace);
    expect(readdirSync(fresh.workspace)).toEqual([]);
    expect(existsSync(fresh.outputFile)).toBe(true);
    await workspaces.finish(fresh);
    expect([existsSync(fresh.workspace), existsSync(fresh.outputFile), existsSync(one.workspace)]).toEqual([false, false, true]);
    expect(workspaces.list()).toEqual(['run-1']);
  });

  test('go whole, whatever is in them, and nothing that they lead to', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const { workspace } = await workspaces.prepare(attempt('a'));
    writeFileSync(join(folder, 'outside'), 'kept');
    // Links, folders that nobody may read, and a path longer than the kernel takes in one piece.
    const script = `ln -s ${folder} link; mkdir -p x/y; chmod 0 x/y x; d=$(printf 'd%.0s' $(seq 200)); i=0; while [ $i -lt 30 ]; do mkdir $d && cd -P ./$d; i=$((i+1)); done; echo deep >f`;
    execFileSync('bash', ['-c', script], { cwd: workspace });
    await workspaces.remove('run-1');
    expect(existsSync(join(folder, 'work', 'run-1'))).toBe(false);
    expect(existsSync(join(folder, 'outside'))).toBe(true);
    const again = await workspaces.prepare(attempt('b'));
    expect(readdirSync(again.workspace)).toEqual([]);
  });

  test('a name that is no run id is refused', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    await expect(workspaces.prepare(attempt('a', { runId: '../x' }))).rejects.toThrow(RangeError);
    expect(() => workspaces.remove('..')).toThrow(RangeError);
    rmSync(folder, { recursive: true });
  });
});
