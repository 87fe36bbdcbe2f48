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
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { folderIdentity, runIdentity } from '../src/system/folder-identity.ts';
import { isOfThisMachine } from '../src/workspace/file-clock.ts';
import { Spares } from '../src/workspace/spares.ts';
import { Workspaces } from '../src/workspace/workspaces.ts';

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-work-')));
});
afterEach(() => {
  vi.restoreAllMocks();
  execFileSync('rm', ['-rf', folder]);
});

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
    const homes = new Map<string, string>();
    const inodeAfter = async (runId: string, key: string, script: string): Promise<number> => {
      const { workspace, home, temporary } = await workspaces.prepare(attempt('a', { runId, key }));
      expect(dirname(home)).toBe(join(folder, 'work'));
      expect([home, workspace]).toEqual([workspaces.folderOf(runId), join(home, 'shared')]);
      expect([temporary, ...readdirSync(temporary)]).toEqual([join(folder, 'work', `.tmp-${basename(home)}`)]);
      homes.set(runId, home);
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
    // From the second on they keep their name.
    expect(homes.get('run-1')).toBe(join(folder, 'work', 'run-1'));
    expect(await inodeAfter('run-2b', 'a', 'true')).toBe(first);
    expect(homes.get('run-2b')).toBe(homes.get('run-2'));
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
      ...Array.from({ length: 3 }, () => expect.stringMatching(/^d \.tmp-seat_/u)),
      ...Array.from({ length: 3 }, () => expect.stringMatching(/^d seat_/u)),
      'd shared',
      'd shared',
      'f .seats',
    ]);
    // What was left in its /tmp goes alone.
    for (const [index, script] of ['mkdir .left', 'chmod 755 .'].entries()) {
      const run = await inodeAfter(
        `run-tmp-${index}`,
        'd',
        `cd "../../.tmp-$(basename "$(dirname "$PWD")")"; ${script}`,
      );
      expect(await inodeAfter(`run-after-${index}`, 'd', 'true')).toBe(run);
    }
    // A seat is its last run's until somebody says to the next process that this one is over.
    const next = new Workspaces(join(folder, 'work'));
    await Promise.all(next.list().map((runId) => next.remove(runId)));
    await expect.poll(() => readdirSync(join(folder, 'work'))).toEqual(['.seats']);
  });

  it.each([
    ['in its working folder', 'echo >left'],
    ['in a folder of that, made and removed', 'mkdir x; rmdir x; mkdir left'],
    ['beside it', 'echo >../left'],
    ['in its /tmp', 'echo >"../../.tmp-$(basename "$(dirname "$PWD")")/left"'],
  ])(
    'show a later run nothing that one has left %s, however long they were empty before (WORKSPACES-6)',
    async (_where, script) => {
      const workspaces = new Workspaces(join(folder, 'work'));
      const real = Date.now();
      const seenBy = async (runId: string, left: string): Promise<string> => {
        const { workspace, home, temporary } = await workspaces.prepare(attempt('a', { runId, key: 'a' }));
        const found = [readdirSync(home), readdirSync(workspace), readdirSync(temporary)];
        expect(found).toEqual([['shared'], [], []]);
        execFileSync('bash', ['-c', left], { cwd: workspace });
        await workspaces.remove(runId);
        return home;
      };
      // By the time that they are looked at, nothing has changed for a minute.
      vi.spyOn(Date, 'now').mockReturnValue(real + 60_000);
      const homes = [await seenBy('run-1', 'true'), await seenBy('run-2', 'true'), await seenBy('run-3', 'true')];
      expect(homes[2]).toBe(homes[1]);
      for (const turn of [1, 2]) {
        await seenBy(`run-left-${turn}`, script);
        await seenBy(`run-after-${turn}`, 'true');
      }
    },
  );

  it.each([
    ['and are not read again where that is this machine’s', true],
    ['and are read by each run where that is another machine’s', false],
  ])('have their changes told by the clock of their disk, %s (WORKSPACES-6)', async (_what, hasOwnClock) => {
    const spares = new Spares();
    const keep = vi.spyOn(spares, 'keep');
    const workspaces = new Workspaces(join(folder, 'work'), spares, hasOwnClock);
    // Longer than any clock stands still; that of a network disk may be behind as much.
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 60_000);
    await workspaces.prepare(attempt('a', { runId: 'run-1', key: 'a' }));
    await workspaces.remove('run-1');
    const { changed } = keep.mock.calls[0]?.[0] ?? {};
    expect(Object.values(changed ?? {}).map((at) => !Number.isNaN(at))).toEqual([
      hasOwnClock,
      hasOwnClock,
      hasOwnClock,
    ]);
  });

  it.each([
    ['ext4', 0xef53, true],
    ['Btrfs, as a signed number', 0x9123683e | 0, true],
    ['tmpfs', 0x01021994, true],
    ['NFS', 0x6969, false],
    ['SMB', 0xfe534d42, false],
    ['FUSE', 0x65735546, false],
    ['9P', 0x01021997, false],
  ])('are on a file system whose clock is known to be this machine’s or not: %s', (_name, type, isOurs) => {
    expect(isOfThisMachine(type)).toBe(isOurs);
  });

  it('are found by the next process, whichever name they have; those that are of no run go (WORKSPACES-5)', async () => {
    const root = join(folder, 'work');
    const before = new Workspaces(root);
    const begin = (workspaces: Workspaces, runId: string, key: string) =>
      workspaces.prepare(attempt('a', { runId, key }));
    // Two seats of each key, taken in turn.
    for (const key of ['a', 'b']) {
      await Promise.all([begin(before, `${key}-1`, key), begin(before, `${key}-2`, key)]);
      await Promise.all([before.remove(`${key}-1`), before.remove(`${key}-2`)]);
      await begin(before, `${key}-3`, key);
      await before.remove(`${key}-3`);
    }
    const { workspace, temporary } = await begin(before, 'a-4', 'a');
    writeFileSync(join(workspace, 'kept'), '');
    writeFileSync(join(temporary, 'kept'), '');
    const own = await begin(before, 'c-1', 'c');
    mkdirSync(join(root, '.spare-1f-3', 'shared'), { recursive: true });

    const after = new Workspaces(root);
    // `b-3` had a seat last that idles now: its owner will say that it is over.
    expect(after.list().toSorted()).toEqual(['a-4', 'b-3', 'c-1']);
    expect([after.folderOf('a-4'), after.folderOf('c-1')]).toEqual([dirname(workspace), own.home]);
    const again = await begin(after, 'a-4', 'a');
    expect([readdirSync(again.workspace), readdirSync(again.temporary)]).toEqual([['kept'], ['kept']]);
    await Promise.all(['a-4', 'b-3', 'c-1'].map((runId) => after.remove(runId)));
    expect(after.list()).toEqual([]);
    // But for what is kept of `a-4`, whose key is known.
    const [, name = ''] = /(seat_\w+)/.exec(workspace) ?? [];
    await expect.poll(() => readdirSync(root).filter((each) => !each.includes(name))).toEqual(['.seats']);
  });

  it('are a run’s own, by its own name, where it has got them from an older version since: those of its seat are older (WORKSPACES-5)', async () => {
    const root = join(folder, 'work');
    const before = new Workspaces(root);
    const begin = (workspaces: Workspaces, runId: string) => workspaces.prepare(attempt('a', { runId, key: 'a' }));
    await begin(before, 'run-1');
    await before.remove('run-1');
    const seat = await begin(before, 'run-2');
    writeFileSync(join(seat.workspace, 'older'), '');
    // It knows no seats.
    mkdirSync(join(root, 'run-2', 'shared'), { recursive: true, mode: 0o700 });
    writeFileSync(join(root, 'run-2', 'shared', 'newer'), '');

    const after = new Workspaces(root);
    expect(after.list()).toEqual(['run-2']);
    const { home, workspace } = await begin(after, 'run-2');
    expect([home, ...readdirSync(workspace)]).toEqual([join(root, 'run-2'), 'newer']);
    await expect.poll(() => existsSync(seat.home)).toBe(false);
  });

  it.each([
    ['all', 'rm -rf ./* ./.tmp-*'],
    ['working folders', 'rm -rf ./*/shared'],
    ['folders for /tmp', 'rm -rf ./.tmp-*'],
  ])('are made where somebody has made room by hand, and taken away %s of those that idled', async (_what, script) => {
    const root = join(folder, 'work');
    const workspaces = new Workspaces(root);
    const begin = (runId: string) => workspaces.prepare(attempt('a', { runId, key: 'a' }));
    const idling = async (first: string, second: string): Promise<void> => {
      await Promise.all([begin(first), begin(second)]);
      await Promise.all([workspaces.remove(first), workspaces.remove(second)]);
    };
    await idling('run-1', 'run-2');
    await idling('run-3', 'run-4');
    execFileSync('sh', ['-c', script], { cwd: root });
    for (const runId of ['run-5', 'run-6']) {
      const { home, workspace, temporary, identity } = await begin(runId);
      expect([home, workspace, temporary].map((path) => statSync(path).isDirectory())).toEqual([true, true, true]);
      expect(identity).toBe(runIdentity(folderIdentity(home), folderIdentity(temporary)));
    }
  });

  it('are a run’s own, by its own name, where it cannot be kept whose a seat is: a disk may be full (WORKSPACES-5)', async () => {
    const root = join(folder, 'work');
    const workspaces = new Workspaces(root);
    const begin = (runId: string) => workspaces.prepare(attempt('a', { runId, key: 'a' }));
    await begin('run-1');
    await workspaces.remove('run-1');
    const seat = (await begin('run-2')).home;
    await workspaces.remove('run-2');
    rmSync(join(root, '.seats'));
    mkdirSync(join(root, '.seats'));
    const { home, workspace } = await begin('run-3');
    expect([home, ...readdirSync(workspace)]).toEqual([join(root, 'run-3')]);
    await expect.poll(() => existsSync(seat)).toBe(false);
    expect(workspaces.list()).toEqual(['run-3']);
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
