import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cellsOf, fitText, printableText } from '../src/output/printable-text.ts';
import { durationText } from '../src/output/stage-tally.ts';
import { TailBuffer } from '../src/output/tail-buffer.ts';
import { tameLines } from '../src/output/tame-lines.ts';
import { wantsColor } from '../src/output/terminal.ts';

describe('text of strangers', () => {
  it('never keeps a character that a terminal acts upon', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => !/[\p{Cc}\p{Cf}]/u.test(printableText(text))));
    expect(printableText('a\u001b[2J\u202eb\n')).toBe('a\\u{1b}[2J\\u{202e}b\\n');
  });

  it('is fitted to a width in cells', () => {
    expect(fitText('abc', 5)).toBe('abc  ');
    expect(fitText('abcdef', 5)).toBe('abcd…');
    expect(fitText('ビルド', 5)).toBe('ビル…');
    expect(cellsOf(fitText('ビルド', 4))).toBe(4);
  });

  it.each([
    ['plain\tline\n', 'plain\tline\n'],
    ['\u001b[1;31mred\u001b[0m\n', '\u001b[1;31mred\u001b[0m\n'],
    ['\u001b]52;c;aGk=\u0007x\n', '␛]52;c;aGk=␇x\n'],
    ['\u001b[2J\u001b[Hgone\n', '␛[2J␛[Hgone\n'],
    ['\u009b2Jx\n', '\ufffd2Jx\n'],
    ['10%\r20%\r100%\n', '100%\n'],
    ['windows\r\nlines\r\n', 'windows\nlines\n'],
    ['one\na\rb\n', 'one\nb\n'],
  ])('%j is tamed to %j', (text, tamed) => {
    expect(tameLines(Buffer.from(text), { color: true }).toString('utf8')).toBe(tamed);
  });

  it('has no colours where none are wanted: by them a line can be hidden, and with it what follows', () => {
    const hidden = Buffer.from('a\u001b[8mb\u001b[0m\nc\u001b[2Jd\n');
    expect(tameLines(hidden, { color: false }).toString('utf8')).toBe('ab\nc␛[2Jd\n');
  });

  it('is tame whatever it was', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('\u001b', '[', ']', '31m', '\r', '\n', 'x', '\u0007', '\u009b', '\u202e', '8', ';'), {
          maxLength: 40,
        }),
        (parts) => {
          const tamed = tameLines(Buffer.from(parts.join('')), { color: true }).toString('utf8');
          // Only tabs, line ends and whole colours are left.
          const rest = tamed
            .split('\u001b')
            .map((part, index) => (index === 0 ? part : part.replace(/^\[[0-9;:]*m/, '')))
            .join('');
          return !/[\p{Cc}\u202e]/u.test(rest.replaceAll(/[\t\n]/g, ''));
        },
      ),
    );
  });
});

describe('the tail of an output', () => {
  it('holds the last bytes, whatever pieces they came in', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 }), (pieces) => {
        const tail = new TailBuffer(64);
        for (const piece of pieces) tail.push(Buffer.from(piece));
        const all = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
        const { bytes, truncated } = tail.wholeLines();
        expect(truncated).toBe(all.length > 64);
        expect(
          all
            .subarray(Math.max(0, all.length - 64))
            .toString('latin1')
            .endsWith(bytes.toString('latin1')),
        ).toBe(true);
        expect(truncated || bytes.equals(all)).toBe(true);
      }),
    );
  });

  it('begins with a whole line for a person, and with a whole character for a program', () => {
    const tail = new TailBuffer(8);
    tail.push(Buffer.from('aaaaaaüb\ncde\n'));
    expect(tail.wholeLines().bytes.toString('utf8')).toBe('cde\n');
    const cut = new TailBuffer(4);
    cut.push(Buffer.from('ü€a'));
    expect(cut.text()).toEqual({ text: '€a', truncated: true });
    const within = new TailBuffer(3);
    within.push(Buffer.from('x€a'));
    expect(within.text()).toEqual({ text: 'a', truncated: true });
  });
});

describe('small things', () => {
  it.each([
    [0, '0.00 s'],
    [420, '0.42 s'],
    [1_230, '1.2 s'],
    [12_300, '12 s'],
    [185_000, '3 min 5 s'],
    [7_380_000, '2 h 3 min'],
  ])('%d ms are %s', (milliseconds, text) => {
    expect(durationText(milliseconds)).toBe(text);
  });

  it('colours by option, then by environment, then by what the output is', () => {
    const none = { color: false, noColor: false };
    expect(wantsColor(none, {}, true)).toBe(true);
    expect(wantsColor(none, {}, false)).toBe(false);
    expect(wantsColor(none, { NO_COLOR: '1' }, true)).toBe(false);
    expect(wantsColor(none, { NO_COLOR: '' }, true)).toBe(true);
    expect(wantsColor(none, { TERM: 'dumb' }, true)).toBe(false);
    expect(wantsColor({ color: true, noColor: false }, { NO_COLOR: '1' }, false)).toBe(true);
  });
});
