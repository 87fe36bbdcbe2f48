/**
 * What every executor promises (`port.ts`), as tests. An adapter's test file calls `runExecutorSuite` with a factory.
 * Where `contains` is false the adapter cannot hold a process that leaves its group, and says so to its users.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, chownSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Chunker } from '../output/chunker.ts';
import type { Executor, OutputSink, OutputStreamName, StageExit, StageProcess, StageSpec } from '../contract/port.ts';
import { runOwnerSuite, type OwnerSuiteOptions } from './owner-suite.ts';
import { processesWith } from './processes.ts';

export interface ExecutorSuiteOptions {
  /** `folder`: where the stages run. */
  readonly create: (folder: string) => Executor;
  readonly contains: boolean;
  /** What every stage of the suite is started with besides, and `user` its folder is given to. */
  readonly spec?: Pick<StageSpec, 'user' | 'place'> | undefined;
  /** Variables that the place adds to those of the stage. */
  readonly variables?: readonly string[] | undefined;
  /** Of the loudest stage, twice. Default 500,000,000: where output is dear, less. */
  readonly loudBytes?: number | undefined;
  /** A program that is no shell: its name, and a script by which it prints its name. Null: the place has none. */
  readonly program?: { readonly name: string; readonly printsName: string } | null | undefined;
  /** Whether `folder` is a folder of this machine, so that its disk can be a small one. Default false. */
  readonly hasOwnDisk?: boolean | undefined;
  /** Of its owner's end. */
  readonly owner?: OwnerSuiteOptions | undefined;
}

const LOUD_BYTES = 500_000_000;
const SMALL_DISK_BYTES = 1024 ** 2;
const LOUD_MS_MAX = 300_000;
const PERL = { name: 'perl', printsName: 'print "perl\\n"' };

