import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workspaces } from '../src/workspace/workspaces.ts';

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-work-')));
});
afterEach(() => execFileSync('rm', ['-rf', folder]));

const attempt = (name: string, more = {}) => ({
  runId: 'run-1',
  attempt: name,
  fresh: false,
  declaresOutputs: false,
  ...more,
});

describe('the folders of a run', () => {
  it('are shared by its stages, but for those that ask for a fresh one, which goes with its attempt', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const one = await workspaces.prepare(attempt('a'));
    const two = await workspaces.prepare(attempt('b'));
    const fresh = await workspaces.prepare(attempt('c', { fresh: true, declaresOutputs: true }));
    expect(two.workspace).toBe(one.workspace);
    expect(readdirSync(fresh.workspace)).toEqual([]);
    expect(existsSync(fresh.outputFile)).toBe(true);
    await workspaces.finish(fresh);
    expect([existsSync(fresh.workspace), existsSync(fresh.outputFile), existsSync(one.workspace)]).toEqual([
      false,
      false,
      true,
    ]);
    expect(workspaces.list()).toEqual(['run-1']);
  });

  it('go whole, whatever is in them, and nothing that they lead to', async () => {
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

  it('are open to the next stage where one has shut them', async () => {
    const user = isRoot ? { uid: 300_000, gid: 300_000 } : undefined;
    const as = user ?? {};
    // Root's temporary folder may be shut to others.
    execFileSync('chmod', ['o+x', folder]);
    const workspaces = new Workspaces(join(folder, 'work'));
    const { home, workspace } = await workspaces.prepare(attempt('a', { user, declaresOutputs: true }));
    execFileSync('sh', ['-c', 'echo kept >file; chmod 0 .. .'], { cwd: workspace, ...as });
    const again = await workspaces.prepare(attempt('b', { user, declaresOutputs: true }));
    expect(execFileSync('sh', ['-c', 'cd "$0"; cat file; >../x', workspace], { ...as }).toString()).toBe('kept\n');
    execFileSync('sh', ['-c', '>"$0"', again.outputFile], as);
    const filled = { user, fill: () => Promise.reject(new Error('it is there')) };
    execFileSync('sh', ['-c', 'chmod 0 shared .'], { cwd: home, ...as });
    await workspaces.prepare(attempt('c', filled));
    expect(execFileSync('sh', ['-c', 'cd "$0"; cat file', workspace], { ...as }).toString()).toBe('kept\n');
  });

  it('serve a later run of the same key where nothing was left in them (WORKSPACES-4)', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const inodes = new Map<string, number>();
    const temporaries = new Map<string, number>();
    const inodeAfter = async (runId: string, key: string, script: string): Promise<number> => {
      const { workspace, home, temporary } = await workspaces.prepare(attempt('a', { runId, key }));
      expect([home, workspace]).toEqual([join(folder, 'work', runId), join(folder, 'work', runId, 'shared')]);
      expect([temporary, ...readdirSync(temporary)]).toEqual([join(folder, 'work', `.tmp-${runId}`)]);
      temporaries.set(runId, statSync(temporary).ino);
      expect(readdirSync(workspace)).toEqual([]);
      expect(readdirSync(home)).toEqual(['shared']);
      inodes.set(runId, statSync(workspace).ino);
      execFileSync('bash', ['-c', script], { cwd: workspace });
      await workspaces.remove(runId);
      expect(workspaces.list()).toEqual([]);
      return inodes.get(runId) ?? 0;
    };
    const first = await inodeAfter('run-1', 'a', 'true');
    expect(await inodeAfter('run-2', 'a', 'true')).toBe(first);
    expect(temporaries.get('run-2')).toBe(temporaries.get('run-1'));
    // While it is kept for one key the other's folder is another one.
    expect(await inodeAfter('run-3', 'b', 'true')).not.toBe(first);
    for (const [index, script] of [
      'echo >file',
      'echo >../file',
      'chmod 777 .',
      'chmod 750 ..',
      'cd ..; rm -r shared; ln -s /tmp shared',
      'cd ..; rm -r shared',
      'mkdir .hidden',
    ].entries()) {
      await inodeAfter(`run-left-${index}`, 'c', script);
    }
    // Those of `a`, `b` and `c` with what served as their /tmp, and none of what was left.
    const kept = execFileSync('find', [join(folder, 'work'), '-mindepth', '1', '-printf', '%y %f\n'], {
      encoding: 'utf8',
    });
    expect(kept.trim().split('\n').toSorted()).toEqual([
      ...Array.from({ length: 6 }, () => expect.stringMatching(/^d \.spare-/u)),
      'd shared',
      'd shared',
    ]);
    // What was left in its /tmp goes alone.
    for (const [index, script] of ['mkdir .left', 'chmod 755 .'].entries()) {
      const run = await inodeAfter(`run-tmp-${index}`, 'd', `cd "../../.tmp-run-tmp-${index}"; ${script}`);
      expect(await inodeAfter(`run-after-${index}`, 'd', 'true')).toBe(run);
    }
    void new Workspaces(join(folder, 'work'));
    await expect.poll(() => readdirSync(join(folder, 'work'))).toEqual([]);
  });

  it('serve a later run of the same key with what was in its working folder gone, which is filled anew (WORKSPACES-4)', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const filledWith = (name: string) => async (path: string) => {
      mkdirSync(path, { mode: 0o700 });
      writeFileSync(join(path, name), '');
      await Promise.resolve();
    };
    const begin = async (runId: string, more: object = {}) => {
      const { workspace, home, temporary } = await workspaces.prepare(attempt('a', { runId, key: 'a', ...more }));
      return { inodes: [home, temporary].map((path) => statSync(path).ino), left: readdirSync(workspace), workspace };
    };
    const first = await begin('run-1', { fill: filledWith('one') });
    mkdirSync(join(first.workspace, 'made', 'by'), { recursive: true });
    await workspaces.remove('run-1');
    const second = await begin('run-2', { fill: filledWith('two') });
    expect(second).toMatchObject({ inodes: first.inodes, left: ['two'] });
    await workspaces.remove('run-2');
    // And one that begins empty, which then leaves its empty folder to one that is filled.
    expect(await begin('run-3')).toMatchObject({ inodes: first.inodes, left: [] });
    await workspaces.remove('run-3');
    const fresh = await begin('run-4', { fill: filledWith('four'), fresh: true });
    expect(fresh).toMatchObject({ inodes: first.inodes, left: ['four'] });
    expect(await begin('run-4', { fill: filledWith('five') })).toMatchObject({ left: ['five'] });
  });

  it.each([
    ['removes its working folder', 'rm -rf "$RUN/shared"'],
    ['removes all of its folders', 'rm -rf "$RUN"'],
    ['leads them elsewhere', 'rm -rf "$RUN"; mkdir -p elsewhere/shared; ln -s "$PWD/elsewhere" "$RUN"'],
    [
      'leads its working folder elsewhere',
      'rm -rf "$RUN/shared"; mkdir elsewhere; ln -s "$PWD/elsewhere" "$RUN/shared"',
    ],
    ['puts a file in their place', 'rm -rf "$RUN"; echo >"$RUN"'],
  ])('are there again for the next stage where one %s', async (_what, script) => {
    const workspaces = new Workspaces(join(folder, 'work'));
    const before = await workspaces.prepare(attempt('a', { declaresOutputs: true }));
    execFileSync('bash', ['-c', script], { cwd: folder, env: { ...process.env, RUN: before.home } });
    await workspaces.finish(before);
    const after = await workspaces.prepare(attempt('b', { declaresOutputs: true, fresh: true }));
    expect([after.home, after.outputFile].map((path) => realpathSync(path))).toEqual([after.home, after.outputFile]);
    writeFileSync(join(after.workspace, 'file'), '');
    await workspaces.remove('run-1');
    expect(workspaces.list()).toEqual([]);
  });

  it.runIf(isRoot)('go where their user has shut itself out of all of them', async () => {
    const user = { uid: 300_000, gid: 300_000 };
    const workspaces = new Workspaces(join(folder, 'work'));
    const { home, workspace, outputFile } = await workspaces.prepare(attempt('a', { user, declaresOutputs: true }));
    writeFileSync(join(workspace, 'file'), '');
    const giveAndShut = 'chown -R 300000:300000 "$0"; chmod 000 "$1" "$2" "$0"';
    execFileSync('sh', ['-c', giveAndShut, home, workspace, outputFile]);
    await workspaces.remove('run-1');
    expect(workspaces.list()).toEqual([]);
  });

  it('a name that is no run id is refused', async () => {
    const workspaces = new Workspaces(join(folder, 'work'));
    await expect(workspaces.prepare(attempt('a', { runId: '../x' }))).rejects.toThrow(RangeError);
    expect(() => workspaces.remove('..')).toThrow(RangeError);
    rmSync(folder, { recursive: true });
  });
});
