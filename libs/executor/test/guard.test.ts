import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Guard } from '../src/guard/guard.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import { killLeftovers } from '../src/process/leftovers.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import { bootClockMs, descendantsOf, identityOf, isAlive, type ProcessIdentity } from '../src/system/proc.ts';
import { processesWith } from '../src/testing/processes.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
let folder: string;
/** More than a guard has for an answer. */
const STILL_MS = 5_500;
let marks = 0;
const spawned: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-guard-'));
});
afterEach(() => {
  for (const child of spawned.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

type Message = Record<string, unknown>;

interface Owner {
  readonly child: ChildProcess;
  readonly mark: string;
  readonly guard: number;
  readonly leftovers: string;
  /** The next message that has this field. */
  message(field: string): Promise<Message>;
}

/** A process with two stages that run, ignore signals and have daemons. */
async function startOwner(guarded: boolean, deadlineMs = 0, kind = 'process'): Promise<Owner> {
  marks += 1;
  const mark = `owner-${process.pid}-${marks}`;
  const leftovers = join(folder, 'leftovers');
  const child = spawn(
    process.execPath,
    [OWNER, mark, guarded ? 'guarded' : 'alone', String(deadlineMs), leftovers, kind],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  spawned.push(child);
  const lines: Message[] = [];
  let onLine = (): void => {};
  const { stdout } = child;
  if (stdout === null) throw new Error('no stdout');
  createInterface({ input: stdout }).on('line', (line) => {
    lines.push(JSON.parse(line) as Message);
    onLine();
  });
  const message = async (field: string): Promise<Message> => {
    for (;;) {
      const found = lines.find((line) => field in line);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        onLine = resolve;
      });
    }
  };
  const up = await message('up');
  return { child, mark, guard: Number(up['guard']), leftovers, message };
}

const lacking = await whySandboxLacks(undefined);
const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    return '';
  }
};

const stagesGone = async (mark: string): Promise<void> => {
  await expect.poll(() => processesWith(`OWNER_MARK=${mark}`), { timeout: 10_000, interval: 20 }).toEqual([]);
};

describe('a guard whose owner stands still', () => {
  it('GUARD-3: is kept where it has answered meanwhile', async () => {
    const guard = new Guard();
    expect(await guard.confirm()).toBe(true);
    const asked = guard.confirm();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STILL_MS);
    expect(await asked).toBe(true);
    expect(await guard.confirm()).toBe(true);
    await guard.fire();
  });
});

