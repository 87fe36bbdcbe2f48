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

/** `report`: a result is kept and answered. What is reserved already can be written to when the disk is full. */
function onSmallDisk(): {
  readonly open: () => Outbox;
  readonly report: (outbox: Outbox, credit: number) => Promise<void>;
  readonly keep: (outbox: Outbox, credit: number) => void;
  readonly fill: (full: boolean) => void;
  readonly writes: () => number;
  readonly refusals: () => number;
} {
  const lines: string[] = [];
  let [writes, refusals, isFull] = [0, 0, false];
  const refuse = (): void => {
    if (!isFull) return;
    refusals += 1;
    throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
  };
  const file: ResultLines = {
    bytes: 0,
    lines: () => lines,
    reserve: refuse,
    append: (text) => {
      writes += 1;
      lines.push(...text.split('\n').filter((line) => line !== ''));
    },
    replace: refuse,
    close: () => {},
  };
  const keep = (outbox: Outbox, credit: number): void =>
    outbox.keep({ partition: 0, request: result(credit, 'quick') });
  return {
    open: () => new Outbox({ bus: owner('').bus, time: machineTime, log: silentLogger(), runner: 'r1', file }),
    keep,
    report: async (outbox, credit) => {
      keep(outbox, credit);
      await new Promise<void>((done) => outbox.send(result(credit, 'quick'), null, { offerTaken: () => {}, done }));
    },
    fill: (full) => (isFull = full),
    writes: () => writes,
    refusals: () => refusals,
  };
}

const credits = ({ pending }: Outbox): number[] => pending.map(({ request }) => request.credit);

describe('the file of results (P16)', () => {
  it('P16: what was answered is marked by the write of the next result, and all of it by the end', async () => {
    const { open, report, writes } = onSmallDisk();
    const outbox = open();
    await report(outbox, 1);
    expect([credits(open()), writes()]).toEqual([[1], 1]);
    await report(outbox, 2);
    expect([credits(open()), writes()]).toEqual([[2], 2]);
    outbox.close();
    expect(credits(open())).toEqual([]);
  });

  it('P16: what was answered is marked a moment later, where no other result comes', async () => {
    const { open, report } = onSmallDisk();
    const outbox = open();
    await report(outbox, 1);
    await expect.poll(() => credits(open())).toEqual([]);
    outbox.close();
  });

  it('P16: what an earlier process has left is sent once its log is stored, each for itself', async () => {
    const kept = onSmallDisk();
    const before = kept.open();
    kept.keep(before, 1);
    kept.keep(before, 2);
    before.close();
    const stored = new Map([1, 2].map((credit) => [credit, Promise.withResolvers<void>()]));
    const outbox = kept.open();
    const resumed = outbox.resume(async ({ request }) => await stored.get(request.credit)?.promise);
    stored.get(2)?.resolve();
    await expect.poll(() => credits(outbox)).toEqual([1]);
    stored.get(1)?.resolve();
    expect(await resumed).toBe(true);
    expect(credits(outbox)).toEqual([]);
    outbox.close();
  });

  it('P16: on a full disk the room is for results, and not for marks', async () => {
    const { open, report, keep, fill } = onSmallDisk();
    const outbox = open();
    await report(outbox, 1);
    fill(true);
    keep(outbox, 2);
    expect(credits(open())).toEqual([1, 2]);
    fill(false);
    keep(outbox, 3);
    expect(credits(open())).toEqual([2, 3]);
    outbox.close();
  });

  it('P16: what was answered while the disk was full is marked once there is room, where no other answer comes', async () => {
    const { open, report, fill, refusals } = onSmallDisk();
    const outbox = open();
    fill(true);
    const before = refusals();
    await report(outbox, 1);
    await expect.poll(() => refusals()).toBeGreaterThan(before);
    expect(credits(open())).toEqual([1]);
    fill(false);
    await expect.poll(() => credits(open()), { timeout: 30_000 }).toEqual([]);
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

it('P16: what an earlier process has left is reported also where its log cannot be sent', async () => {
  const { bus, asked } = owner('');
  const lines = [`${JSON.stringify({ id: 's/1', partition: 0, request: result(1, 'quick') })}`];
  const file = { bytes: 0, lines: () => lines, reserve() {}, append() {}, replace() {}, close() {} };
  const outbox = new Outbox({ bus, time: machineTime, log: silentLogger(), runner: 'r1', file });
  expect(await outbox.resume(() => Promise.reject(new Error('its file cannot be removed')))).toBe(true);
  expect(asked).toEqual(['quick']);
  outbox.close();
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
