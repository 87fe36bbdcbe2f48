/** What a stage may take: by control groups where they are to be had, and by its own limits and watching elsewhere. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
  readdirSync,
  readFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ControlGroups } from '../src/limits/control-groups.ts';
import { shellLimits, type StageLimits } from '../src/limits/stage-limits.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import { SandboxExecutor } from '../src/sandbox/executor.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';
import type { Executor, StageExit, StagePlace } from '../src/index.ts';

const MIB = 1024 ** 2;
const LIMITS: StageLimits = {
  memoryBytes: 96 * MIB,
  processes: 40,
  diskBytes: 64 * MIB,
  inodes: 4_000,
  openFiles: 200,
};
const USER = process.getuid?.() === 0 ? { uid: 330_001, gid: 330_001 } : undefined;

const groups = ControlGroups.find();
const lacking = await whySandboxLacks(undefined);
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (notRun !== undefined) {
  if (groups === null) appendFileSync(notRun, 'limits by control groups: none can be made here\n');
  if (groups !== null && groups.version !== 2)
    appendFileSync(notRun, 'limits by control groups of version 2: this machine has version 1\n');
  if (lacking !== null) appendFileSync(notRun, `limits in a sandbox: ${lacking}\n`);
}
const bounds = [...(groups === null ? [] : (['control groups'] as const)), 'watching' as const];
const ways = bounds.flatMap((by) => [
  { kind: 'process' as const, by },
  ...(lacking === null ? [{ kind: 'sandbox' as const, by }] : []),
]);

describe.each(ways)('a stage as $kind, bounded by $by,', ({ kind, by }) => {
  let folder: string;
  let executor: Executor;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync('/var/tmp/penstock-limits-'));
    const keep = join(folder, 'work');
    mkdirSync(keep, { mode: 0o711 });
    const common = { limits: LIMITS, groups: by === 'watching' ? null : groups, warn: () => {} };
    executor =
      kind === 'process'
        ? new ProcessExecutor({ ...common, covered: { cover: folder, keep } })
        : new SandboxExecutor({
            ...common,
            layout: { keep, hidden: [], paths: [], users: USER && { first: USER.uid, last: USER.uid } },
          });
  });
  afterEach(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function run(script: string, place?: StagePlace): Promise<{ exit: StageExit; sink: RecordingSink }> {
    const run = { folder: join(folder, 'work', 'run'), temporary: join(folder, 'work', '.tmp-run') };
    const { chownSync } = await import('node:fs');
    for (const path of Object.values(run)) {
      mkdirSync(path, { recursive: true });
      if (USER !== undefined) chownSync(path, USER.uid, USER.gid);
    }
    const sink = new RecordingSink();
    const commands = [{ script, bindings: {} }];
    const spec = {
      helperKey: 'key',
      user: USER,
      commands,
      env: {},
      run,
      cwd: run.folder,
      timeoutMs: 60_000,
      graceMs: 500,
    };
    const network = kind === 'sandbox' ? ({ network: 'none' } as const) : {};
    const exit = await executor.start({ ...spec, place: { ...network, ...place } }, sink).ended;
    return { exit, sink };
  }
  async function goesOn(): Promise<void> {
    const { exit, sink } = await run('echo next');
    expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 0 }, 'next\n']);
  }

  it('that takes too much memory is killed, told so, and costs nobody else', async () => {
    const { exit, sink } = await run(
      'exec perl -e \'my @a; for (1..300) { push @a, "x" x 1048576; select(undef,undef,undef,0.01) } sleep 5\'',
    );
    expect(exit).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: true });
    expect(sink.text('system')).toMatch(/memory/);
    await goesOn();
  });

  it('that fills its /dev/shm meets an end of it, or of its memory', async () => {
    const { exit } = await run('head -c 90000000000 /dev/zero >/dev/shm/file');
    expect(exit.kind === 'exit' && exit.code === 0).toBe(false);
    await goesOn();
  });

  it('that starts processes without end is refused more, and leaves none', async () => {
    const { exit } = await run('i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done');
    expect(exit.kind === 'exit' && exit.code === 0).toBe(false);
    await goesOn();
  });

  it('that writes a file beyond its disk cannot, and one that writes many is ended', async () => {
    const one = await run('head -c 100000000 /dev/zero >file');
    expect(one.exit).not.toEqual({ kind: 'exit', code: 0 });
    const many = await run('for i in 1 2 3 4 5 6; do head -c 30000000 /dev/zero >/tmp/$i; done; sleep 30');
    expect(many.exit).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
    expect(many.sink.text('system')).toContain('bytes of the disk');
  });

  it('that makes files without end is ended', async () => {
    const { exit, sink } = await run('seq 1 6000 | xargs touch; sleep 30');
    expect(exit).toEqual({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
    expect(sink.text('system')).toContain('files and folders');
  });

  it('has at most so many files open, and no core file', async () => {
    const { sink } = await run('ulimit -n; ulimit -c');
    expect(sink.text()).toBe('200\n0\n');
  });

  if (by === 'watching') return;
  it('may ask for less memory than one before it has left in /dev/shm', async () => {
    expect((await run('head -c 40M /dev/zero >/dev/shm/left')).exit).toEqual({ kind: 'exit', code: 0 });
    const { exit, sink } = await run('echo up', { resources: { memoryBytes: 16 * MIB } });
    expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 0 }, 'up\n']);
  });

  it('may ask for less memory, for itself alone', async () => {
    const script = 'exec perl -e \'my $a = "x" x 25000000; print "had it\\n"\'';
    expect((await run(script, { resources: { memoryBytes: 32 * MIB } })).exit).toMatchObject({ oom: true });
    expect((await run(script)).sink.text()).toBe('had it\n');
  });
});

describe('control groups', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync('/var/tmp/penstock-groups-');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('of version 2 are made where this process may divide its own, and hold it in one of their own', async () => {
    const own = join(root, 'service');
    mkdirSync(own);
    writeFileSync(join(own, 'cgroup.controllers'), 'cpu memory pids\n');
    writeFileSync(join(own, 'cgroup.procs'), `${process.pid}\n`);
    const found = ControlGroups.find(root, new Map([['', '/service']]));
    expect(found?.version).toBe(2);
    expect(readFileSync(join(own, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
    expect(readFileSync(join(own, 'penstock', 'cgroup.procs'), 'utf8')).toBe(String(process.pid));
    const group = found?.make({ memoryBytes: 5 * MIB, processes: 7 });
    group?.setCpu(1.5);
    await group?.add(42);
    const folder = join(own, readdirSync(own).find((name) => existsSync(join(own, name, 'cpu.max'))) ?? '');
    const files = ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max', 'cgroup.procs'];
    expect(files.map((file) => readFileSync(join(folder, file), 'utf8'))).toEqual([
      String(5 * MIB),
      '0',
      '7',
      '150000 100000',
      '42',
    ]);
    writeFileSync(join(folder, 'memory.events'), 'oom 3\noom_kill 2\n');
    writeFileSync(join(folder, 'pids.events'), 'max 4\n');
    expect(group?.counts()).toEqual({ oomKills: 2, refused: 4 });
  });

  it('are looked for without making any', () => {
    const own = join(root, 'service');
    mkdirSync(own);
    const path = new Map([['', '/service']]);
    expect(ControlGroups.look(root, path)).toBeNull();
    writeFileSync(join(own, 'cgroup.controllers'), 'cpu memory pids\n');
    writeFileSync(join(own, 'cgroup.subtree_control'), '');
    expect(ControlGroups.look(root, path)).toBe(2);
    expect(readdirSync(own).toSorted()).toEqual(['cgroup.controllers', 'cgroup.subtree_control']);
    for (const name of ['memory', 'pids']) mkdirSync(join(root, name));
    const divided = new Map(['memory', 'pids'].map((name) => [name, '/'] as const));
    expect(ControlGroups.look(root, divided)).toBe(1);
  });

  it('are none where nothing can be written', () => {
    expect(
      ControlGroups.find(
        join(root, 'none'),
        new Map([
          ['', '/x'],
          ['memory', '/'],
          ['pids', '/'],
        ]),
      ),
    ).toBeNull();
  });
});

it('a stage bounds its own processes only where no group counts them', () => {
  expect(shellLimits(LIMITS, true).own).toContain('ulimit -p 40');
  expect(shellLimits(LIMITS, false).own).toBe('');
});
