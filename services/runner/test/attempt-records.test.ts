/** What is kept of an attempt for the next process of its runner, and what the log is that comes of it. */
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Chunker, type StagePiece } from '@penstock/executor';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Job } from '@penstock/bus';
import { AttemptRecordsOnDisk, type EarlierAttempt, type RecordHead } from '../src/attempt/attempt-records.ts';

let home: string;
let disk: string;
let memory: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'penstock-records-'));
  [disk, memory] = [join(home, 'disk'), mkdtempSync(join(home, 'memory-'))];
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const headOf = (more: Partial<Job> = {}): RecordHead =>
  ({
    job: { session: 's', credit: 1, logBytesMax: 1_000_000, ...more },
    prepared: {},
    timeoutMs: 1,
  }) as unknown as RecordHead;
const records = (): AttemptRecordsOnDisk =>
  new AttemptRecordsOnDisk({ disk, memory }, 'boot', silentLogger(), () => {});
function only({ earlier }: AttemptRecordsOnDisk): EarlierAttempt {
  expect(earlier).toHaveLength(1);
  return earlier[0] as EarlierAttempt;
}

/** The log of an output, as the broker has it. */
class Log {
  readonly chunker: Chunker;
  text = '';
  /** Its chunks do not follow each other. */
  hasGap = false;

  constructor(bytesMax: number) {
    this.chunker = new Chunker({
      bytesMax,
      emit: ({ offset, output }) => {
        this.hasGap ||= offset !== Buffer.byteLength(this.text);
        this.text += Buffer.from(output).toString('utf8');
      },
    });
  }

  take({ stream, bytes }: StagePiece): void {
    if (stream !== 'masks') void this.chunker.write(stream, bytes);
  }
}

function piece(at: number): StagePiece {
  const line = `${at} ${'x'.repeat(200)}\n`;
  const stream = at % 7 === 0 ? 'stderr' : at % 50 === 1 ? 'system' : 'stdout';
  return { stream, bytes: Buffer.from(stream === 'system' ? `remark ${at}\n` : line.repeat(300)) };
}

it.each([
  ['a short output', 5, 10],
  ['one whose middle the log does not keep', 10, 700],
  ['one that goes on for long after that', 400, 900],
])('makes the same log of %s, whenever its process ends', (_what, before, all) => {
  const whole = new Log(1_000_000);
  const head = headOf();
  const record = records().open(head.job);
  record?.begin(head);
  record?.askForGap(() => whole.chunker.truncated);
  for (let at = 0; at < before; at += 1) {
    record?.keep({ out: String(at) }, piece(at));
    whole.take(piece(at));
  }
  // Its process ends here, and the next one takes it up; and that one too.
  let last = new Log(1_000_000);
  for (const [from, to] of [
    [before, Math.floor((before + all) / 2)],
    [Math.floor((before + all) / 2), all],
  ] as const) {
    const earlier = only(records());
    expect(earlier.notes.get('out')?.at(-1)).toBe(String(from - 1));
    const again = new Log(1_000_000);
    for (const each of earlier.output) again.take(each);
    expect(whole.text.startsWith(again.text) || again.text.startsWith(whole.text)).toBe(true);
    earlier.record.askForGap(() => again.chunker.truncated);
    for (let at = from; at < to; at += 1) {
      earlier.record.keep({ out: String(at) }, piece(at));
      again.take(piece(at));
      whole.take(piece(at));
    }
    last = again;
  }
  whole.chunker.finish();
  last.chunker.finish();
  expect([last.text === whole.text, last.hasGap, whole.hasGap]).toEqual([true, false, false]);
  only(records()).record.remove();
  expect(readdirSync(disk)).toEqual([]);
});

it('is no larger than the log and two of its ends, however loud the stage', () => {
  const log = new Log(1_000_000);
  const record = records().open(headOf().job);
  record?.begin(headOf());
  record?.askForGap(() => log.chunker.truncated);
  for (let at = 0; at < 1_000; at += 1) {
    record?.keep({ out: String(at) }, piece(at));
    log.take(piece(at));
  }
  const bytes = [...only(records()).output].reduce((sum, each) => sum + each.bytes.length, 0);
  expect(bytes).toBeLessThan(1_000_000 + 2 * 8 * 1024 ** 2 + 1_000_000);
});

it('goes without what a kill has cut short', () => {
  const record = records().open(headOf().job);
  record?.begin(headOf());
  record?.keep({ out: '0' }, { stream: 'stdout', bytes: Buffer.from('whole') });
  record?.keep({ out: '1' }, { stream: 'stdout', bytes: Buffer.from('cut off') });
  const path = join(disk, readdirSync(disk)[0] ?? '');
  const earlier = only(records());
  const length = [...earlier.output].length;
  expect(length).toBe(2);
  truncateSync(path, statSync(path).size - 3);
  expect([...only(records()).output].map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['whole']);
});

it('of an attempt with secrets is in memory, and of none where there is no such place', () => {
  const secrets = [{ variable: 'A', name: 'A', file: false }];
  const record = records().open(headOf({ secrets }).job);
  record?.begin({ ...headOf({ secrets }), masked: ['hidden'] });
  record?.keep({ pod: 'p' });
  expect([readdirSync(disk), readdirSync(memory).length]).toEqual([[], 1]);
  expect(only(records()).masked).toEqual(['hidden']);
  const without = new AttemptRecordsOnDisk({ disk, memory: undefined }, 'boot', silentLogger(), () => {});
  expect(without.open(headOf({ secrets }).job)).toBeUndefined();
});

it.each<Partial<Job>>([
  { idTokens: [{ audience: 'sts', variable: 'TOKEN' }] },
  { place: { image: { name: 'app', secret: 'LOGIN' } } },
])('of an attempt with %o is in memory too', (more) => {
  const { job } = headOf(more);
  const record = records().open(job);
  record?.begin({ ...headOf(more), masked: ['canary'] });
  record?.keep({ pod: 'p' });
  expect(readdirSync(disk)).toEqual([]);
  expect(readdirSync(memory)).toHaveLength(1);
});

it('knows what came to be masked later, before and after anything was noted', () => {
  const head = headOf();
  const record = records().open(head.job);
  record?.begin({ ...head, masked: ['first'] });
  record?.mask(['second']);
  expect(readdirSync(disk)).toEqual([]);
  record?.keep({ pod: 'p' });
  record?.mask(['third', 'fourth']);
  record?.keep({}, { stream: 'stdout', bytes: Buffer.from('x') });
  const read = only(records());
  expect(read.masked).toEqual(['first', 'second', 'third', 'fourth']);
  expect([...read.output].map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(['x']);
});

it('of before the last start of the machine is taken up by nobody', () => {
  const record = records().open(headOf().job);
  record?.begin(headOf());
  record?.keep({ pod: 'p' });
  const later = new AttemptRecordsOnDisk({ disk, memory }, 'another boot', silentLogger(), () => {});
  expect(later.earlier).toEqual([]);
  expect(readdirSync(disk)).toEqual([]);
});
