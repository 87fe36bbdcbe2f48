import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineTime } from '@penstock/async';
import { RESULT_REPEAT_MS, type Bus, type ResultReply, type ResultRequest } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ResultFile, type ResultLines } from '../src/report/result-file.ts';
import { Outbox } from '../src/report/outbox.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-outbox-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** An owner that answers every result but those of one stage. */
function owner(silentOn: string): { readonly bus: Bus; readonly asked: string[] } {
  const asked: string[] = [];
  const request = (_subject: string, { stage }: ResultRequest): Promise<ResultReply> => {
    asked.push(stage);
    return stage === silentOn
      ? new Promise(() => {})
      : Promise.resolve({ ok: true, answer: 'committed', epoch: 1, offerTaken: false });
  };
  return { bus: { request } as unknown as Bus, asked };
}

function result(credit: number, stage: string): ResultRequest {
  return {
    runId: 'r',
    stage,
    attempt: 1,
    session: 's',
    credit,
    status: 'success',
    outputs: { v: 'x'.repeat(1_000) },
    logBytes: 0,
  };
}

/** `report`: a result is kept, and answered while the disk is full or not. */
function onSmallDisk(): {
  readonly open: () => Outbox;
  readonly report: (outbox: Outbox, credit: number, full: boolean) => Promise<void>;
} {
  const lines: string[] = [];
  let isFull = false;
  const refuse = (): void => {
    if (isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  const file: ResultLines = {
    bytes: 0,
    lines: () => lines,
    reserve: refuse,
    append: (text) => {
      refuse();
      lines.push(...text.split('\n').filter((line) => line !== ''));
    },
    replace: refuse,
    close: () => {},
  };
  return {
    open: () => new Outbox({ bus: owner('').bus, time: machineTime, log: silentLogger(), runner: 'r1', file }),
    report: async (outbox, credit, full) => {
      outbox.keep({ partition: 0, request: result(credit, 'quick') });
      isFull = full;
      await new Promise<void>((done) => outbox.send(result(credit, 'quick'), null, { offerTaken: () => {}, done }));
      isFull = false;
    },
  };
}

describe('the file of results (P16)', () => {
  it('P16: what was answered while the disk was full is marked with the next answer, and not sent after a start', async () => {
    const { open, report } = onSmallDisk();
    const outbox = open();
    await report(outbox, 1, true);
    expect(open().pending).toHaveLength(1);
    await report(outbox, 2, false);
    expect(open().pending).toEqual([]);
  });

  it('P16: what was answered while the disk was full is marked once there is room, where no other answer comes', async () => {
    const { open, report } = onSmallDisk();
    const outbox = open();
    await report(outbox, 1, true);
    expect(open().pending).toHaveLength(1);
    await expect.poll(() => open().pending, { timeout: 30_000 }).toEqual([]);
    outbox.close();
  }, 60_000);

  it('P16: does not grow with what has been answered while one result is always on its way', async () => {
    const file = join(folder, 'results');
    const open = (bus: Bus): Outbox =>
      new Outbox({ bus, time: machineTime, log: silentLogger(), runner: 'r1', file: new ResultFile(file) });
    const outbox = open(owner('slow').bus);
    const report = (request: ResultRequest, done: () => void): void => {
      outbox.keep({ partition: 0, request });
      outbox.send(request, null, { offerTaken: () => {}, done });
    };
    report(result(0, 'slow'), () => {});
    for (let credit = 1; credit <= 2_000; credit++)
      await new Promise<void>((done) => report(result(credit, 'quick'), done));
    outbox.close();
    expect(statSync(file).size).toBeLessThan(512 * 1024);
    const next = owner('slow');
    const again = open(next.bus);
    void again.resume(() => Promise.resolve());
    await Promise.resolve();
    expect(next.asked).toEqual(['slow']);
    expect([again.has(result(0, 'slow')), again.hasOf('s'), again.hasOf('t')]).toEqual([true, true, false]);
    again.close();
  });
});

describe('a result (P16)', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('that an owner does not take is sent again after 2 s, and is forgotten only when one has', async () => {
    const replies: ResultReply[] = [
      { ok: false, code: 'UNAVAILABLE', message: 'not now', epoch: 1 },
      { ok: true, answer: 'committed', epoch: 1, offerTaken: false },
    ];
    let asked = 0;
    const bus = { request: () => Promise.resolve(replies[asked++]) } as unknown as Bus;
    const outbox = new Outbox({
      bus,
      time: machineTime,
      log: silentLogger(),
      runner: 'r1',
      file: new ResultFile(join(folder, 'results')),
    });
    const done = vi.fn<() => void>();
    outbox.keep({ partition: 0, request: result(1, 'build') });
    outbox.send(result(1, 'build'), null, { offerTaken: () => {}, done });
    await vi.advanceTimersByTimeAsync(RESULT_REPEAT_MS - 1);
    expect([asked, done.mock.calls.length, outbox.has(result(1, 'build'))]).toEqual([1, 0, true]);
    await vi.advanceTimersByTimeAsync(1);
    expect([asked, done.mock.calls.length, outbox.has(result(1, 'build'))]).toEqual([2, 1, false]);
    outbox.close();
  });

  it('carries the offer of its slot once, and says whether that was taken (P12)', async () => {
    const replies: ResultReply[] = [
      { ok: false, code: 'UNAVAILABLE', message: 'not now', epoch: 1 },
      { ok: true, answer: 'committed', epoch: 1, offerTaken: true },
      { ok: true, answer: 'committed', epoch: 1, offerTaken: true },
    ];
    const sent: ResultRequest[] = [];
    const request = (_subject: string, body: ResultRequest): Promise<ResultReply | undefined> => {
      sent.push(body);
      return Promise.resolve(replies[sent.length - 1]);
    };
    const file = new ResultFile(join(folder, 'results'));
    const outbox = new Outbox({
      bus: { request } as unknown as Bus,
      time: machineTime,
      log: silentLogger(),
      runner: 'r1',
      file,
    });
    const offer = { credit: 7, scheduler: 'm' };
    for (const [stage, taken] of [
      ['refused', [false]],
      ['taken', [true]],
    ] as const) {
      const heard: boolean[] = [];
      outbox.keep({ partition: 0, request: result(1, stage) });
      outbox.send(result(1, stage), offer, { offerTaken: (was) => void heard.push(was), done: () => {} });
      await vi.advanceTimersByTimeAsync(RESULT_REPEAT_MS);
      expect(heard).toEqual(taken);
    }
    expect(sent.map((body) => body.offer)).toEqual([offer, undefined, offer]);
    outbox.close();
  });
});
