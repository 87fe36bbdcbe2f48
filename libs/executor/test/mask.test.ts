/** Secret values in output: every form, however it is cut, and nothing but them. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canMount } from '@penstock/testkit';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MaskFile } from '../src/output/mask-file.ts';
import { needlesOf } from '../src/output/mask-needles.ts';
import { MaskScanner } from '../src/output/mask-scanner.ts';
import { Mask, MaskingSink } from '../src/output/mask.ts';

/** A file that says it has some bytes, and gives none: this machine's own network has no speed. */
const UNREADABLE = '/sys/class/net/lo/speed';
const CANARY = `p4ss/w0rd+ "ü" &x=1!'~z`;

/** What comes out of the sink when the text is written in parts of so many bytes. */
function masked(mask: Mask, text: string | Buffer, size = Infinity, stream: 'stdout' | 'system' = 'stdout'): string {
  const out: Buffer[] = [];
  const sink = new MaskingSink({ write: (_, bytes) => void out.push(Buffer.from(bytes)) }, mask);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += Math.min(size, bytes.length))
    void sink.write(stream, bytes.subarray(at, at + Math.min(size, bytes.length)));
  sink.finish();
  return Buffer.concat(out).toString('utf8');
}

/** Of the first letters of the alphabet; the same ones for a seed. */
function randomWords(seed: number): { random(below: number): number; word(letters: number, length: number): string } {
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const word = (letters: number, length: number): string =>
    Array.from({ length }, () => String.fromCodePoint(97 + random(letters))).join('');
  return { random, word };
}

/** Which letters of a text belong to one of the values. */
function coveredBy(values: readonly string[], text: string): boolean[] {
  const covered = Array.from({ length: text.length }, () => false);
  for (const value of values)
    for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1))
      covered.fill(true, at, at + value.length);
  return covered;
}

