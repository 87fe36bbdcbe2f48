/** P37: how much a tenant's own runners may send, store and hold, each bound by itself. */
import { pipeline } from 'node:stream/promises';
import { Readable, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { ClientOperations, UnreadableOperation } from '../src/api/client-operations.ts';
import { LogShares } from '../src/api/log-shares.ts';
import { RunnerLeases } from '../src/api/runner-leases.ts';
import { TenantFlow } from '../src/api/tenant-flow.ts';

/** As a client sends it. */
function frame(payload: string | Uint8Array, more: { readonly opcode?: number; readonly first?: number } = {}): Buffer {
  const first = more.first ?? 0x80 | (more.opcode ?? 2);
  const mask = [1, 2, 3, 4];
  const bytes = Buffer.from(payload);
  const length =
    bytes.length < 126
      ? [0x80 | bytes.length]
      : bytes.length < 65_536
        ? [0x80 | 126, bytes.length >> 8, bytes.length & 255]
        : [
            0x80 | 127,
            0,
            0,
            0,
            0,
            bytes.length >>> 24,
            (bytes.length >> 16) & 255,
            (bytes.length >> 8) & 255,
            bytes.length & 255,
          ];
  const masked = bytes.map((byte, index) => byte ^ (mask[index % 4] as number));
  return Buffer.concat([Buffer.from([first, ...length, ...mask]), masked]);
}

function countOf(bytes: Uint8Array, cuts: readonly number[] = []): number {
  const operations = new ClientOperations();
  let [sum, from] = [0, 0];
  for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
    sum += operations.count(bytes.subarray(from, cut));
    from = Math.max(from, cut);
  }
  return sum;
}

describe('what a client asks of the broker', () => {
  it.each([
    ['a publish', frame('PUB a 2\r\nhi\r\n'), 2],
    ['a hundred publishes in one frame', frame('PUB a 0\r\n\r\n'.repeat(100)), 101],
    ['lines in the payload, which are none', frame('PUB a r 22\r\nPUB b 0\r\n\r\nPUB b 0\r\n\r\n\r\n'), 2],
    ['a publish with a head', frame('hpub\ta 4 6\r\nNATShi\r\nPING\r\n'), 3],
    ['a ping of the frames', frame('x', { opcode: 9 }), 1],
    ['empty frames', Buffer.concat([frame(''), frame(''), frame('PING\r\n')]), 4],
    [
      'a publish over two frames',
      Buffer.concat([frame('PUB a 5\r\nhe'), frame('llo\r\nPONG\r\n', { first: 0x80 })]),
      4,
    ],
    ['a large one', Buffer.concat([frame(`PUB a 70000\r\n${'x'.repeat(70_000)}\r\n`), frame('PING\r\n')]), 4],
  ])('is counted: %s', (_, bytes, count) => {
    expect(countOf(bytes)).toBe(count);
  });

  it('is counted the same, however its bytes come', () => {
    const lines = fc.constantFrom('PUB a 3\r\nPUB\r\n', 'PING\r\n', 'HPUB b r 2 4\r\nab\n\n\r\n', 'SUB x 1\r\n');
    fc.assert(
      fc.property(fc.array(fc.array(lines), { maxLength: 6 }), fc.array(fc.nat(200)), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map((each) => frame(each.join(''))));
        expect(
          countOf(
            bytes,
            cuts.filter((cut) => cut < bytes.length),
          ),
        ).toBe(frames.length + frames.flat().length);
      }),
    );
  });

  it.each([
    ['a frame without a mask', Buffer.from([0x82, 0x01, 0x41])],
    ['a compressed frame', frame('x', { first: 0xc2 })],
    ['a publish without a size', frame('PUB a\r\n')],
    ['a publish whose size is none', frame('PUB a 1e3\r\n')],
    ['a size that another line end hides', frame('PUB a b\r5\r\n')],
    ['a line feed that the broker takes for an argument', frame('SUB \nPUB x 99999999\r\nPING\r\nPING\r\n')],
    ['a line end within a publish, for which the broker reads a tenth of its size', frame('PUB a\r 0000109\r\n')],
    ['a size before which there is a lone line end', frame('PUB a\r 19\n')],
    ['a line that ends with a line feed alone', frame('PING\n')],
    ['a line of no command', frame('\r\n')],
    ['a line without end', frame('x'.repeat(5_000))],
    ['a frame without end', Buffer.from([0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4])],
  ])('is not guessed at: %s', (_, bytes) => {
    expect(() => countOf(bytes)).toThrow(UnreadableOperation);
  });
});

