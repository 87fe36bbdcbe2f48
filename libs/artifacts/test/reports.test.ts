import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readReport, testCaseOf, type TestCase, type TestReport } from '../src/index.ts';

let root: string;
let folder: string;
let remarks: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-reports-'));
  folder = join(root, 'work');
  mkdirSync(folder);
  remarks = [];
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), content);
}

async function read(
  patterns: readonly string[] = ['**/*.xml'],
  mask: (text: string) => string = (text) => text,
): Promise<TestReport | undefined> {
  const remark = (text: string): void => void remarks.push(text);
  return await readReport({ folder, patterns, mask, remark, signal: new AbortController().signal });
}

function casesOf(report: TestReport | undefined): TestCase[] {
  const lines = report?.content.toString('utf8').split('\n').slice(0, -1) ?? [];
  return lines.map((line) => testCaseOf(line) as TestCase);
}

const suite = (cases: string): string => `<testsuite name="unit">${cases}</testsuite>`;

describe('reports of JUnit', { timeout: 60_000 }, () => {
  it('each test has its suite, how it went, how long it took and why', async () => {
    write(
      'junit-a.xml',
      `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="all" tests="6"><testsuite name="outer"><properties><property name="a" value="b"/></properties>
<testsuite name="inner"><testcase classname="Calc" name="adds &amp; &#x41;" time="1,000.25"/>
<testcase name="fails" time="0.5"><failure message="expected 1, not 2" type="x">trace</failure><failure message="second"/></testcase>
<testcase name="throws"><error><![CDATA[Error: <no>]]>
 at x</error><system-out>noise</system-out></testcase></testsuite>
<testcase name="later"><skipped message="not yet"/></testcase><testcase name="off" status="disabled" time="-3"/></testsuite>
<testcase classname="Alone" name="both"><skipped/><failure>boom</failure></testcase></testsuites>`,
    );
    const report = await read();
    expect(casesOf(report)).toEqual([
      { suite: 'inner', className: 'Calc', name: 'adds & A', status: 'passed', durationSecs: 1000.25 },
      { suite: 'inner', name: 'fails', status: 'failed', durationSecs: 0.5, message: 'expected 1, not 2' },
      { suite: 'inner', name: 'throws', status: 'failed', durationSecs: 0, message: 'Error: <no>\n at x' },
      { suite: 'outer', name: 'later', status: 'skipped', durationSecs: 0, message: 'not yet' },
      { suite: 'outer', name: 'off', status: 'skipped', durationSecs: 0 },
      { suite: 'Alone', className: 'Alone', name: 'both', status: 'failed', durationSecs: 0, message: 'boom' },
    ]);
    expect(report).toMatchObject({ total: 6, failed: 3, skipped: 2, durationMs: 1_000_750 });
    expect(remarks).toEqual([
      'tests: 1 passed, 3 failed, 2 skipped',
      'failed: inner > fails',
      'failed: inner > throws',
      'failed: Alone > both',
    ]);
  });

  it('they are read in the encoding that they say, with what has no place in XML taken out', async () => {
    write(
      'latin.xml',
      Buffer.from(`<?xml version='1.0' encoding='iso-8859-1'?>${suite('<testcase name="caf\u00e9"/>')}`, 'latin1'),
    );
    write(
      'wide.xml',
      Buffer.from(`\ufeff<?xml version="1.0" encoding="UTF-16"?>${suite('<testcase name="\u4e2d"/>')}`, 'utf16le'),
    );
    write('color.xml', suite('<testcase name="\u001b[31mred"/>'));
    write('other.xml', `<?xml version="1.0" encoding="klingon"?>${suite('<testcase name="x"/>')}`);
    expect(casesOf(await read()).map(({ name }) => name)).toEqual(['\ufffd[31mred', 'caf\u00e9', '\u4e2d']);
    expect(remarks[0]).toBe(`"other.xml" is not in the test report: line 1: its encoding 'klingon' is not known`);
  });

  it('those that cannot be read are told one by one, and the others count', async () => {
    write('a-good.xml', suite('<testcase name="one"/>'));
    write('b-cut.xml', suite('<testcase name="lost"/>').slice(0, -5));
    write('c-empty.xml', '');
    write('d-page.xml', '<html><testcase name="x"/></html>');
    write('e-entity.xml', suite('<testcase name="&nbsp;"/>'));
    write('f-text.xml', 'no XML at all');
    write('g-deep.xml', `${'<testsuite>'.repeat(5000)}`);
    expect(casesOf(await read()).map(({ name }) => name)).toEqual(['one']);
    expect(remarks).toEqual([
      expect.stringMatching(/^"b-cut.xml" is not in the test report: line 1: Un/),
      '"c-empty.xml" is not in the test report: line 1: it has no element',
      '"d-page.xml" is not in the test report: line 1: it is no report of JUnit: it begins with <html>',
      '"e-entity.xml" is not in the test report: line 1: Invalid character entity',
      expect.stringMatching(/^"f-text.xml" is not in the test report: line 1: /),
      '"g-deep.xml" is not in the test report: line 1: its elements are more than 100 deep',
      'tests: 1 passed',
    ]);
  });

  it('those with a DTD are refused, however little their entities would grow to', async () => {
    const levels = Array.from({ length: 9 }, (_, level) => `<!ENTITY l${level + 1} "${`&l${level};`.repeat(10)}">`);
    write('laughs.xml', `<!DOCTYPE x [<!ENTITY l0 "lol">${levels.join('')}]>${suite('<testcase name="&l9;"/>')}`);
    write('outside.xml', `<!DOCTYPE x [<!ENTITY p SYSTEM "file:///etc/passwd">]>${suite('<testcase name="&p;"/>')}`);
    expect(await read()).toBeUndefined();
    expect(remarks).toEqual([
      '"laughs.xml" is not in the test report: line 1: it has a DTD, and those are not read',
      '"outside.xml" is not in the test report: line 1: it has a DTD, and those are not read',
    ]);
  });

  it('they are not read beyond their bounds: a file of 1 GB, one more than there is room for', async () => {
    write('a-giant.xml', '');
    truncateSync(join(folder, 'a-giant.xml'), 1024 ** 3);
    write('b-first.xml', suite('<testcase name="x"/>'));
    write('c-second.xml', '');
    truncateSync(join(folder, 'c-second.xml'), 64 * 1024 ** 2 - 10);
    write('d-small.xml', suite('<testcase name="w"/>'));
    expect(casesOf(await read()).map(({ name }) => name)).toEqual(['x', 'w']);
    expect(remarks).toEqual([
      '"a-giant.xml" is not in the test report: it has 1073741824 bytes; the reports of a stage may have 67108864 together',
      expect.stringMatching(/^"c-second.xml" is not in the test report: it has 67108854 bytes/),
      'tests: 2 passed',
    ]);
  });

  it('they keep 100,000 tests; where there is much to say of them the reasons are left out', async () => {
    const failed = `<testcase classname="c" name="t"><failure message="${'m'.repeat(400)}"/></testcase>`;
    write('a.xml', suite(failed.repeat(60_000)));
    write('b.xml', suite('<testcase name="t"/>'.repeat(50_000)));
    const report = await read();
    expect(report).toMatchObject({ total: 100_000, failed: 60_000 });
    expect(report?.content.length).toBeLessThan(32 * 1024 * 1024);
    const cases = casesOf(report);
    expect([cases[0]?.message?.length, cases[59_999]?.message]).toEqual([400, undefined]);
    expect(remarks).toContain('the test report is full with 100000 tests: the others are not in it');
    expect(remarks).toContain('and 59990 more failed');
  });

  it('they are not read through links that leave, nor out of pipes, and a name that says much is cut', async () => {
    writeFileSync(join(root, 'outside.xml'), suite('<testcase name="outside"/>'));
    symlinkSync('../outside.xml', join(folder, 'link.xml'));
    execFileSync('mkfifo', [join(folder, 'pipe.xml')]);
    write('a.xml', suite(`<testcase name="${'n'.repeat(5_000)}"/>`));
    expect(casesOf(await read())).toMatchObject([{ name: `${'n'.repeat(499)}…` }]);
    expect(remarks).toEqual([
      '"link.xml" is not in the test report: it is a link that leaves the working folder',
      '"pipe.xml" is not in the test report: it is no file',
      'tests: 1 passed',
    ]);
  });

  it('they are masked, also where a secret value stands at the cut', async () => {
    const secret = 'correct-horse-battery-staple';
    const name = `${'n'.repeat(490)}${secret}`;
    write(`${secret}.xml`, '<html/>');
    write('a.xml', suite(`<testcase name="${name}" classname="${secret}"><failure>saw ${secret}</failure></testcase>`));
    const report = await read(['**/*.xml'], (text) => text.replaceAll(secret, '***'));
    expect(casesOf(report)).toMatchObject([{ className: '***', message: 'saw ***' }]);
    const half = secret.slice(0, 6);
    expect(report?.content.includes(half)).toBe(false);
    expect(remarks.join('\n')).not.toContain(half);
  });

  it('patterns that nothing matches are told', async () => {
    expect(await read(['a/*.xml', 'b', 'c', 'd'])).toBeUndefined();
    expect(remarks).toEqual(["no file matches 'reports' (a/*.xml, b, c, …)"]);
  });

  it('the reading ends with the signal', async () => {
    const stopped = AbortSignal.abort(new Error('stopped'));
    const reading = readReport({ folder, patterns: ['*'], mask: String, remark: () => {}, signal: stopped });
    await expect(reading).rejects.toThrow('stopped');
  });
});