const strictUrl = (value: string): string =>
  encodeURIComponent(value).replaceAll(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const FORMS: Readonly<Record<string, (value: string) => string>> = {
  raw: (value) => value,
  base64,
  'base64 behind one byte': (value) => base64(`u${value}`),
  'base64 behind two bytes': (value) => base64(`u:${value}`),
  base64url: (value) => Buffer.from(value).toString('base64url'),
  'base64url behind two bytes': (value) => Buffer.from(`~?${value}`).toString('base64url'),
  hex: (value) => Buffer.from(value).toString('hex'),
  HEX: (value) => Buffer.from(value).toString('hex').toUpperCase(),
  url: encodeURIComponent,
  'url with small letters': (value) => encodeURIComponent(value).replaceAll(/%../g, (byte) => byte.toLowerCase()),
  'a form': (value) => new URLSearchParams({ v: value }).toString().slice(2),
  'an address': encodeURI,
  'a path, as Python has it': (value) => strictUrl(value).replaceAll('%2F', '/'),
  'a form, as Python has it': (value) => strictUrl(value).replaceAll('%20', '+'),
  json: (value) => JSON.stringify(value).slice(1, -1),
  'json in ASCII': (value) => JSON.stringify(value).slice(1, -1).replaceAll('ü', '\\u00fc'),
  'json, as PHP has it': (value) => FORMS['json in ASCII']?.(value).replaceAll('/', '\\/') ?? '',
  'json, as Go has it': (value) => JSON.stringify(value).slice(1, -1).replaceAll('&', '\\u0026'),
};

describe('a value', () => {
  it.each(Object.entries(FORMS))('is masked as %s, cut anywhere', (_name, form) => {
    const mask = new Mask([CANARY]);
    const text = `before ${form(CANARY)} after\n`;
    const whole = masked(mask, text);
    expect(whole).toMatch(/^before .{0,4}\*\*\*.{0,4} after\n$/u);
    for (let size = 1; size < text.length; size += 1) expect(masked(mask, text, size)).toBe(whole);
  });

  it('is masked with everything around it left as it is', () => {
    const mask = new Mask(['abcd', 'abcdefgh', 'efgh!']);
    expect(masked(mask, 'x abcd x')).toBe('x *** x');
    expect(masked(mask, 'x abcdefgh x')).toBe('x *** x');
    expect(masked(mask, 'x abcdefgx')).toBe('x ***efgx');
    expect(masked(mask, 'abcdefgh!abcd')).toBe('***');
    expect(masked(mask, 'abc abcabcd')).toBe('abc abc***');
    for (let size = 1; size < 14; size += 1) {
      expect(masked(mask, 'x abcdefgx', size)).toBe('x ***efgx');
      expect(masked(mask, 'abcdefgh!abcd', size)).toBe('***');
    }
  });

  it('of several lines is masked line by line and as a whole, also in base64 that was broken into lines', () => {
    const key = `-----BEGIN KEY-----\n${'Kq7/'.repeat(16)}\n${'Zx+w'.repeat(16)}\nab\n-----END KEY-----\n`;
    const mask = new Mask([key]);
    expect(masked(mask, key)).toBe('***\n');
    for (const line of key.split('\n').filter((each) => each.length > 3))
      expect(masked(mask, `> ${line}\r\n`)).toBe('> ***\r\n');
    const lines = base64(key).match(/.{1,76}/g) ?? [];
    expect(masked(mask, lines.join('\n'))).toBe(lines.map(() => '***').join('\n'));
  });

  it('is masked in hex that was broken into lines', () => {
    const value = 'Kq7/Zx+w'.repeat(10);
    const lines =
      Buffer.from(value)
        .toString('hex')
        .match(/.{1,60}/g) ?? [];
    expect(masked(new Mask([value]), lines.join('\n'))).toBe(lines.map(() => '***').join('\n'));
  });

  it.each([
    ['hex', 60, 'abcdefghijklmnopqrstuvwxyzABCD21'],
    ['base64', 76, `${'Kq7/Zx+w'.repeat(7)}ab`],
  ] as const)(
    'whose %s leaves only a few characters for its last line is masked whole, and they alone are not',
    (encoding, length, value) => {
      const digits = Buffer.from(value).toString(encoding);
      const last = digits.slice(length);
      expect(last).toHaveLength(4);
      const mask = new Mask([value]);
      const text = `a ${digits.slice(0, length)}\n${last}\nport ${last}\n`;
      for (const size of [1, 7, 61, Infinity]) expect(masked(mask, text, size)).toBe(`a ***\nport ${last}\n`);
    },
  );

  it('that is very long is masked in parts too', () => {
    const value = Array.from({ length: 2_000 }, (_, index) => `${index * 7919}`).join('-');
    const mask = new Mask([value]);
    expect(masked(mask, `a ${value} b`)).toBe('a *** b');
    expect(masked(mask, `a ${value} b`, 1_000)).toBe('a *** b');
    expect(masked(mask, `a ${value.slice(640, 1_280)} b`)).toBe('a *** b');
  });

  it('holds nothing back but what may be its beginning', () => {
    const out: string[] = [];
    const sink = new MaskingSink(
      { write: (_, bytes) => void out.push(Buffer.from(bytes).toString()) },
      new Mask(['hunter2!']),
    );
    void sink.write('stdout', Buffer.from('a line\nwho is a hun'));
    expect(out.join('')).toBe('a line\nwho is a ');
    void sink.write('stderr', Buffer.from('ter2!'));
    void sink.write('stdout', Buffer.from('ter\n'));
    expect(out.join('')).toBe('a line\nwho is a ter2!hunter\n');
    void sink.write('system', Buffer.from('a remark with h'));
    expect(out.at(-1)).toBe('a remark with h');
  });

  it('of which another one is a part is masked whole, wherever it is cut', () => {
    const mask = new Mask(['abcdefgh', 'cdef']);
    for (let size = 1; size < 12; size += 1) {
      expect(masked(mask, 'x abcdefgh x', size)).toBe('x *** x');
      expect(masked(mask, 'x abcdef', size)).toBe('x ab***');
      expect(masked(mask, 'x abcdefg x', size)).toBe('x ab***g x');
    }
  });

  it('is masked as in the whole text, whatever the values are and wherever it is cut', () => {
    const { random, word } = randomWords(11);
    for (let round = 0; round < 400; round += 1) {
      const letters = 1 + random(4);
      const values = Array.from({ length: 1 + random(12) }, () => word(letters, 4 + random(12)));
      const text = word(letters, random(200));
      const covered = coveredBy(values, text);
      const expected = text.replaceAll(/./g, (letter, at: number) =>
        covered[at] !== true ? letter : covered[at - 1] === true ? '' : '***',
      );
      const mask = new Mask(values);
      for (const size of [1, 2, 3, 7, 40, 90, Infinity]) expect(masked(mask, text, size)).toBe(expected);
    }
  });

  it('is masked in texts, which stay as they are without it', () => {
    const mask = new Mask(['hunter2!']);
    expect(mask.text('the password is hunter2!')).toBe('the password is ***');
    expect(mask.text('the password is hunter2')).toBe('the password is hunter2');
    expect(mask.text('no ü')).toBe('no ü');
    expect(new Mask().text('hunter2!')).toBe('hunter2!');
  });
});

describe('the search', () => {
  it('finds what looking for each value alone finds, in whatever text', () => {
    const { random, word } = randomWords(7);
    for (let round = 0; round < 300; round += 1) {
      const letters = 1 + random(4);
      const needles = [...new Set(Array.from({ length: 1 + random(30) }, () => word(letters, 4 + random(12))))]
        .toSorted((a, b) => (a < b ? -1 : 1))
        .map((needle) => Buffer.from(needle));
      const text = word(letters, random(200));
      const covered = coveredBy(needles.map(String), text);
      const found = covered.map(() => false);
      const scanner = MaskScanner.of(needles);
      scanner.find(Buffer.from(text), (start, end) => void found.fill(true, start, end));
      expect(found).toEqual(covered);
      const open = [...text].findIndex((_, at) =>
        needles.some((needle) => String(needle).startsWith(text.slice(at)) && needle.length > text.length - at),
      );
      expect(scanner.openFrom(Buffer.from(text))).toBe(open < 0 ? text.length : open);
    }
  });

  it('bounds the length of what it compares, whatever is set', () => {
    const needles = needlesOf(['x'.repeat(65_536), `${'ab'.repeat(30_000)}c`]);
    expect(Math.max(...needles.map(({ length }) => length))).toBe(64);
    // Pieces of one form that are alike are one.
    expect(needles.length).toBeLessThan(200);
  });
});

describe('$SERVICE_MASK', () => {
  function file(): {
    readonly path: string;
    readonly mask: Mask;
    readonly maskFile: MaskFile;
    readonly remarks: string[];
    refresh(): void;
  } {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-mask-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, 'mask');
    const [mask, remarks] = [new Mask(), [] as string[]];
    const maskFile = new MaskFile(path, mask, (text) => void remarks.push(text));
    return { path, mask, maskFile, remarks, refresh: () => maskFile.refresh() };
  }

  it('adds a value with each line that has ended', () => {
    const { path, mask, refresh } = file();
    refresh();
    expect(mask.text('born-now')).toBe('born-now');
    writeFileSync(path, 'born-now\r\nabc\n\nhalf-a-li');
    refresh();
    expect(mask.text('born-now abc half-a-li')).toBe('*** abc half-a-li');
    appendFileSync(path, 'ne\n');
    refresh();
    expect(mask.text('half-a-line')).toBe('***');
  });

  it('adds what stands in the place of what was there, and keeps that', () => {
    const { path, mask, refresh } = file();
    writeFileSync(path, 'first-value\n');
    refresh();
    writeFileSync(path, 'another-value\n');
    refresh();
    expect(mask.text('first-value another-value')).toBe('*** ***');
  });

  it.runIf(canMount('values to be masked in the place of others within a tick of the clock'))(
    'adds each value of a file whose time and size say nothing, on a disk whose clock is slow',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'penstock-mask-'));
      // Its times are those of the kernel's last tick, as all disks had them before Linux 6.13.
      execFileSync('mount', ['-t', 'ramfs', 'penstock-test', folder]);
      onTestFinished(() => {
        execFileSync('umount', ['-l', folder]);
        rmSync(folder, { recursive: true });
      });
      const mask = new Mask();
      const maskFile = new MaskFile(join(folder, 'mask'), mask, () => {});
      const values = Array.from({ length: 90 }, (_, index) => `value-${100 + index}`);
      for (const value of values) {
        writeFileSync(join(folder, 'mask'), `${value}\n`);
        maskFile.refresh();
      }
      expect(values.map((value) => mask.text(value))).toEqual(values.map(() => '***'));
    },
  );

  // It is asked where output arrives: what it threw there ended the runner.
  it.runIf(existsSync(UNREADABLE))('is nothing where it cannot be read, and is read once it can', () => {
    expect(() => readFileSync(UNREADABLE)).toThrow('EINVAL');
    const remarks: string[] = [];
    const maskFile = new MaskFile(UNREADABLE, new Mask(), (text) => void remarks.push(text));
    maskFile.refresh();
    maskFile.refresh();
    expect([maskFile.isThere, remarks]).toEqual([true, []]);
  });

  it('says whether something is at its path, a link and an empty file included', () => {
    const { path, maskFile } = file();
    const isThere = (): boolean => {
      maskFile.refresh();
      return maskFile.isThere;
    };
    expect(isThere()).toBe(false);
    symlinkSync(`${path}.nowhere`, path);
    expect(isThere()).toBe(true);
    rmSync(path);
    expect(isThere()).toBe(false);
    writeFileSync(path, '');
    expect(isThere()).toBe(true);
  });

  it('follows no link, waits for nothing, and is bounded', () => {
    const { path, mask, remarks, refresh } = file();
    writeFileSync(`${path}.other`, 'not-to-be-read\n');
    symlinkSync(`${path}.other`, path);
    refresh();
    expect(mask.text('not-to-be-read')).toBe('not-to-be-read');
    rmSync(path);
    writeFileSync(path, Array.from({ length: 1_000 }, (_, index) => `value-${index}-\n`).join(''));
    refresh();
    expect(mask.text('value-99- value-100-')).toBe('*** value-100-');
    truncateSync(path, 2 ** 30);
    refresh();
    expect(remarks).toEqual([expect.stringContaining('100 values')]);
  });
});

it('values that are added one by one are masked as those that were there from the start', () => {
  const values = ['first-secret', 'second secret/with=signs', 'first-secret-and-more', 'x'.repeat(200), 'first-secret'];
  const one = new Mask();
  for (const value of values) one.add([value]);
  const all = new Mask(values);
  for (const value of [...values, Buffer.from(values[1] ?? '').toString('base64'), 'nothing of it'])
    expect([value, one.text(`<${value}>`)]).toEqual([value, all.text(`<${value}>`)]);
  expect(one.text('<first-secret>')).toBe('<***>');
});
