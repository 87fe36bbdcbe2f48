import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readOutputs } from '../src/output/outputs.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-outputs-'));
  file = join(folder, 'output');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(text: string, declared: readonly string[]): ReturnType<typeof readOutputs> {
  writeFileSync(file, text);
  return readOutputs(file, declared);
}

describe('$SERVICE_OUTPUT', () => {
  it('holds lines and heredocs; the last value of a name counts', () => {
    const text = 'a=1\r\n\na=x=y<<z\nb<<END\none\n  two=2\n\nEND\nc<<E\nE\nempty=\n';
    expect(read(text, ['a', 'b', 'c', 'empty'])).toEqual({
      outputs: { a: 'x=y<<z', b: 'one\n  two=2\n', c: '', empty: '' },
      warnings: [],
      isThere: true,
    });
  });

  it('that no stage wrote is no output', () => {
    expect(readOutputs(file, ['a'])).toEqual({ outputs: {}, warnings: [], isThere: false });
  });

  it('keeps declared names only, and says which it dropped', () => {
    const { outputs, warnings } = read('a=1\nb=2\nb=3\n__proto__=x\n', ['a']);
    expect(outputs).toEqual({ a: '1' });
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain("'b'");
  });

  it.each([
    ['just words', /line 1 .*neither/],
    ['a=1\nb c=2', /line 2 .*names an output "b c"/],
    ['=1', /names an output ""/],
    ['a<<END\none', /opens 'a<<"END"', which no later line ends/],
    ['a<<\nx\n', /which no later line ends/],
    ['a=x\0y', /NUL/],
    [`a=${'x'.repeat(65_536)}`, /take 65537 bytes; 65536 are kept/],
    ['x'.repeat(300_000), /holds 300000 bytes/],
  ])('%j is refused with its place', (text, message) => {
    expect(() => read(text, ['a'])).toThrow(message);
  });

  it('of 1 GB is refused unread', () => {
    writeFileSync(file, 'a=1\n');
    truncateSync(file, 1024 ** 3);
    expect(() => readOutputs(file, ['a'])).toThrow('$SERVICE_OUTPUT holds 1073741824 bytes; 262144 are read');
  });

  it('is not followed or waited for where the stage has put something else', () => {
    symlinkSync('/etc/passwd', file);
    expect(() => readOutputs(file, [])).toThrow('is a link, which is not followed');
    rmSync(file);
    mkdirSync(file);
    expect(() => readOutputs(file, [])).toThrow(/no file/);
    rmSync(file, { recursive: true });
    execFileSync('mkfifo', [file]);
    expect(() => readOutputs(file, [])).toThrow(/no file/);
    rmSync(file);
    writeFileSync(file, '');
    expect(() => readOutputs(join(file, 'below'), [])).toThrow(/cannot be read: a part of its path is no folder/);
  });
});
