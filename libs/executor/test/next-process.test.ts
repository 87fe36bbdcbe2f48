/** A helper that has served has the process of its next stage there before it is asked for it (HELPER-5). */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OutputSink, StageProcess } from '../src/contract/port.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { descendantsOf, identityOf, isAlive, signalProcess, type ProcessIdentity } from '../src/system/proc.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const ways: Isolation[] = process.getuid?.() === 0 ? ['namespace', 'user-namespace'] : ['user-namespace'];
const SUCCESS = { kind: 'exit', code: 0 };

describe.each(ways)('the next process of a helper in a %s', (isolation) => {
  let folder: string;
  let executor: ProcessExecutor;
  let helpers: Set<number>;
  let next: ProcessIdentity;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-next-'));
    executor = new ProcessExecutor({ isolations: [isolation], forksAhead: true, warn: () => {} });
    await executor.prewarm(1);
    helpers = new Set(descendantsOf(process.pid).map(({ pid }) => pid));
    await start('true').ended;
    next = await forked();
  });
  afterEach(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function start(script: string, sink: OutputSink = new RecordingSink()): StageProcess {
    const commands = [{ script, bindings: {} }];
    return executor.start({ helperKey: 'key', commands, env: {}, cwd: folder, timeoutMs: 60_000 }, sink);
  }

  /** Of the descriptor that an order comes by. */
  const isReading = (pid: number): boolean => readFileSync(`/proc/${pid}/syscall`, 'latin1').startsWith('0 0x0 ');

  const nextOf = (previous?: ProcessIdentity): ProcessIdentity | undefined =>
    descendantsOf(process.pid).find(({ pid }) => !helpers.has(pid) && pid !== previous?.pid && isReading(pid));

  async function forked(previous?: ProcessIdentity): Promise<ProcessIdentity> {
    for (;;) {
      const found = nextOf(previous);
      if (found !== undefined) return found;
      await setImmediate();
    }
  }

  /** And this process does nothing until whoever reads next has read what was for it. */
  function kill(): void {
    signalProcess(next, 'SIGKILL');
    const helper = Math.max(...helpers);
    while (!isReading(helper) && !existsSync(join(folder, 'ran')));
  }

  const ran = (): string => readFileSync(join(folder, 'ran'), 'utf8');

  it('runs the next stage', async () => {
    const stage = start('echo ran >>ran; echo >done; exec sleep 600');
    while (!existsSync(join(folder, 'done'))) await setImmediate();
    expect(isAlive(next)).toBe(true);
    expect(readFileSync(`/proc/${next.pid}/cwd/ran`, 'utf8')).toBe('ran\n');
    stage.stop('cancelled');
    expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
  });

  it.each<[string, (stage: StageProcess) => void, object]>([
    ['killed', kill, { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false }],
    ['stopped', (stage) => stage.stop('cancelled'), { kind: 'stopped', reason: 'cancelled' }],
  ])(
    'that is %s before it has read its order never runs its stage, and nobody else does',
    async (_how, end, expected) => {
      // It reads nothing any more.
      signalProcess(next, 'SIGSTOP');
      const stage = start('echo never >>ran');
      end(stage);
      expect(await stage.ended).toEqual(expected);
      expect(await start('echo another >>ran').ended).toEqual(SUCCESS);
      expect(await start('echo third >>ran').ended).toEqual(SUCCESS);
      expect(ran()).toBe('another\nthird\n');
    },
  );

  it.each<[string, (stage: StageProcess) => void]>([
    ['stopped', (stage) => stage.stop('cancelled')],
    ['out of its time', (stage) => stage.stop('timeout')],
  ])(
    'that dies of the signal for a stage which had just ended when it was %s costs no other stage',
    async (_how, end) => {
      const stage = start('true');
      // Its end is reported, and nobody has heard it yet.
      while (nextOf(next) === undefined);
      const helper = identityOf(Math.max(...helpers));
      signalProcess(helper, 'SIGSTOP');
      end(stage);
      await stage.ended;
      const another = start('echo ran >>ran');
      signalProcess(helper, 'SIGCONT');
      expect(await another.ended).toEqual(SUCCESS);
      expect(ran()).toBe('ran\n');
    },
  );

  it('that is killed while the output of the stage before is taken changes nothing of that one', async () => {
    const taken: (() => void)[] = [];
    let bytes = 0;
    const sink: OutputSink = {
      write: (_stream, part) => {
        bytes += part.length;
        return new Promise((resolve) => taken.push(resolve));
      },
    };
    // More than is read at once: the rest is still to be read when it has ended.
    const stage = start('exec head -c 100000 /dev/zero', sink);
    let ended = false;
    void stage.ended.then(() => (ended = true));
    signalProcess(await forked(next), 'SIGKILL');
    while (!isReading(Math.max(...helpers))) await setImmediate();
    // Both reports have come, and none of the output was taken.
    await setImmediate();
    await setImmediate();
    for (; !ended; await setImmediate()) taken.shift()?.();
    expect([await stage.ended, bytes]).toEqual([SUCCESS, 100_000]);
  });

  it('that is killed while no stage is there takes its helper with it, and stages go on', async () => {
    signalProcess(next, 'SIGKILL');
    while ([...helpers].some((pid) => existsSync(`/proc/${pid}`))) await setImmediate();
    expect(await start('echo ran >>ran').ended).toEqual(SUCCESS);
    expect(ran()).toBe('ran\n');
  });
});
