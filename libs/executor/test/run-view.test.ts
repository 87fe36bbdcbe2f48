/** What stages see of their run is mounted as seldom as can be, and shows nothing that another run has left. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';
import type { StageExit, StageRun } from '../src/contract/port.ts';

const asRoot = process.getuid?.() === 0;
const ways: readonly Isolation[] = asRoot ? ['namespace', 'user-namespace'] : ['user-namespace'];
/** Owners keep their data under /tmp, where a run's /tmp is in memory, or elsewhere. */
const places = ['/tmp', '/var/tmp'];
/** Of the mounted view its number, which is used again, and its time, which others have that were mounted in the same tick. */
const MOUNTED_AT = 'stat -c "%d %z" /dev/shm';
/** Nothing of another run, and as it was made. */
const UNTOUCHED = 'ls -A /dev/shm; stat -c %a /dev/shm /tmp; find /tmp -type f; ls -A "$HOME/.."; pwd';

const left: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const undo of left.splice(0)) await undo();
});

describe.each(ways.flatMap((way) => places.map((place) => [way, place] as const)))(
  'in the way %s, data in %s,',
  (isolation, place) => {
    /** On disk it is the run's own folder. */
    const tmpMode = place === '/var/tmp' ? '700' : '1777';

    function world(idleMax = 4) {
      const data = realpathSync(mkdtempSync(join(place, 'penstock-view-')));
      const keep = join(data, 'work');
      mkdirSync(join(keep, '0'), { recursive: true });
      const executor = new ProcessExecutor({
        isolations: [isolation],
        covered: { cover: data, keep },
        idleMax,
        spareCount: 1,
        warn: () => {},
      });
      left.push(async () => {
        await executor.close();
        execFileSync('rm', ['-rf', data]);
      });
      const runOf = (name: string): StageRun & { readonly occupant: string } => ({
        folder: join(keep, '0', name),
        temporary: join(keep, '0', `.tmp-${name}`),
        occupant: name,
      });
      const attempt = async (run: StageRun, script: string): Promise<{ exit: StageExit; text: string }> => {
        const sink = new RecordingSink();
        const commands = [{ script, bindings: {} }];
        const env = { HOME: run.folder };
        const spec = { helperKey: 'key', commands, env, run, cwd: run.folder, timeoutMs: 60_000 };
        return { exit: await executor.start(spec, sink).ended, text: sink.text() };
      };
      return {
        executor,
        data,
        newRun: (name: string): StageRun => {
          const run = runOf(name);
          for (const path of [run.folder, run.temporary]) mkdirSync(path, { mode: 0o700 });
          return run;
        },
        /** The folders of a run become another's. */
        rename: (from: StageRun, name: string): StageRun => {
          const to = runOf(name);
          renameSync(from.folder, to.folder);
          renameSync(from.temporary, to.temporary);
          return to;
        },
        /** The same, and they keep their name. */
        pass: (from: StageRun, name: string): StageRun => ({ ...from, occupant: name }),
        attempt,
        stage: async (run: StageRun, script: string): Promise<string> => {
          const { exit, text } = await attempt(run, script);
          expect([exit, text]).toEqual([{ kind: 'exit', code: 0 }, text]);
          return text;
        },
      };
    }

    it('each of two runs that take turns keeps its mounts, and its /tmp', async () => {
      const { executor, newRun, stage } = world();
      await executor.prewarm(2);
      const runs = [newRun('one'), newRun('two')];
      const first: string[] = [];
      for (const run of runs) first.push(await stage(run, `echo "$HOME" >/tmp/mine; ${MOUNTED_AT}`));
      expect(first[0]).not.toBe(first[1]);
      for (let turn = 0; turn < 2; turn += 1)
        for (const [index, run] of runs.entries()) {
          expect(await stage(run, MOUNTED_AT)).toBe(first[index]);
          expect(await stage(run, 'cat /tmp/mine')).toBe(`${run.folder}\n`);
        }
    });

    it('where there is no room for another helper, one changes over', async () => {
      const { executor, newRun, stage } = world(1);
      await executor.prewarm(1);
      const runs = [newRun('one'), newRun('two')];
      for (const run of [...runs, ...runs]) {
        expect(await stage(run, 'ls -A "$HOME/.."; pwd')).toBe(`${run.folder.split('/').at(-1)}\n${run.folder}\n`);
        await stage(run, 'echo >/dev/shm/left');
      }
    });

    it('a run that has got the folders of another sees them by its own name, mounted as they were', async () => {
      const { newRun, rename, stage } = world();
      const one = newRun('one');
      const before = await stage(one, MOUNTED_AT);
      const two = rename(one, 'two');
      expect(await stage(two, MOUNTED_AT)).toBe(before);
      expect(await stage(two, UNTOUCHED)).toBe(`1777\n${tmpMode}\ntwo\n${two.folder}\n`);
      await stage(two, 'echo kept >file');
      expect(await stage(two, 'cat file')).toBe('kept\n');
    });

    it('and one that has got them by the name that they had', async () => {
      const { newRun, pass, stage } = world();
      const one = newRun('one');
      const before = await stage(one, MOUNTED_AT);
      const two = pass(one, 'two');
      expect(await stage(two, MOUNTED_AT)).toBe(before);
      expect(await stage(two, UNTOUCHED)).toBe(`1777\n${tmpMode}\none\n${one.folder}\n`);
    });

    const LEFT = [
      ['a file in /dev/shm', 'echo >/dev/shm/left'],
      ['a folder in /dev/shm', 'mkdir /dev/shm/.left'],
      ['the mode of /dev/shm', 'chmod 755 /dev/shm'],
      ['a file in /tmp', 'echo >/tmp/left'],
      ['a file beside its folder', 'echo >"$HOME/../left"'],
      ['a file further up', 'echo >"$HOME/../../left"'],
    ] as const;

    it.each(LEFT)('by that name it sees nothing that the other has left: %s', async (_what, script) => {
      const { newRun, pass, stage } = world();
      const one = newRun('one');
      await stage(one, `set +e; ${script}; true`);
      execFileSync('sh', ['-c', 'rm -rf "$1"/* "$2"/*', 'sh', one.folder, one.temporary]);
      expect(await stage(pass(one, 'two'), UNTOUCHED)).toBe(`1777\n${tmpMode}\none\n${one.folder}\n`);
    });

    it.each(LEFT)('and by its own, too, nothing else of what that one has left: %s', async (_what, script) => {
      const { newRun, rename, stage } = world();
      const one = newRun('one');
      await stage(one, `set +e; ${script}; true`);
      // Its owner clears what is on disk.
      execFileSync('sh', ['-c', 'rm -rf "$1"/* "$2"/*', 'sh', one.folder, one.temporary]);
      const two = rename(one, 'two');
      expect(await stage(two, UNTOUCHED)).toBe(`1777\n${tmpMode}\ntwo\n${two.folder}\n`);
    });

    it('a link that one has put in the way leads nobody out of the view', async () => {
      const { attempt, data, newRun, rename, stage } = world();
      const victim = mkdtempSync(join('/var/tmp', 'penstock-victim-'));
      left.push(() => Promise.resolve(void execFileSync('rm', ['-rf', victim])));
      mkdirSync(join(victim, 'work', '0', 'one'), { recursive: true });
      const one = newRun('one');
      await attempt(one, `cd /; mv ${data} /tmp/elsewhere && ln -s ${victim} ${data}`);
      const two = rename(one, 'two');
      // Where it may do that to its helper it has made it useless, for its own key alone: the next attempt has another one.
      const { exit } = await attempt(two, 'true');
      expect(['lost', 'exit']).toContain(exit.kind);
      expect(await stage(two, 'pwd')).toBe(`${two.folder}\n`);
      expect(existsSync(join(victim, 'work', '0', 'one'))).toBe(true);
    });
  },
);
