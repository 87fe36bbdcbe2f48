/** What a line of a log may look like, and what it may not do. */
import { describe, expect, it } from 'vitest';
import { plainText, segmentsOf } from '../app/log/ansi.ts';

const ESC = '\u001b';
const textOf = (line: string): string =>
  segmentsOf(line, 1_000)
    .map(({ text }) => text)
    .join('');

describe('a line of a log', () => {
  it('keeps its colours and styles by name, of the palettes as numbers', () => {
    expect(
      segmentsOf(`plain ${ESC}[1;31mbad${ESC}[0m ${ESC}[38;5;196mred${ESC}[48;2;1;2;3mon${ESC}[m.`, 1_000),
    ).toEqual([
      { text: 'plain ', classes: '' },
      { text: 'bad', classes: 'bold fg-red' },
      { text: ' ', classes: '' },
      { text: 'red', classes: '', color: 'rgb(255, 0, 0)' },
      { text: 'on', classes: '', color: 'rgb(255, 0, 0)', background: 'rgb(1, 2, 3)' },
      { text: '.', classes: '' },
    ]);
    expect(segmentsOf(`${ESC}[92;7mx${ESC}[27my${ESC}[39mz`, 10)).toEqual([
      { text: 'x', classes: 'inverse bg-bright-green' },
    ]);
    expect(segmentsOf(`${ESC}[92;7mx${ESC}[27my${ESC}[39mz`, 100).map(({ classes }) => classes)).toEqual([
      'inverse bg-bright-green',
      'fg-bright-green',
      '',
    ]);
  });

  it('moves no cursor, sets no title and opens no link', () => {
    expect(textOf(`a${ESC}[2J${ESC}[1;1H${ESC}[3Ab`)).toBe('ab');
    expect(textOf(`a${ESC}]0;title\u0007b${ESC}]8;;https://evil.example${ESC}\\link${ESC}]8;;${ESC}\\`)).toBe('ablink');
    expect(textOf(`a${ESC}Pq#0${ESC}\\b${ESC}cc${ESC}[`)).toBe('abc');
    expect(plainText(`${ESC}[31mred${ESC}[0m`)).toBe('red');
  });

  it('shows what would not be seen or would turn the direction', () => {
    expect(textOf('abc\u202edef\u2066\u200b\u0008')).toBe('abc<U+202E>def<U+2066><U+200B>\u2408');
    expect(textOf('tab\tstays, שלום too')).toBe('tab\tstays, שלום too');
  });

  it('is what a progress bar leaves: the last part that says something', () => {
    expect(textOf('10%\r50%\r100%\r')).toBe('100%');
    expect(textOf('\r')).toBe('');
  });

  it('costs no more than its shown part, also where it is ten megabytes of escapes', () => {
    const line = `${ESC}[31m${ESC}]0;`.repeat(1_000_000);
    expect(segmentsOf(line, 2_000).length).toBeLessThan(2_000);
    expect(textOf('x'.repeat(5_000))).toHaveLength(1_000);
  });
});