describe('nothing outlives its owner (P15)', () => {
  it.each([true, false])('that is killed with SIGKILL (with a guard: %j)', async (guarded) => {
    const { child, mark, guard } = await startOwner(guarded);
    await expect.poll(() => processesWith(`OWNER_MARK=${mark}`).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(4);
    const guardProcess = identityOf(guarded ? guard : process.pid);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await stagesGone(mark);
    await expect.poll(() => guarded && isAlive(guardProcess)).toBe(false);
  });

  it('that is frozen past its deadline, while it is still frozen', async () => {
    const { child, mark, message } = await startOwner(true, 1_500);
    child.kill('SIGSTOP');
    await stagesGone(mark);
    child.kill('SIGCONT');
    expect(await message('guardGone')).toEqual({ guardGone: 'it fired' });
    const { exits, later } = await message('exits');
    expect(exits).toMatchObject([{ kind: 'lost' }, { kind: 'lost' }]);
    expect(later).toMatchObject({ kind: 'lost' });
  });

  it('nor do they go on when the guard alone is killed', async () => {
    const { mark, guard, message } = await startOwner(true);
    process.kill(guard, 'SIGKILL');
    await stagesGone(mark);
    expect((await message('exits'))['later']).toMatchObject({ kind: 'lost' });
  });

  it('nor when guard and owner are frozen and wake after the deadline', async () => {
    const { child, mark, guard, message } = await startOwner(true, 1_500);
    child.kill('SIGSTOP');
    process.kill(guard, 'SIGSTOP');
    const asleep = bootClockMs();
    await expect.poll(() => bootClockMs() - asleep, { timeout: 10_000 }).toBeGreaterThan(1_600);
    expect(processesWith(`OWNER_MARK=${mark}`)).not.toEqual([]);
    child.kill('SIGCONT');
    process.kill(guard, 'SIGCONT');
    await stagesGone(mark);
    await message('guardGone');
  });

  it.runIf(lacking === null)(
    'nor do stages in a sandbox, and the network stack beside them, whatever ends it',
    async () => {
      const stacks = (pid: number): ProcessIdentity[] =>
        descendantsOf(pid).filter(({ pid: each }) => commandOf(each).startsWith('slirp4netns'));
      const killed = await startOwner(true, 0, 'sandbox');
      const beside = stacks(killed.child.pid ?? 0);
      expect(beside).toHaveLength(2);
      killed.child.kill('SIGKILL');
      await once(killed.child, 'exit');
      await stagesGone(killed.mark);
      await expect.poll(() => beside.filter(isAlive), { timeout: 10_000 }).toEqual([]);
      const alone = await startOwner(true, 0, 'sandbox');
      process.kill(alone.guard, 'SIGKILL');
      await stagesGone(alone.mark);
      expect((await alone.message('exits'))['exits']).toMatchObject([{ kind: 'lost' }, { kind: 'lost' }]);
    },
    60_000,
  );

  it('a group signal of the terminal reaches neither guard nor helpers', async () => {
    const { child, mark, guard } = await startOwner(true);
    const groups = [guard, ...processesWith(`OWNER_MARK=${mark}`)].map(
      (pid) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[2],
    );
    const own = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ')[2];
    expect(groups).not.toContain(own);
  });
});

describe('the guard', () => {
  /** A process for it to hold. */
  function sleeper(): ChildProcess {
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
    spawned.push(child);
    return child;
  }

  it('ends what it holds when its deadline passes, and holds nothing ever after', async () => {
    const guard = new Guard();
    const held = sleeper();
    const ended = once(held, 'exit');
    await guard.hold([identityOf(held.pid ?? 0)]);
    expect(await guard.confirm()).toBe(true);
    await guard.setDeadline(bootClockMs() + 50);
    expect(await guard.gone).toBe('it fired');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await expect(guard.hold([identityOf(process.pid)])).rejects.toMatchObject({ tag: 'GuardGone' });
    expect(await guard.confirm()).toBe(false);
  });

  it('waits for the last deadline it was given, also when it was frozen before that one arrived', async () => {
    const guard = new Guard();
    // Far enough for a busy machine to freeze the guard before it.
    const first = bootClockMs() + 3_000;
    await guard.setDeadline(first);
    process.kill(guard.identity.pid, 'SIGSTOP');
    const taken = guard.setDeadline(bootClockMs() + 60_000);
    await expect.poll(() => bootClockMs() > first + 200, { timeout: 10_000 }).toBe(true);
    process.kill(guard.identity.pid, 'SIGCONT');
    await taken;
    expect(await guard.confirm()).toBe(true);
    await guard.fire();
  }, 30_000);

  it('that is frozen counts as gone when it has not answered for 5 s, and never wakes', async () => {
    const guard = new Guard();
    expect(await guard.confirm()).toBe(true);
    process.kill(guard.identity.pid, 'SIGSTOP');
    const taken = guard.setDeadline(bootClockMs() + 60_000);
    await expect(taken).rejects.toMatchObject({ tag: 'GuardGone' });
    expect(await guard.gone).toContain('SIGKILL');
    expect(isAlive(guard.identity)).toBe(false);
    expect(await guard.confirm()).toBe(false);
  }, 20_000);

  it('does not hold, nor kill, a process that only has the number of another', async () => {
    const guard = new Guard();
    const other = sleeper();
    const { pid = 0 } = other;
    await expect(guard.hold([{ pid, startTime: '1' }])).rejects.toMatchObject({ tag: 'GuardGone' });
    await guard.fire();
    expect(isAlive(identityOf(pid))).toBe(true);
  });

  it('has fired when it is gone, and what it held with it: who waits for that may give up its lease (P15)', async () => {
    const guard = new Guard();
    const held = identityOf(sleeper().pid ?? 0);
    await guard.hold([held]);
    await guard.fire();
    expect([isAlive(guard.identity), isAlive(held)]).toEqual([false, false]);
  });

  it('lets go of what is gone', async () => {
    const guard = new Guard();
    const held = sleeper();
    const identity = identityOf(held.pid ?? 0);
    await guard.hold([identity]);
    guard.letGo([identity]);
    await guard.fire();
    expect(isAlive(identity)).toBe(true);
  });
});

describe('what a start lists is found by the next (P17)', () => {
  it('guard and helpers of an owner that died while its guard was frozen', async () => {
    const { child, mark, guard, leftovers } = await startOwner(true);
    const guardProcess = identityOf(guard);
    process.kill(guard, 'SIGSTOP');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await killLeftovers(leftovers)).toBeGreaterThanOrEqual(1);
    expect(isAlive(guardProcess)).toBe(false);
    await stagesGone(mark);
    expect(await killLeftovers(leftovers)).toBe(0);
  });

  it('its small files go with the next executor of this machine', async () => {
    const { child } = await startOwner(false);
    const own = (): string[] =>
      ['/dev/shm', tmpdir()]
        .flatMap((parent) => readdirSync(parent))
        .filter((name) => name.startsWith('penstock-') && name.includes(`-${child.pid}-`));
    expect(own()).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await new ProcessExecutor().close();
    expect(own()).toEqual([]);
  });

  it('but never a later process with a listed number, nor what another boot has listed', async () => {
    const file = join(folder, 'listed');
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    spawned.push(child);
    const { pid, startTime } = identityOf(child.pid ?? 0);
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    writeFileSync(file, `${boot}\n${pid} ${Number(startTime) - 1}\n`);
    expect(await killLeftovers(file)).toBe(0);
    writeFileSync(file, `another\n${pid} ${startTime}\n`);
    expect(await killLeftovers(file)).toBe(0);
    expect(isAlive({ pid, startTime })).toBe(true);
    writeFileSync(file, `${boot}\n${pid} ${startTime}\n${pid} ${start(startTime)}\n`);
    expect(await killLeftovers(file)).toBe(1);
    expect(isAlive({ pid, startTime })).toBe(false);
  });
});

/** Half a line, as a killed process may leave it. */
function start(startTime: string): string {
  return startTime.slice(0, 2);
}

it('a guard answers also where nothing can be written to a disk, with a bash of before 5.1', async () => {
  const script = fileURLToPath(new URL('../src/guard/guard.bash', import.meta.url));
  const guard = spawn('bash', ['-c', 'ulimit -f 0; exec bash "$0"', script], {
    env: { PATH: process.env['PATH'], BASH_COMPAT: '50' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  spawned.push(guard);
  const answers = createInterface({ input: guard.stdout })[Symbol.asyncIterator]();
  guard.stdin.write('? 1\n');
  expect((await answers.next()).value).toBe('? 1');
});
