/** A helper serves on after a signal and a stop where it reads all orders itself (HELPER-5). */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StageExit, StageProcess } from '../src/contract/port.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { descendantsOf, identityOf, signalProcess, type ProcessIdentity } from '../src/system/proc.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const ways: Isolation[] = process.getuid?.() === 0 ? ['namespace', 'user-namespace'] : ['user-namespace'];
const SUCCESS: StageExit = { kind: 'exit', code: 0 };
const STOPPED: StageExit = { kind: 'stopped', reason: 'cancelled' };
const KILLED: StageExit = { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false };

describe.each(ways)('a helper in a %s', (isolation) => {
  let folder: string;
  let executor: ProcessExecutor;
  let helper: ProcessIdentity;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-kept-'));
  });
  afterEach(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function begin(forksAhead: boolean): Promise<void> {
    executor = new ProcessExecutor({ isolations: [isolation], forksAhead, warn: () => {} });
    await executor.prewarm(1);
    helper = identityOf(Math.max(...descendantsOf(process.pid).map(({ pid }) => pid)));
  }

  function start(script: string): StageProcess {
    const commands = [{ script, bindings: {} }];
    const spec = { helperKey: 'key', commands, env: {}, cwd: folder, timeoutMs: 60_000 };
    return executor.start(spec, new RecordingSink());
  }

  const hasBegun = (): boolean => existsSync(join(folder, 'begun'));

  /** `before`: its first commands, what they start is there when it is stopped. `during`: while it runs. */
  async function stopped({ before = '', during = () => {} } = {}): Promise<StageExit> {
    rmSync(join(folder, 'begun'), { force: true });
    const stage = start(`${before}\necho begun >begun; exec sleep 600`);
    while (!hasBegun()) await setImmediate();
    during();
    stage.stop('cancelled');
    return stage.ended;
  }

  async function servesNext(): Promise<boolean> {
    let isBelow = false;
    await stopped({ during: () => (isBelow = descendantsOf(helper.pid).length > 0) });
    return isBelow;
  }

  const endings: [string, () => Promise<StageExit>, StageExit][] = [
    ['ended with the status of a signal', () => start('exit 137').ended, KILLED],
    ['ended by a signal', () => start('kill -9 $$').ended, KILLED],
    ['was stopped', () => stopped(), STOPPED],
    ['was stopped with what it had left behind', () => stopped({ before: 'setsid sleep 600 &' }), STOPPED],
  ];

  it.each(endings)('serves the next stage, too, when one %s', async (_how, end, expected) => {
    await begin(false);
    expect(await end()).toEqual(expected);
    expect(descendantsOf(helper.pid)).toEqual([]);
    expect(await servesNext()).toBe(true);
  });

  it.each(endings)('that forks ahead serves no other stage when one %s', async (_how, end, expected) => {
    await begin(true);
    expect(await end()).toEqual(expected);
    expect(await servesNext()).toBe(false);
  });

  it('runs nothing of a stage that was stopped before its order was read, and then the next', async () => {
    await begin(false);
    signalProcess(helper, 'SIGSTOP');
    const stage = start('echo never >>ran');
    stage.stop('cancelled');
    signalProcess(helper, 'SIGCONT');
    expect(await stage.ended).toEqual(STOPPED);
    expect(await start('echo next >>ran').ended).toEqual(SUCCESS);
    expect(readFileSync(join(folder, 'ran'), 'utf8')).toBe('next\n');
    expect(await servesNext()).toBe(true);
  });

  it('runs the next stage whole when one that had just ended was stopped', async () => {
    await begin(false);
    const stage = start('echo begun >begun');
    // Until its end is reported, which nobody has heard yet.
    while (!hasBegun());
    while (!isReading(helper.pid));
    signalProcess(helper, 'SIGSTOP');
    stage.stop('cancelled');
    expect(await stage.ended).toEqual(STOPPED);
    const next = start('echo next >>ran');
    signalProcess(helper, 'SIGCONT');
    expect(await next.ended).toEqual(SUCCESS);
    expect(readFileSync(join(folder, 'ran'), 'utf8')).toBe('next\n');
    expect(await servesNext()).toBe(true);
  });
});

/** Of the descriptor that an order comes by. */
const isReading = (pid: number): boolean => readFileSync(`/proc/${pid}/syscall`, 'latin1').startsWith('0 0x0 ');
