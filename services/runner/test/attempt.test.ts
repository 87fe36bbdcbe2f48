/** One attempt, with its executor and its log in the hands of the test. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { machineTime } from '@penstock/async';
import type { Job, ResultRequest } from '@penstock/bus';
import {
  Workspaces,
  type Executor,
  type OutputSink,
  type StageExit,
  type StagePiece,
  type StageSpec,
} from '@penstock/executor';
import { silentLogger } from '@penstock/telemetry';
import { noMeter } from '@penstock/telemetry/metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptRecord, RecordHead } from '../src/attempt/attempt-records.ts';
import type { LeftInside } from '../src/artifacts/left-inside.ts';
import type { LeftByStage } from '../src/artifacts/stage-artifacts.ts';
import { Attempt, type AttemptParts } from '../src/attempt/attempt.ts';
import type { OutgoingLog } from '../src/report/chunk-store.ts';
import type { Sources } from '../src/workspace/preparation.ts';
import { plainJob as job } from './plain-job.ts';

let folder: string;
let exit: PromiseWithResolvers<StageExit>;
let stored: PromiseWithResolvers<void>;
let started: PromiseWithResolvers<void>;
let kept: ResultRequest[];
let isActive: boolean;
/** What the broker was given of its output. */
let log: string;
let keptOf: LeftByStage[];
let leftInside: { of: LeftInside['of']; clear: LeftInside['clear'] };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-attempt-'));
  exit = Promise.withResolvers();
  stored = Promise.withResolvers();
  started = Promise.withResolvers();
  kept = [];
  isActive = true;
  keptOf = [];
  log = '';
  leftInside = { of: () => undefined, clear: async () => {} };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function attempt(of: Job = job, more: Partial<Executor> = {}, parts: Partial<AttemptParts> = {}): Attempt {
  const executor: Executor = {
    kind: 'process',
    start: () => {
      started.resolve();
      return { ended: exit.promise, startedAtMs: 0, stop: () => {} };
    },
    prewarm: () => Promise.resolve(),
    close: () => Promise.resolve(),
    ...more,
  };
  const outgoingLog = {
    append: ({ output }: { output: Uint8Array }) => void (log += Buffer.from(output).toString('utf8')),
    stored: () => stored.promise,
    drop: () => {},
  };
  const sources = { checkouts: { filling: () => undefined }, inherited: { filling: () => undefined } };
  return new Attempt(of, {
    time: machineTime,
    executor,
    place: undefined,
    workspaces: new Workspaces(join(folder, 'work')),
    sources: sources as unknown as Sources,
    outgoingLog: outgoingLog as unknown as OutgoingLog,
    caches: { restore: async () => [], save: async () => [] },
    artifacts: {
      keep: async (left) => {
        keptOf.push(left);
        return undefined;
      },
    },
    leftInside,
    reports: { keep: async () => undefined },
    log: silentLogger(),
    meter: noMeter,
    keep: (result) => kept.push(result),
    isSessionActive: () => Promise.resolve(isActive),
    slips: {
      present: () => Promise.reject(new Error('the stage names no secrets')),
      renewLease: () => Promise.resolve(),
      open: () => Promise.reject(new Error('nothing is sealed')),
    },
    ...parts,
  });
}