const BOUNDS = { operationsPerSecond: 100, bytesPerSecond: 1_000, burstSeconds: 2 };

describe('the flow of a tenant', () => {
  it('is as much as its bounds over any time, and no more than a burst at once, of operations and of bytes', () => {
    let now = 0;
    const flow = new TenantFlow(BOUNDS, () => now);
    expect(flow.take('ada', 200, 0)).toBe(0);
    expect(flow.take('ada', 50, 0)).toBe(500);
    // What others do, and may do, is theirs.
    expect(flow.take('bob', 0, 2_000)).toBe(0);
    expect(flow.take('bob', 0, 1_000)).toBe(1_000);
    now = 60_000;
    expect(flow.take('ada', 200, 0)).toBe(0);
    expect(flow.take('ada', 1, 0)).toBe(10);
  });

  it('is what it is answered, too, which the next questions wait for', () => {
    let now = 0;
    const flow = new TenantFlow(BOUNDS, () => now);
    flow.answered('ada', 3_000);
    expect(flow.take('ada', 1, 0)).toBe(1_010);
    expect(flow.take('bob', 1, 0)).toBe(0);
    now = 60_000;
    expect(flow.take('ada', 1, 0)).toBe(0);
  });

  it('is a share of what four have together, where more use up theirs, and whole again once they do not (FLOW-1)', () => {
    let now = 0;
    const flow = new TenantFlow(BOUNDS, () => now);
    const busy = Array.from({ length: 20 }, (_, index) => `t${index}`);
    for (const tenant of busy) flow.take(tenant, 200, 0);
    now = 200;
    flow.take('t0', 0, 0);
    now = 1_200;
    // 24 operations for each, in place of 120.
    for (const tenant of busy) expect(flow.take(tenant, 23, 0)).toBe(0);
    expect(flow.take('t0', 11, 0)).toBeCloseTo(500, -1);
    // Who has not used up its own has it at once.
    expect(flow.take('quiet', 200, 0)).toBe(0);
    // All have stopped.
    now = 30_000;
    expect(flow.take('t0', 200, 0)).toBe(0);
    expect(flow.take('t0', 100, 0)).toBe(1_000);
  });

  it('delays the bytes of all of its connections, in order, and cuts the one that is no protocol', async () => {
    const flow = new TenantFlow({ ...BOUNDS, operationsPerSecond: 10_000, bytesPerSecond: 1e9 });
    const way = flow.connection('ada');
    const got: Buffer[] = [];
    const sink = new Writable({ write: (bytes: Buffer, _encoding, done) => (got.push(bytes), done()) });
    const sent = [frame('PING\r\n'), frame('PUB a 2\r\nhi\r\n')];
    await pipeline(Readable.from(sent), way as NonNullable<typeof way>, sink);
    expect(Buffer.concat(got)).toEqual(Buffer.concat(sent));
    const bad = flow.connection('ada');
    const lost = new Writable({ write: (_bytes, _encoding, done) => done() });
    const led = pipeline(Readable.from([Buffer.from('GET /')]), bad as NonNullable<typeof bad>, lost);
    await expect(led).rejects.toThrow(UnreadableOperation);
  });

  it('has no further connection where it is used up', () => {
    const flow = new TenantFlow(BOUNDS, () => 0);
    const opened = Array.from({ length: 10 }, () => flow.connection('ada')).filter((way) => way !== null);
    expect(opened).toHaveLength(4);
    expect(flow.connection('bob')).not.toBeNull();
  });
});