/** Only root has file systems of its own to fill, and not everywhere. */
function canMount(): boolean {
  const [folder, notRun] = [mkdtempSync(join(tmpdir(), 'penstock-mount-')), process.env['PENSTOCK_NOT_RUN_FILE']];
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder], { stdio: 'ignore' });
    return true;
  } catch {
    if (notRun !== undefined)
      appendFileSync(notRun, 'the contract of executors on a full disk: nothing can be mounted\n');
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Keeps everything, to be looked at. */
export class RecordingSink implements OutputSink {
  readonly pieces: [OutputStreamName, Buffer][] = [];
  #onBytes: (() => void)[] = [];

  write(stream: OutputStreamName, bytes: Uint8Array): void {
    this.pieces.push([stream, Buffer.from(bytes)]);
    for (const resolve of this.#onBytes.splice(0)) resolve();
  }

  bytes(stream: OutputStreamName): Buffer {
    return Buffer.concat(this.pieces.filter(([of]) => of === stream).map(([, bytes]) => bytes));
  }

  text(stream: OutputStreamName = 'stdout'): string {
    return this.bytes(stream).toString('utf8');
  }

  async until(text: string, stream: OutputStreamName = 'stdout'): Promise<void> {
    while (!this.text(stream).includes(text)) await new Promise<void>((resolve) => this.#onBytes.push(resolve));
  }
}

export function runExecutorSuite(name: string, options: ExecutorSuiteOptions): void {
  const { create, contains, spec: always = {}, variables = [], program = PERL, loudBytes = LOUD_BYTES } = options;
  const { hasOwnDisk = false, owner } = options;
  if (owner !== undefined) runOwnerSuite(name, owner);

  describe(`${name}: the executor's contract`, () => {
    let executor: Executor;
    let folder: string;
    let stages = 0;
    beforeAll(() => {
      folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-suite-')));
      executor = create(folder);
      if (always.user !== undefined) chownSync(folder, always.user.uid, always.user.gid);
    });
    afterAll(async () => {
      await executor.close();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Each stage carries a mark in its environment by which all of its processes can be found. */
    function start(
      script: string | readonly string[],
      more: Partial<StageSpec> = {},
      sink: OutputSink = new RecordingSink(),
    ): { process: StageProcess; mark: string } {
      stages += 1;
      const mark = `${process.pid}-${name}-${stages}`;
      const commands = [script].flat().map((text) => ({ script: text, bindings: {} }));
      const spec: StageSpec = {
        helperKey: 'key',
        commands,
        cwd: folder,
        folders: [folder],
        timeoutMs: LOUD_MS_MAX,
        graceMs: 400,
        ...always,
        ...more,
        env: { ...more.env, SUITE_MARK: mark },
      };
      return { process: executor.start(spec, sink), mark };
    }

    async function run(
      script: string | readonly string[],
      more: Partial<StageSpec> = {},
    ): Promise<{ exit: StageExit; sink: RecordingSink; mark: string }> {
      const sink = new RecordingSink();
      const { process, mark } = start(script, more, sink);
      return { exit: await process.ended, sink, mark };
    }

    it.each([
      ['true', { kind: 'exit', code: 0 }],
      ['exit 7', { kind: 'exit', code: 7 }],
      ['exit 255', { kind: 'exit', code: 255 }],
      ['nosuchcommand', { kind: 'exit', code: 127 }],
      ['kill -TERM $$', { kind: 'signal', signal: 'SIGTERM', code: 143, oom: false }],
      ['kill -KILL $$', { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false }],
      ['kill -INT $$', { kind: 'signal', signal: 'SIGINT', code: 130, oom: false }],
      ['kill -ABRT $$', { kind: 'signal', signal: 'SIGABRT', code: 134, oom: false }],
    ])('%s ends as %j', async (script, wanted) => {
      expect((await run(script)).exit).toEqual(wanted);
    });

    it('a failing line ends the stage', async () => {
      const { exit, sink } = await run('echo one\nfalse\necho two');
      expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 1 }, 'one\n']);
    });

    it('the commands of a list share a shell, each parsed by itself, and the first that fails is the last', async () => {
      const { exit, sink } = await run(['cd /', 'X=kept', 'echo "$PWD $X"', "echo don\\'t; exit 3", 'echo never']);
      expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 3 }, "/ kept\ndon't\n"]);
      const open = await run(["echo 'open", 'echo never']);
      expect(open.exit).not.toEqual({ kind: 'exit', code: 0 });
      expect(open.sink.text()).toBe('');
    });

    it('each command of a list has its own bindings', async () => {
      const sink = new RecordingSink();
      const commands = ['one', 't\'w"o\n$(exit 1)'].map((value) => ({
        script: 'printf %s "${V}"',
        bindings: { V: value },
      }));
      expect(
        await executor.start(
          { ...always, helperKey: 'key', commands, env: {}, cwd: folder, folders: [folder], timeoutMs: 60_000 },
          sink,
        ).ended,
      ).toEqual({ kind: 'exit', code: 0 });
      expect(sink.text()).toBe('onet\'w"o\n$(exit 1)');
    });

    it('a stage has exactly its environment, an empty stdin and three descriptors', async () => {
      const value = `quote ' double " dollar $(x) back\\slash \n line, ünïcode \u0085 \u{1f600}`;
      const { sink } = await run('printf %s "$V"', { env: { V: value } });
      expect(sink.text()).toBe(value);
      const names = (
        await run('env | sed "s/=.*//" | sort; echo --; cat; ls /proc/self/fd | wc -l', { env: { A: '1' } })
      ).sink.text();
      // `ls` has its own listing open.
      const expected = ['A', 'HOME', 'PATH', 'PWD', 'SUITE_MARK', ...variables].toSorted();
      expect(names).toBe(`${[...expected, '--', '4'].join('\n')}\n`);
    });

    it('its output can be opened anew, as a pipe can', async () => {
      const { sink } = await run('echo out >/dev/stdout; echo err >/dev/stderr');
      expect([sink.text(), sink.text('stderr')]).toEqual(['out\n', 'err\n']);
    });

    it('a large environment and a long script arrive; what the kernel cannot take is said plainly', async () => {
      const env = Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`V${index}`, 'x'.repeat(100_000)]));
      expect((await run('echo "${#V0} ${#V7}"', { env })).sink.text()).toBe('100000 100000\n');
      expect((await run(`: ${'y'.repeat(300_000)}\necho end`)).sink.text()).toBe('end\n');
      const refused = await run('true', { env: { LONG: 'x'.repeat(200_000) } });
      expect(refused.exit).toEqual({ kind: 'exit', code: 126 });
      expect(refused.sink.text('system')).toContain('the variable LONG takes 200005 bytes');
    });

    it.each([
      ['a folder that is not there', { cwd: '/nosuch' }, 126, 'there is no folder /nosuch'],
      ['a shell that is not there', { shell: 'nosuchshell' }, 127, "there is no shell 'nosuchshell'"],
      ['a variable that no shell can hold', { env: { 'a-b': '1' } }, 126, 'a-b'],
      ['a NUL byte', { env: { A: 'x\0y' } }, 126, 'NUL'],
    ])('%s ends it with a remark', async (_what, more, code, remark) => {
      const { exit, sink } = await run('true', more);
      expect(exit).toEqual({ kind: 'exit', code });
      expect(sink.text('stderr') + sink.text('system')).toContain(remark);
    });

    it('all output arrives, whole and in order, bytes as they are', async () => {
      const { sink } = await run(
        'head -c 3000000 /dev/urandom | tee /proc/self/fd/2 | sha256sum | cut -c1-64 >sum; cat sum',
      );
      const { createHash } = await import('node:crypto');
      expect(sink.bytes('stderr')).toHaveLength(3_000_000);
      expect(sink.text()).toBe(`${createHash('sha256').update(sink.bytes('stderr')).digest('hex')}\n`);
    });

    it('a sink that is busy makes the stage wait, and loses nothing', async () => {
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      let bytes = 0;
      let paused = (): void => {};
      const first = new Promise<void>((resolve) => {
        paused = resolve;
      });
      const sink: OutputSink = {
        write: (_stream, data) => {
          bytes += data.length;
          paused();
          return gate;
        },
      };
      const { process } = start('head -c 5000000 /dev/zero; echo done >marker', {}, sink);
      await first;
      // Another stage comes and goes meanwhile: the first still waits for its one write.
      await run('sleep 0.2');
      expect(bytes).toBeLessThanOrEqual(64 * 1024);
      open();
      expect(await process.ended).toEqual({ kind: 'exit', code: 0 });
      expect(bytes).toBe(5_000_000);
    });

    it(
      'the fastest output and the longest line do not make the process grow',
      async () => {
        const chunker = new Chunker({ bytesMax: 4 * 1024 ** 2, emit: () => {} });
        const before = process.memoryUsage.rss();
        const { process: stage } = start(
          `head -c ${loudBytes} /dev/zero | tr "\\0" x; yes | head -c ${loudBytes}`,
          {},
          chunker,
        );
        let peak = before;
        const watching = setInterval(() => {
          peak = Math.max(peak, process.memoryUsage.rss());
        }, 5);
        expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
        clearInterval(watching);
        expect(await chunker.end()).toBeGreaterThan(4 * 1024 ** 2 - 64 * 1024);
        expect(peak - before).toBeLessThan(64 * 1024 ** 2);
      },
      LOUD_MS_MAX,
    );

    it('ends when its main process does, although a daemon holds its output, and the daemon with it', async () => {
      const { exit, mark } = await run(
        contains
          ? '(setsid sh -c "trap \\"\\" TERM HUP; sleep 600" &); exit 5'
          : '(trap "" TERM HUP; sleep 600) & exit 5',
      );
      expect(exit).toEqual({ kind: 'exit', code: 5 });
      expect(processesWith(mark)).toEqual([]);
    });

    it.each(contains ? (['TERM', 'INT', 'KILL'] as const) : (['TERM', 'INT'] as const))(
      'a stage that sends SIG%s to its own group ends by it, and harms no later one',
      async (signal) => {
        const { exit, mark } = await run(`sleep 600 & kill -${signal} 0; sleep 600`);
        expect(exit).toMatchObject({ kind: 'signal', signal: `SIG${signal}` });
        expect(processesWith(mark)).toEqual([]);
        expect((await run('exit 3')).exit).toEqual({ kind: 'exit', code: 3 });
      },
    );

    it('orphans are reaped and thousands of short children are no burden', async () => {
      const { exit } = await run('i=0; while [ $i -lt 500 ]; do (true &) ; i=$((i+1)); done');
      expect(exit).toEqual({ kind: 'exit', code: 0 });
    });

    it('a stop is SIGTERM to all of its processes', async () => {
      const sink = new RecordingSink();
      const { process, mark } = start(
        'trap "echo main; exit" TERM; (trap "echo child; exit" TERM; echo up; while :; do sleep 0.01; done) & wait; wait',
        {},
        sink,
      );
      await sink.until('up\n');
      process.stop('cancelled');
      expect(await process.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
      expect(sink.text().split('\n').toSorted()).toEqual(['', 'child', 'main', 'up']);
      expect(processesWith(mark)).toEqual([]);
    });

    it('children have their grace although the main process ends at once', async () => {
      const sink = new RecordingSink();
      const { process } = start(
        '(trap "sleep 0.2; echo cleaned; exit" TERM; echo up; while :; do sleep 0.01; done) & wait',
        { graceMs: 10_000 },
        sink,
      );
      await sink.until('up\n');
      process.stop('cancelled');
      await process.ended;
      expect(sink.text()).toBe('up\ncleaned\n');
    });

    it('what ignores SIGTERM is killed after the grace', async () => {
      const sink = new RecordingSink();
      const { process, mark } = start(
        `trap "" TERM; (${contains ? 'setsid' : ''} sleep 600 &); echo up; while :; do sleep 0.05; done`,
        {},
        sink,
      );
      await sink.until('up\n');
      process.stop('cancelled');
      expect(await process.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
      expect(processesWith(mark)).toEqual([]);
    });

    it('a stop before its start means that it never starts', async () => {
      // Of a key that has no helper yet: where one idles, a stage has started when `start` returns.
      const { process } = start('echo started >never', { helperKey: 'of nobody yet' });
      expect(process.startedAtMs).toBeUndefined();
      process.stop('cancelled');
      expect(await process.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
      expect((await run('test ! -e never')).exit).toEqual({ kind: 'exit', code: 0 });
    });

    it('a time-out is a stop of its own', async () => {
      const { exit, mark } = await run('sleep 600', { timeoutMs: 100 });
      expect(exit).toEqual({ kind: 'timeout' });
      expect(processesWith(mark)).toEqual([]);
    });

    it.runIf(program !== null)('other programs than shells run a command each', async () => {
      const { name: shell, printsName } = program ?? PERL;
      const { exit, sink } = await run([printsName, 'exit 4'], { shell });
      expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 4 }, `${shell}\n`]);
    });

    it.runIf(hasOwnDisk && canMount())(
      'that fills the disk of its folder fails by itself, and the next one runs',
      async () => {
        const small = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-small-')));
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_DISK_BYTES},mode=777`, 'tmpfs', small]);
        const own = create(small);
        try {
          const here = { cwd: small, folders: [small], ...always, helperKey: 'small', env: {}, timeoutMs: 60_000 };
          const ran = async (script: string): Promise<[StageExit, RecordingSink]> => {
            const sink = new RecordingSink();
            return [await own.start({ ...here, commands: [{ script, bindings: {} }] }, sink).ended, sink];
          };
          const [exit, sink] = await ran(`echo begun; head -c ${SMALL_DISK_BYTES * 3} /dev/zero >file; echo never`);
          expect([exit, sink.text()]).toEqual([{ kind: 'exit', code: 1 }, 'begun\n']);
          expect(sink.text('stderr')).toMatch(/No space left on device|I\/O error/);
          // Also while it is full.
          expect((await ran('echo next'))[1].text()).toBe('next\n');
          expect((await ran('rm file; echo x >other; cat other'))[1].text()).toBe('x\n');
        } finally {
          await own.close();
          execFileSync('umount', ['-l', small]);
          rmSync(small, { recursive: true, force: true });
        }
      },
    );

    it('closing ends what runs, and nothing starts afterwards', async () => {
      const own = create(folder);
      const sink = new RecordingSink();
      const spec: StageSpec = {
        ...always,
        helperKey: 'key',
        commands: [{ script: 'echo up; sleep 600', bindings: {} }],
        env: { SUITE_MARK: `${process.pid}-closing` },
        cwd: folder,
        folders: [folder],
        timeoutMs: 60_000,
      };
      const running = own.start(spec, sink);
      await sink.until('up\n');
      await own.close();
      expect((await running.ended).kind).toBe('lost');
      expect(processesWith(`${process.pid}-closing`)).toEqual([]);
      expect((await own.start(spec, sink).ended).kind).toBe('lost');
    });
  });
}