describe('an attempt (P16)', () => {
  it('has its result as soon as its processes are gone, and gives it away when the broker has its log', async () => {
    const one = attempt();
    let given: ResultRequest | null | undefined;
    void one.result.then((result) => (given = result));
    await started.promise;
    exit.resolve({ kind: 'exit', code: 0 });
    await expect.poll(() => kept).toMatchObject([{ runId: 'run-1', status: 'success' }]);
    // Its folders are cleared meanwhile; what it waits for is the log alone.
    await expect.poll(() => new Workspaces(join(folder, 'work')).list()).toBeDefined();
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(given).toBeUndefined();
    stored.resolve();
    expect(await one.result).toEqual(kept[0]);
  });

  it('asks for no further id token where its stage could not be started', async () => {
    const left = new Set<object>();
    const time: AttemptParts['time'] = {
      ...machineTime,
      after: (milliseconds, task) => {
        const wait = {};
        left.add(wait);
        const callOff = machineTime.after(milliseconds, task);
        return () => (left.delete(wait), callOff());
      },
    };
    const content = { run: 'run-1', stage: job.stage, attempt: job.attempt, values: {}, withheld: [] };
    const idTokens = { tokens: { sts: 'a.b.c' }, lifeMs: 3_600_000 };
    const slips: AttemptParts['slips'] = {
      present: async () => ({ kind: 'sealed', sealed: '' }),
      renewLease: async () => {},
      open: async () => Buffer.from(JSON.stringify({ ...content, idTokens })),
    };
    const start: Executor['start'] = () => {
      throw new Error('the disk is full');
    };
    stored.resolve();
    const of: Job = { ...job, slip: 'signed', idTokens: [{ audience: 'sts', variable: 'TOKEN' }] };
    expect(await attempt(of, { start }, { time, slips }).result).toMatchObject({ reason: 'runner_lost' });
    expect(left.size).toBe(0);
  });

  it('leaves nothing of the files that its stage has made, whether it has written to them or not', async () => {
    let home = '';
    const start: Executor['start'] = ({ env, run }) => {
      home = run?.folder ?? '';
      for (const file of [env['SERVICE_OUTPUT'], env['SERVICE_MASK']]) writeFileSync(file ?? '', '');
      return { ended: Promise.resolve({ kind: 'exit', code: 0 }), startedAtMs: 0, stop: () => {} };
    };
    stored.resolve();
    await attempt(job, { start }).result;
    expect(readdirSync(home)).toEqual(['shared']);
  });

  it('that is not trusted has folders that no other run has had, and leaves them to none', async () => {
    const workspaces = new Workspaces(join(folder, 'of-several'));
    stored.resolve();
    const homeOf = async (runId: string, trusted: boolean | undefined): Promise<string> => {
      let home = '';
      const start: Executor['start'] = ({ run }) => {
        home = basename(run?.folder ?? '');
        return { ended: Promise.resolve({ kind: 'exit', code: 0 }), startedAtMs: 0, stop: () => {} };
      };
      await attempt({ ...job, runId, origin: { kind: 'webhook', trusted } }, { start }, { workspaces }).result;
      await workspaces.remove(runId);
      return home;
    };
    expect(await homeOf('fork-1', false)).toBe('fork-1');
    expect(await homeOf('run-1', undefined)).toBe('run-1');
    const seat = await homeOf('run-2', true);
    expect(seat).toMatch(/^seat_/u);
    expect(await homeOf('fork-2', false)).toBe('fork-2');
    expect(await homeOf('run-3', undefined)).toBe(seat);
  });

  it('that its helper has reported as ended has a result though its session is over by then', async () => {
    const one = attempt();
    await started.promise;
    one.abandon();
    isActive = false;
    stored.resolve();
    exit.resolve({ kind: 'exit', code: 3 });
    expect(await one.result).toMatchObject({ status: 'failed', exitCode: 3 });
    expect(kept).toHaveLength(1);
  });

  it('whose files stay inside asks for what it keeps of them, in a folder that no other one has', async () => {
    const notTaken = { leftOut: [{ path: 'dist/pipe', why: 'it is no file' }], leftOutCount: 1 };
    const leavings = {
      folder: '',
      into: '/left',
      isWanted: () => true,
      pick: () => Promise.resolve({ files: [], links: new Map(), folders: [] }),
      notTaken: () => [notTaken],
    };
    leftInside.of = () => ({ kept: leavings, cached: undefined, all: [leavings] });
    const specs: StageSpec[] = [];
    const faults = [new Map(), new Map([['/left', 'its Pod is gone']])];
    const start: Executor['start'] = (spec) => {
      specs.push(spec);
      return {
        ended: Promise.resolve({ kind: 'exit', code: 0 }),
        startedAtMs: 0,
        leavingFaults: faults[specs.length - 1],
        stop: () => {},
      };
    };
    const artifacts = { paths: ['dist/**'], when: 'success', required: false } as const;
    const one = attempt({ ...job, artifacts }, { filesStayInside: true, start });
    stored.resolve();
    expect(await one.result).toMatchObject({ status: 'success' });
    expect(keptOf).toMatchObject([{ folder: '/left', fault: undefined, user: undefined, notTaken }]);
    await attempt({ ...job, artifacts }, { filesStayInside: true, start }).result;
    expect(keptOf).toMatchObject([{}, { fault: 'its Pod is gone' }]);
    expect(specs).toMatchObject([{ leavings: [leavings] }, { leavings: [leavings] }]);
    expect(specs[0]?.contents).toContain(specs[0]?.cwd);
    expect(specs[0]?.cwd).not.toBe(specs[1]?.cwd);
  });

  it('that is taken up again is masked as it was: its secrets all along, and each value from where it was known', async () => {
    const maskFile = join(folder, 'mask');
    const folders = {
      workspace: folder,
      fresh: true,
      home: folder,
      temporary: folder,
      outputFile: join(folder, 'output'),
    };
    const bytes = (text: string): Buffer => Buffer.from(text);
    const resume: Executor['resume'] = (_spec, sink) => {
      void sink.write('stdout', bytes('own-value replaced top-secret last\n'));
      return { ended: Promise.resolve({ kind: 'exit', code: 0 }), startedAtMs: 0, stop: () => {} };
    };
    const past = {
      prepared: { folders, packageFolder: undefined, maskFile },
      timeoutMs: 60_000,
      masked: ['top-secret'],
      notes: new Map(),
      output: [
        { stream: 'stdout', bytes: bytes('own-value top-sec') },
        { stream: 'stdout', bytes: bytes('ret\n') },
        // What was printed between them is in the file of the end, behind both.
        { stream: 'masks', bytes: bytes('replaced\n') },
        { stream: 'masks', bytes: bytes('own-value\n') },
        { stream: 'stdout', bytes: bytes('own-value\n') },
      ] as const,
      stands: Promise.resolve(true),
    };
    const record = {
      keep: () => {},
      remove: () => {},
      begin: () => {},
      askForGap: () => {},
    } as unknown as AttemptRecord;
    const one = attempt({ ...job, logBytesMax: 100_000 }, { resume }, { past, record });
    stored.resolve();
    expect(await one.result).toMatchObject({ status: 'success' });
    expect(log).toBe('own-value ***\n***\n*** *** *** last\n');
  });

  it('that is taken up again has the log that it had, also what was said of its caches and of its tokens', async () => {
    let head: RecordHead | undefined;
    const output: StagePiece[] = [];
    const record = {
      keep: (_notes: object, piece?: StagePiece) => void (piece === undefined || output.push(piece)),
      mask: () => {},
      remove: () => {},
      begin: (begun: RecordHead) => void (head = begun),
      askForGap: () => {},
    } as unknown as AttemptRecord;
    let renew: (() => void) | undefined;
    const time: AttemptParts['time'] = {
      ...machineTime,
      after: (milliseconds, task) => {
        if (milliseconds < 60_000) return machineTime.after(milliseconds, task);
        renew = task;
        return () => {};
      },
    };
    const content = { run: 'run-1', stage: job.stage, attempt: job.attempt, values: {}, withheld: [] };
    const idTokens = { tokens: { sts: 'a.b.c' }, lifeMs: 3_600_000 };
    let presented = 0;
    const slips: AttemptParts['slips'] = {
      present: async () => {
        presented += 1;
        return presented === 1 ? { kind: 'sealed', sealed: '' } : { kind: 'refused', why: 'it is over' };
      },
      renewLease: async () => {},
      open: async () => Buffer.from(JSON.stringify({ ...content, idTokens })),
    };
    const caches: AttemptParts['caches'] = {
      restore: async ({ remark }) => {
        remark('no cache is there yet');
        return [];
      },
      save: async () => [],
    };
    const of: Job = {
      ...job,
      logBytesMax: 100_000,
      slip: 'signed',
      caches: [{ key: ['k'], paths: ['made'], restore: [] }],
      idTokens: [{ audience: 'sts', variable: 'TOKEN' }],
    };
    let sink: OutputSink | undefined;
    const process = { ended: exit.promise, startedAtMs: 0, stop: () => {} };
    const start: Executor['start'] = (_spec, to) => {
      sink = to;
      started.resolve();
      return process;
    };
    const resume: Executor['resume'] = () => process;
    const says = (text: string): void => {
      const piece = { stream: 'stdout', bytes: Buffer.from(text) } as const;
      record.keep({}, piece);
      void sink?.write(piece.stream, piece.bytes);
    };
    const one = attempt(of, { start, resume }, { time, slips, caches, record });
    await started.promise;
    says('first\n');
    renew?.();
    const tokenRemark = 'the id token was not renewed: it is over\n';
    await expect.poll(() => output.length).toBe(2);
    says('last\n');
    const said = `no cache is there yet\nfirst\n${tokenRemark}last\n`;
    await expect.poll(() => log).toBe(said);

    log = '';
    const past = { ...(head ?? ({} as RecordHead)), notes: new Map(), output, stands: Promise.resolve(true) };
    const again = attempt(of, { resume, hasBegun: () => true }, { past, slips, caches, record });
    await expect.poll(() => log).toContain(said);
    exit.resolve({ kind: 'exit', code: 0 });
    stored.resolve();
    await Promise.all([one.result, again.result]);
  });

  it('with secrets whose stage has not begun is not taken up again, for it would begin without them', async () => {
    const discarded: unknown[] = [];
    const past = {
      prepared: { folders: {} as never, packageFolder: undefined, maskFile: join(folder, 'mask') },
      timeoutMs: 60_000,
      notes: new Map([['pod', ['p']]]),
      output: [],
      stands: Promise.resolve(true),
    };
    let isRemoved = false;
    const record = { remove: () => void (isRemoved = true) } as unknown as AttemptRecord;
    const executor: Partial<Executor> = {
      resume: () => {
        throw new Error('it was taken up');
      },
      hasBegun: () => false,
      discard: async (notes) => void discarded.push(notes),
    };
    const secrets = [{ name: 'KEY', variable: 'KEY', file: false }];
    expect(await attempt({ ...job, secrets }, executor, { past, record }).result).toBeNull();
    expect([discarded, isRemoved]).toEqual([[past.notes], true]);
  });

  it('whose session ends while it is prepared has none, and nobody is told of an error', async () => {
    const restoring = Promise.withResolvers<void>();
    const errors: unknown[] = [];
    let isDropped = false;
    const one = attempt(
      { ...job, caches: [{ key: ['k'], paths: ['made'], restore: [] }] },
      {},
      {
        caches: {
          restore: ({ signal }) => {
            restoring.resolve();
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          },
          save: async () => [],
        },
        log: { ...silentLogger(), error: (fields: unknown) => void errors.push(fields) },
        outgoingLog: { append: () => {}, drop: () => (isDropped = true) } as unknown as OutgoingLog,
      },
    );
    await restoring.promise;
    one.abandon();
    expect(await one.result).toBeNull();
    expect({ kept, errors, isDropped }).toEqual({ kept: [], errors: [], isDropped: true });
  });

  it('that was killed with its session has none', async () => {
    const one = attempt();
    await started.promise;
    one.abandon();
    isActive = false;
    exit.resolve({ kind: 'signal', signal: 'SIGKILL', code: 137, oom: false });
    expect(await one.result).toBeNull();
    expect(kept).toEqual([]);
  });
});