describe('the shares of the logs', () => {
  const ALL = [['', '~']] as const;
  const named = (...runs: string[]) => runs.map((runId) => ({ runId, chunks: 1 }));

  it('are a sixteenth for a tenant and a half for all, until what is archived or deleted is known to be gone', () => {
    let now = 0;
    const shares = new LogShares(1_600, () => now);
    expect(shares.take('ada', 'r1', 60)).toBe(true);
    expect(shares.take('ada', 'r2', 40)).toBe(true);
    expect(shares.isShort).toBe(false);
    expect(shares.take('ada', 'r2', 1)).toBe(false);
    expect(shares.isShort).toBe(true);
    const others = Array.from({ length: 10 }, (_, index) => shares.take(`t${index}`, 'r', 100));
    expect(others.filter((isStored) => isStored)).toHaveLength(7);
    // Of what was stored a moment ago nothing is concluded.
    shares.stillThere({ runs: [], spans: ALL });
    expect(shares.take('ada', 'r3', 1)).toBe(false);
    now = 60_000;
    shares.stillThere({ runs: named('r2', 'r'), spans: ALL });
    expect(shares.take('ada', 'r3', 60)).toBe(true);
    expect(shares.take('ada', 'r3', 1)).toBe(false);
  });

  it('are given back of what is gone also where not all that is stored can be named, and of nothing that was not looked at', () => {
    let now = 0;
    const shares = new LogShares(1_600, () => now);
    for (const run of ['r1', 'r2', 'r5', 'r8']) expect(shares.take('ada', run, 25)).toBe(true);
    now = 60_000;
    const spans = [
      ['', 'r3'],
      ['r7', '~'],
    ] as const;
    shares.stillThere({ runs: named('r1', 'r3', 'r7', 'r8'), spans });
    expect(shares.take('ada', 'r9', 25)).toBe(true);
    expect(shares.take('ada', 'r9', 1)).toBe(false);
  });
});

describe('the leases of a runner', () => {
  const runner = `fr_${'a'.repeat(32)}`;
  const lease = (session: string, more: object = {}, { ttlMs = 15_000, isEnd = false } = {}) => {
    const value = { runner, session, labels: ['linux'], slots: 1, attempts: [], ...more };
    return { runner, of: session, ttlMs, isEnd, bytes: Buffer.from(JSON.stringify(value)) };
  };
  const ref = { runId: 'r', stage: 's', attempt: 1, session: 'x', credit: 0 };

  it.each([
    ['another runner', { runner: `fr_${'b'.repeat(32)}` }],
    ['another session', { session: 's2' }],
    ['labels that are none', { labels: 'linux' }],
    ['a label that is none', { labels: [7] }],
    ['ever so many labels', { labels: Array.from({ length: 201 }, (_, index) => `${index}`) }],
    ['slots that are none', { slots: -1 }],
    ['a capacity that is none', { capacity: { cpu: 'x', memoryBytes: 1 } }],
    ['no attempts', { attempts: undefined }],
    ['an attempt that is none', { attempts: [null] }],
    [
      'a size beyond all bounds',
      { attempts: Array.from({ length: 5_000 }, () => ({ ...ref, stage: 'x'.repeat(50) })) },
    ],
  ])('are none with %s', (_, more) => {
    expect(new RunnerLeases().take(lease('s1', more))).toBe(false);
  });

  it('have an end, and not a far one', () => {
    const leases = new RunnerLeases();
    for (const ttlMs of [Number.NaN, 0, 700_000]) expect(leases.take(lease('s1', {}, { ttlMs }))).toBe(false);
    expect(leases.take({ ...lease('s1', {}, { isEnd: true }), bytes: Buffer.alloc(0) })).toBe(true);
    expect(leases.take({ ...lease('s1'), bytes: Buffer.alloc(0) })).toBe(false);
    expect(leases.take(lease('s1', { capacity: { cpu: 2, memoryBytes: 1 }, attempts: [ref], sealTo: 'k' }))).toBe(true);
  });

  it('are so many at a time, and so many writes a second', () => {
    let now = 0;
    const leases = new RunnerLeases(() => now);
    const taken = (count: number, session: (index: number) => string): number =>
      Array.from({ length: count }, (_, index) => leases.take(lease(session(index)))).filter((isTaken) => isTaken)
        .length;
    expect(taken(12, (index) => `s${index}`)).toBe(8);
    expect(taken(12, () => 's1')).toBe(8);
    now = 1_000;
    expect(taken(10, () => 's1')).toBe(2);
    now = 60_000;
    expect(taken(8, (index) => `later${index}`)).toBe(8);
  });
});
