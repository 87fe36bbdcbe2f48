import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OutputStreamName } from '../src/contract/port.ts';
import { Chunker, type LogChunk } from '../src/output/chunker.ts';
import { LINE_BYTES_MAX } from '../src/output/lines.ts';

const CHUNK_BYTES_MAX = 64 * 1024;
const MARK = ' …[line goes on]\n';

function collect(bytesMax = Number.MAX_SAFE_INTEGER): { chunker: Chunker; chunks: LogChunk[] } {
  const chunks: LogChunk[] = [];
  const emit = (chunk: LogChunk): void => void chunks.push({ ...chunk, output: Buffer.from(chunk.output) });
  return { chunker: new Chunker({ bytesMax, emit, now: () => 5 }), chunks };
}

function textOf(chunks: readonly LogChunk[], stream?: OutputStreamName): string {
  const parts: Buffer[] = [];
  for (const { parts: own, output } of chunks) {
    let at = 0;
    for (const [of, bytes] of own) {
      if (stream === undefined || of === stream) parts.push(Buffer.from(output.subarray(at, at + bytes)));
      at += bytes;
    }
  }
  return Buffer.concat(parts).toString('latin1');
}

describe('chunks (P21)', () => {
  it('hold whole lines of at most 64 KiB in their order, without gap, whatever the output and however it is cut', async () => {
    const piece = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc
        .array(fc.constantFrom('a', '\n', '\r', '\0', 'é', '\u2028'), { maxLength: 30 })
        .map((characters) => Buffer.from(characters.join(''))),
      fc.nat({ max: 3 * LINE_BYTES_MAX }).map((length) => Buffer.alloc(length, 'x')),
    );
    const writes = fc.array(fc.tuple(fc.constantFrom<OutputStreamName>('stdout', 'stderr', 'service:db'), piece), {
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(writes, async (all) => {
        const { chunker, chunks } = collect();
        for (const [stream, bytes] of all) void chunker.write(stream, bytes);
        const end = await chunker.end();
        let offset = 0;
        for (const chunk of chunks) {
          expect(chunk.offset).toBe(offset);
          offset += chunk.output.length;
          expect(chunk.output.length).toBeLessThanOrEqual(CHUNK_BYTES_MAX);
          expect(chunk.parts.reduce((sum, [, bytes]) => sum + bytes, 0)).toBe(chunk.output.length);
          expect(chunk.output.at(-1)).toBe(0x0a);
        }
        expect(end).toBe(offset);
        for (const stream of ['stdout', 'stderr', 'service:db'] as const) {
          const written = Buffer.concat(all.filter(([of]) => of === stream).map(([, bytes]) => bytes)).toString(
            'latin1',
          );
          const mark = Buffer.from(MARK).toString('latin1');
          const kept = textOf(chunks, stream).replaceAll(mark, '');
          expect(kept).toBe(written === '' || written.endsWith('\n') ? written : `${written}\n`);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('of a line that is too long split no character', async () => {
    const { chunker, chunks } = collect();
    void chunker.write('stdout', Buffer.from(`x${'é'.repeat(50_000)}\n`));
    await chunker.end();
    const text = Buffer.concat(chunks.map(({ output }) => output)).toString('utf8');
    expect(text).not.toContain('\ufffd');
    expect(text.replaceAll(MARK, '')).toBe(`x${'é'.repeat(50_000)}\n`);
    expect(text.split('\n')[0]).toMatch(/é …\[line goes on\]$/);
  });

  it('take room for a few lines while no more was said, and for a whole chunk from then on', async () => {
    const memory: number[] = [];
    const texts: string[] = [];
    const emit = ({ output }: LogChunk): void => {
      memory.push(output.buffer.byteLength);
      texts.push(Buffer.from(output).toString());
    };
    const few = new Chunker({ bytesMax: 1e9, emit });
    void few.write('stdout', Buffer.from('one\nt'));
    void few.write('stdout', Buffer.from('wo\nthree'));
    await few.end();
    expect(texts.splice(0)).toEqual(['one\ntwo\nthree\n']);
    const many = new Chunker({ bytesMax: 1e9, emit });
    void many.write('stdout', Buffer.from('first\n'));
    const long = `${'x'.repeat(20_000)}\n`;
    for (const part of [long.slice(0, 10), long.slice(10)]) void many.write('stderr', Buffer.from(part));
    await many.end();
    expect(texts).toEqual([`first\n${long}`]);
    expect(memory).toEqual([4 * 1024, CHUNK_BYTES_MAX]);
  });

  it('go out a moment after the first line, not only when full', async () => {
    const chunk = await new Promise<LogChunk>((resolve) => {
      const chunker = new Chunker({ bytesMax: 1_000, emit: resolve });
      void chunker.write('stdout', Buffer.from('one\ntwo'));
    });
    expect(Buffer.from(chunk.output).toString()).toBe('one\n');
  });

  it('a taker that is busy is waited for', async () => {
    const open: (() => void)[] = [];
    const chunker = new Chunker({ bytesMax: 1e9, emit: () => new Promise<void>((resolve) => open.push(resolve)) });
    const line = Buffer.alloc(40_000, 'x');
    line[line.length - 1] = 0x0a;
    expect(chunker.write('stdout', line)).toBeUndefined();
    const full = chunker.write('stdout', line);
    expect(full).toBeInstanceOf(Promise);
    let ended = false;
    const end = chunker.end().then((bytes) => {
      ended = true;
      return bytes;
    });
    open[0]?.();
    await Promise.resolve();
    expect(ended).toBe(false);
    open[1]?.();
    expect(await end).toBe(80_000);
  });
});

describe("an attempt's budget", () => {
  const whole = (chunks: readonly LogChunk[]): string => Buffer.concat(chunks.map(({ output }) => output)).toString();
  const marker = (bytes: number): string =>
    `… log truncated at ${bytes} bytes: its middle is not kept, its end follows when the stage has ended\n`;

  it('keeps both ends of a longer output in whole lines, with one marker between them; remarks stay where they came', async () => {
    const { chunker, chunks } = collect(20);
    void chunker.write('stdout', Buffer.from('1234\n5678\n9'));
    expect(chunker.truncated).toBe(false);
    void chunker.remark('early');
    void chunker.write('stderr', Buffer.from('more\nand more\n'));
    expect(chunker.truncated).toBe(true);
    void chunker.write('stdout', Buffer.from('0\nlast\n'));
    void chunker.remark('the stage was stopped');
    await chunker.end();
    expect(whole(chunks)).toBe(`1234\n5678\nearly\n${marker(20)}90\nlast\nthe stage was stopped\n`);
  });

  it('keeps an output whole that is just as long, without a marker', async () => {
    const { chunker, chunks } = collect(20);
    for (const line of ['1234\n', '5678\n', '9abc\n', 'defg\n']) void chunker.write('stdout', Buffer.from(line));
    await chunker.end();
    expect(whole(chunks)).toBe('1234\n5678\n9abc\ndefg\n');
    expect(chunker.truncated).toBe(false);
  });

  it('is kept to whatever is written, and the beginning and the end of it are those of the output', async () => {
    const line = fc.tuple(fc.constantFrom<OutputStreamName>('stdout', 'stderr'), fc.stringMatching(/^[a-z]{0,30}$/u));
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 60 }), fc.integer({ min: 0, max: 300 }), async (lines, bytesMax) => {
        const { chunker, chunks } = collect(bytesMax);
        for (const [stream, text] of lines) void chunker.write(stream, Buffer.from(`${text}\n`));
        await chunker.end();
        const all = lines.map(([, text]) => `${text}\n`).join('');
        const [first = '', last] = whole(chunks).split(marker(bytesMax));
        expect(first.length + (last?.length ?? 0)).toBeLessThanOrEqual(bytesMax);
        expect(all.startsWith(first)).toBe(true);
        expect(last === undefined ? first === all : all.endsWith(last)).toBe(true);
        expect(last === undefined).toBe(!chunker.truncated);
      }),
      { numRuns: 300 },
    );
  });

  it('have at most 1,024 changes between outputs, each of which takes room beside what was written', async () => {
    const { chunker, chunks } = collect();
    for (let line = 0; line < 5_000; line++)
      void chunker.write(line % 2 === 0 ? 'stdout' : 'stderr', Buffer.from('x\n'));
    expect(await chunker.end()).toBe(10_000);
    expect(chunks.map(({ parts }) => parts.length)).toEqual([1_024, 1_024, 1_024, 1_024, 904]);
  });
});
