/** In which order a stage's two outputs are handed over, where they are read late (ADR 17). */
import { closeSync, existsSync, futimesSync, mkdtempSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OutputSink } from '../src/contract/port.ts';
import { ProcessExecutor } from '../src/process/executor.ts';
import { OutputPipes } from '../src/process/output-pipes.ts';
import { Scratch } from '../src/process/scratch.ts';

describe('the order of standard output and error', () => {
  let executor: ProcessExecutor;
  let folder: string;
  beforeAll(() => {
    executor = new ProcessExecutor({ warn: () => {} });
    folder = mkdtempSync(join(tmpdir(), 'penstock-order-'));
  });
  afterAll(async () => {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Every line with its stream. `onBytes` is called within the turn that hands them over. */
  async function lines(script: string, onBytes: () => void = () => {}): Promise<string[]> {
    const found: string[] = [];
    const sink: OutputSink = {
      write: (stream, bytes) => {
        for (const line of Buffer.from(bytes).toString('utf8').trimEnd().split('\n')) found.push(`${stream} ${line}`);
        onBytes();
      },
    };
    const command = { script, bindings: {} };
    const spec = { helperKey: 'key', commands: [command], env: {}, cwd: folder, timeoutMs: 60_000 };
    expect((await executor.start(spec, sink).ended).kind).toBe('exit');
    return found;
  }

  /** The reader does nothing else from the first line on until the stage has written all the others. */
  async function linesReadLate(first: string, rest: string): Promise<string[]> {
    const [go, done] = [join(folder, 'go'), join(folder, 'done')];
    const script = `${first}; until [ -e go ]; do :; done; ${rest}; : >done; until [ ! -e done ]; do :; done`;
    return await lines(script, () => {
      if (existsSync(go)) return;
      writeFileSync(go, '');
      while (!existsSync(done));
      rmSync(done);
    }).finally(() => rmSync(go, { force: true }));
  }

  // A pause that the clock of files tells on every kernel: its ticks are 10 ms at most.
  const pause = 'sleep 0.03';

  it('what the other stream was written meanwhile comes first, although the first was ready before', async () => {
    expect(await linesReadLate('echo 1', `echo 2 >&2; ${pause}; echo 3`)).toEqual(['stdout 1', 'stderr 2', 'stdout 3']);
    expect(await linesReadLate('echo 1 >&2', `echo 2; ${pause}; echo 3 >&2`)).toEqual([
      'stderr 1',
      'stdout 2',
      'stderr 3',
    ]);
  });

  it('of stages that follow one another at once each has all that it has written, and nothing of another', async () => {
    for (let stage = 0; stage < 50; stage += 1) {
      const [stream, target] = stage % 2 === 0 ? ['stdout', 1] : ['stderr', 2];
      expect(await lines(`echo ${stage} >&${target}`)).toEqual([`${stream} ${stage}`]);
      expect(await lines('true')).toEqual([]);
    }
  });

  it('what was written is read also where the clock of files has not gone on since the stage before (PIPES-3)', () => {
    const scratch = new Scratch();
    const [stdout, stderr] = [scratch.pipe(), scratch.pipe()];
    const pipes = new OutputPipes(stdout.readFd, stderr.readFd);
    try {
      for (let round = 0; round < 20; round += 1) {
        const text = String(round);
        const found: string[] = [];
        pipes.attach({ write: (stream, bytes) => void found.push(`${stream} ${Buffer.from(bytes).toString()}`) });
        for (const { writeFd } of [stdout, stderr]) writeSync(writeFd, text);
        void pipes.finish();
        expect(found.toSorted()).toEqual([`stderr ${text}`, `stdout ${text}`]);
      }
    } finally {
      pipes.close();
      for (const { writeFd } of [stdout, stderr]) closeSync(writeFd);
      scratch.close();
    }
  });

  it('what was written is the stage’s that has written it, whatever that says of when it did (PIPES-3)', () => {
    const scratch = new Scratch();
    const [stdout, stderr] = [scratch.pipe(), scratch.pipe()];
    const pipes = new OutputPipes(stdout.readFd, stderr.readFd);
    const found: string[] = [];
    try {
      pipes.attach({ write: () => {} });
      writeSync(stdout.writeFd, 'before');
      futimesSync(stdout.writeFd, 1_000, 1_000);
      void pipes.finish();
      pipes.attach({ write: (_, bytes) => void found.push(Buffer.from(bytes).toString()) });
      writeSync(stdout.writeFd, 'hidden');
      futimesSync(stdout.writeFd, 1_000, 1_000);
      void pipes.finish();
      expect(found).toEqual(['hidden']);
    } finally {
      pipes.close();
      for (const { writeFd } of [stdout, stderr]) closeSync(writeFd);
      scratch.close();
    }
  });

  it('a sink that fails as the last output is handed over does not keep the stage from ending', async () => {
    const scratch = new Scratch();
    const [stdout, stderr] = [scratch.pipe(), scratch.pipe()];
    const pipes = new OutputPipes(stdout.readFd, stderr.readFd);
    try {
      pipes.attach({ write: () => Promise.reject(new Error('the disk is full')) });
      for (const { writeFd } of [stdout, stderr]) writeSync(writeFd, 'last');
      await expect(pipes.finish()).resolves.toBeUndefined();
    } finally {
      pipes.close();
      for (const { writeFd } of [stdout, stderr]) closeSync(writeFd);
      scratch.close();
    }
  });

  it('of a stage is written as ever after one that has left its outputs non-blocking', async () => {
    const unblock = "perl -e 'use Fcntl; fcntl($_, F_SETFL, O_WRONLY | O_NONBLOCK) or die for *STDOUT, *STDERR'";
    expect(await lines(unblock)).toEqual([]);
    const loud = 'perl -e \'for (1 .. 40) { syswrite(STDOUT, "x" x 65536) == 65536 or exit 3 } print "\\nwhole"\'';
    expect((await lines(loud)).at(-1)).toBe('stdout whole');
  });

  it('an error that follows is the last line', async () => {
    expect(await linesReadLate('echo 1', `echo 2; ${pause}; echo 3 >&2`)).toEqual(['stdout 1', 'stdout 2', 'stderr 3']);
    const output = await lines('i=0; while [ $i -lt 500 ]; do echo $i; i=$((i+1)); done; echo end >&2; exit 1');
    expect(output).toHaveLength(501);
    expect(output.at(-1)).toBe('stderr end');
  });

  it('a script that joins the two has one exact order', async () => {
    const output = await lines(
      'exec 2>&1; i=0; while [ $i -lt 1000 ]; do echo $i; echo $((i + 1)) >&2; i=$((i+2)); done',
    );
    expect(output).toEqual(Array.from({ length: 1000 }, (_, index) => `stdout ${index}`));
  });
});
