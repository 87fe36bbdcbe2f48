import { describe, expect, it } from 'vitest';
import { folderWith, runExtension } from './run-extension.ts';

const REPORT = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="all" tests="99" failures="99">
  <!-- <testcase name="in a comment"/> <testcase name="another"> -->
  <testsuite name="one &amp; two">
    <properties><property name="a" value="b > c"/></properties>
    <testcase classname="math" name="adds &lt;two&gt; numbers" time="0.25"/>
    <testcase classname="math" name="divides > by / zero" time="1,000.5">
      <failure message="expected &quot;1&quot;&#10;but got 2" type="AssertionError"><![CDATA[ <testcase name="in the text"> </testcase> ]]></failure>
      <system-out><![CDATA[prints <failure/> and <testcase/>]]></system-out>
    </testcase>
    <testcase name='is skipped'><skipped/></testcase>
    <testcase name="breaks"><error>boom</error><failure message="too"/></testcase>
  </testsuite>
  <testsuite name="empty"/>
</testsuites>
`;

describe('test/junit', () => {
  it('counts what is there, names what failed, and fails the stage', async () => {
    const { code, output, outputs } = await runExtension(
      'test/junit',
      {},
      { cwd: folderWith({ 'junit.xml': REPORT }) },
    );
    expect(output).toBe(
      'FAILED math > divides > by / zero: expected "1" but got 2\nFAILED breaks: too\n4 tests: 1 passed, 2 failed, 1 skipped, in 1000.750 s\n',
    );
    expect([code, outputs]).toEqual([1, { total: '4', passed: '1', failed: '2', skipped: '1', seconds: '1000.750' }]);
  });

  it('adds several reports up, by patterns and by lines, and need not fail', async () => {
    const small = '<testsuite><testcase name="a" time="1"/></testsuite>';
    const cwd = folderWith({ 'r/a.xml': small, 'r/b=c.xml': small, '-d.xml': small, 'last one.xml': REPORT });
    const { code, outputs } = await runExtension(
      'test/junit',
      { files: 'r/*.xml\n-d.xml\nlast one.xml', 'fail-on': 'nothing', show: '1' },
      { cwd },
    );
    expect([code, outputs['total'], outputs['failed']]).toEqual([0, '7', '2']);
  });

  it('shows at most as many as are asked for', async () => {
    const many = `<testsuite>${Array.from({ length: 30 }, (_, index) => `<testcase name="t${index}"><failure/></testcase>`).join('')}</testsuite>`;
    const { output } = await runExtension('test/junit', { show: '2' }, { cwd: folderWith({ 'junit.xml': many }) });
    expect(output).toBe('FAILED t0\nFAILED t1\n… and 28 more\n30 tests: 0 passed, 30 failed, 0 skipped, in 0.000 s\n');
  });

  it.each([
    [
      'a report that is cut off',
      { 'junit.xml': REPORT.slice(0, REPORT.indexOf('breaks')) },
      './junit.xml is no JUnit report, or is cut off',
    ],
    [
      'a report that ends between two tests',
      { 'junit.xml': REPORT.slice(0, REPORT.indexOf("<testcase name='is")) },
      './junit.xml is no JUnit report, or is cut off',
    ],
    ['a report that is none', { 'junit.xml': '{"tests": 3}' }, './junit.xml is no JUnit report, or is cut off'],
    ['an empty report', { 'junit.xml': '' }, 'junit.xml is empty'],
    ['no report', {}, 'there is no report junit.xml'],
  ])('fails by %s', async (_name, files, message) => {
    const { code, output, outputs } = await runExtension(
      'test/junit',
      { 'fail-on': 'nothing' },
      { cwd: folderWith(files) },
    );
    expect([code, output, outputs]).toEqual([1, `junit: ${message}\n`, {}]);
  });

  it('runs nothing that stands in a name, and prints no control characters', async () => {
    const hostile = `<testsuite><testcase name="$(touch hacked) \`touch hacked\`"><failure message="\u001b[31m\\n"/></testcase></testsuite>`;
    const cwd = folderWith({ '$(touch hacked).xml': hostile });
    const { output } = await runExtension('test/junit', { files: '$(touch hacked).xml' }, { cwd });
    expect(output).toContain('FAILED $(touch hacked) `touch hacked`:  [31m\\n\n');
    const { output: listing } = await runExtension('test/junit', { files: 'hacked' }, { cwd });
    expect(listing).toBe('junit: there is no report hacked\n');
  });
});
