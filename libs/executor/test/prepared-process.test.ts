import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StagePreparation, StageSpec } from '../src/contract/port.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { HELPER_SHELL } from '../src/process/scripts.ts';
import { descendantsOf, identityOf, signalProcess, type ProcessIdentity } from '../src/system/proc.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

const isDash = realpathSync(HELPER_SHELL).endsWith('/dash');
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!isDash && notRun !== undefined)
  appendFileSync(notRun, 'stages that are prepared: the helper’s shell is no dash here\n');

const ways: Isolation[] = process.getuid?.() === 0 ? ['namespace', 'user-namespace'] : ['user-namespace'];

describe.runIf(isDash).each(ways)('a stage that is prepared in a %s', (isolation) => {
  let folder: string;
  let executor: ProcessExecutor;
  let idle: Set<number>;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'penstock-prepared-'));
    executor = new ProcessExecutor({ isolations: [isolation], forksAhead: true, warn: () => {} });
    await executor.prewarm(1);
    idle = new Set(descendantsOf(process.pid).map(({ pid }) => pid));
  });
  afterEach(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function specOf(script: string, more: Partial<StageSpec> = {}): StageSpec {
    const commands = [{ script, bindings: {} }];
    return { helperKey: 'key', commands, env: { NAME: 'value' }, cwd: folder, timeoutMs: 60_000, ...more };
  }

  function prepared(spec: StageSpec): StagePreparation {
    const preparation = executor.prepare(spec);
    if (preparation === undefined) throw new Error('it was not prepared');
    return preparation;
  }

  /** What its owner writes. */
  const isReading = (pid: number): boolean => readFileSync(`/proc/${pid}/syscall`, 'latin1').startsWith('0 0x0 ');

  /** The process that is forked for it, once it waits: it has read its job and opened its output anew. */
  async function waiting(): Promise<ProcessIdentity> {
    for (;;) {
      const forked = descendantsOf(process.pid).find(({ pid }) => !idle.has(pid));
      if (forked !== undefined && isReading(forked.pid)) return forked;
      await setImmediate();
    }
  }

  async function outcome(preparation: StagePreparation): Promise<readonly unknown[]> {
    const sink = new RecordingSink();
    const exit = await preparation.start(sink).ended;
    return [exit, sink.text(), sink.text('stderr')];
  }
  const SUCCESS = { kind: 'exit', code: 0 };

  it('runs nothing of its own before it is started, and then all of it, once', async () => {
    const preparation = prepared(specOf('echo "$NAME" | tee -a ran'));
    expect(preparation.begin()).toBe(true);
    await waiting();
    expect(existsSync(join(folder, 'ran'))).toBe(false);
    expect(await outcome(preparation)).toEqual([SUCCESS, 'value\n', '']);
    expect(readFileSync(join(folder, 'ran'), 'utf8')).toBe('value\n');
  });

  it('has the folder and the programs that are there when it starts', async () => {
    const late = join(folder, 'late');
    const preparation = prepared(specOf('pwd; sh -c :', { cwd: late, env: { PATH: `${late}:/usr/bin:/bin` } }));
    expect(preparation.begin()).toBe(true);
    await waiting();
    mkdirSync(late);
    writeFileSync(join(late, 'sh'), '#!/bin/dash\necho another', { mode: 0o755 });
    expect(await outcome(preparation)).toEqual([SUCCESS, 'another\n', '']);
  });

  it('never runs once it was discarded, and leaves its helper to the next', async () => {
    const preparation = prepared(specOf('touch ran'));
    expect(preparation.begin()).toBe(true);
    await waiting();
    preparation.discard();
    const next = executor.start(specOf('echo next'), new RecordingSink());
    expect(await next.ended).toEqual(SUCCESS);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('is begun where a helper idles and nowhere else, and started all the same', async () => {
    const [first, second] = [prepared(specOf('echo first')), prepared(specOf('echo second'))];
    expect([first.begin(), second.begin(), first.begin()]).toEqual([true, false, true]);
    expect(await Promise.all([outcome(second), outcome(first)])).toEqual([
      [SUCCESS, 'second\n', ''],
      [SUCCESS, 'first\n', ''],
    ]);
  });

  it.each<[string, () => Promise<ProcessIdentity>]>([
    ['its process', () => waiting()],
    ['its helper', async () => (await waiting()) && identityOf(Math.max(...idle))],
  ])('runs once, in another process, where %s was killed while it waited', async (_what, victim) => {
    const preparation = prepared(specOf('echo ran >>ran'));
    expect(preparation.begin()).toBe(true);
    signalProcess(await victim(), 'SIGKILL');
    // Until this process has taken their ends.
    while ([...idle].some((pid) => existsSync(`/proc/${pid}`))) await setImmediate();
    expect(await outcome(preparation)).toEqual([SUCCESS, '', '']);
    expect(readFileSync(join(folder, 'ran'), 'utf8')).toBe('ran\n');
  });

  it('takes its helper with it where it was killed, and nobody had heard of it, when it was discarded', async () => {
    const preparation = prepared(specOf('touch ran'));
    expect(preparation.begin()).toBe(true);
    const helper = Math.max(...idle);
    signalProcess(await waiting(), 'SIGKILL');
    // It has said so, and reads what is left to be read.
    while (!isReading(helper));
    preparation.discard();
    const next = executor.start(specOf('echo next', { timeoutMs: 4_000 }), new RecordingSink());
    expect(await next.ended).toEqual(SUCCESS);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('may be stopped as soon as it was started', async () => {
    const preparation = prepared(specOf('sleep 600'));
    expect(preparation.begin()).toBe(true);
    const stage = preparation.start(new RecordingSink());
    stage.stop('cancelled');
    expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
  });

  it('has its time from its start on', async () => {
    const preparation = prepared(specOf('true'));
    expect(preparation.begin()).toBe(true);
    await waiting();
    const before = performance.now();
    const stage = preparation.start(new RecordingSink());
    expect(await stage.ended).toEqual(SUCCESS);
    expect(stage.startedAtMs).toBeGreaterThanOrEqual(before);
  });

  it('ends with its executor', async () => {
    expect(prepared(specOf('touch ran')).begin()).toBe(true);
    await waiting();
    await executor.close();
    expect(descendantsOf(process.pid).filter(({ pid }) => idle.has(pid))).toEqual([]);
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });

  it('is started in the usual way where its helper serves one stage only', async () => {
    await executor.close();
    executor = new ProcessExecutor({ isolations: ['group'], warn: () => {} });
    await executor.prewarm(1);
    const preparation = prepared(specOf('echo ran'));
    expect(preparation.begin()).toBe(false);
    expect(await outcome(preparation)).toEqual([SUCCESS, 'ran\n', '']);
  });

  it.each<[string, Partial<StageSpec>]>([
    ['a user of its own', { user: { uid: 60_001, gid: 60_001 } }],
    ['the view of a run', { run: { folder: '/run', temporary: '/tmp' } }],
    ['files of secrets', { files: { folder: '/dev/shm/x', files: [] } }],
    ['files that are renewed', { renewedFiles: [{ variable: 'TOKEN', content: 'x' }] }],
    ['a place', { place: { network: 'none' } }],
    ['no command', { commands: [] }],
    ['a script that goes by a file', { commands: [{ script: `: ${'x'.repeat(200_000)}`, bindings: {} }] }],
  ])('is none with %s, which is made when it starts', (_what, more) => {
    expect(executor.prepare(specOf('true', more))).toBeUndefined();
  });
});
