import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { serverScript } from './archives.ts';
import { Checkout } from './checkout.ts';
import type { Outcome } from './checkout.ts';

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
  checkout.script('bin/nats-server', serverScript('2.15.1'));
  checkout.write('bootstrap/layers.json', '{}');
  tool('typescript/bin/tsc', 'console.log("types run");');
  tool('oxlint/bin/oxlint', 'console.log("lint run");');
  tool('oxfmt/bin/oxfmt', 'console.log("format run");');
  tool('knip/bin/knip.js', 'console.log("unused run");');
  vitest({ numPassedTests: 12, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] });
});
afterEach(() => checkout.remove());

const tool = (path: string, text: string): string => checkout.write(`node_modules/${path}`, text);

/** A vitest that writes the given report, tells its arguments, and runs `more`. */
function vitest(report: object | undefined, more = ''): void {
  const write = `const out = process.argv.find((each) => each.startsWith('--outputFile.json=')); fs.writeFileSync(out.split('=')[1], ${JSON.stringify(JSON.stringify(report))});`;
  tool('vitest/package.json', '{"type":"module"}');
  tool(
    'vitest/vitest.mjs',
    `import fs from 'node:fs'; console.log('vitest', process.argv.slice(2).filter((each) => !each.startsWith('--')).join(' ')); ${report ? write : ''} ${more}`,
  );
}

const npmTest = (...args: string[]): Promise<Outcome> => checkout.run('bootstrap/test.js', args);
const lastLine = (outcome: Outcome): string | undefined => outcome.stdout.trimEnd().split('\n').at(-1);

it('types, lint, format, unused exports, boundaries and tests run in this order, and the last line is the count alone', async () => {
  const outcome = await npmTest();
  expect(outcome.code, outcome.stderr).toBe(0);
  expect(outcome.stdout.replaceAll('\n', ' ')).toMatch(
    /== types types run .*== lint lint run .*== format format run .*== unused unused run .*== boundaries .*== tests vitest run /,
  );
  expect(lastLine(outcome)).toBe('12 passed, 0 failed');
});

it('with arguments only those tests run', async () => {
  const outcome = await npmTest('libs/pipeline');
  expect(outcome.stdout).toContain('vitest run libs/pipeline');
  expect(outcome.stdout).not.toContain('types run');
});

it('with --all the long tests run behind the others, and the last line counts all together', async () => {
  const outcome = await npmTest('--all');
  expect(outcome.code, outcome.stderr).toBe(0);
  expect(outcome.stdout.replaceAll('\n', ' ')).toMatch(
    /== types .*== tests vitest run .*== long tests vitest run .*== long tests of the simulation vitest run /,
  );
  expect(lastLine(outcome)).toBe('36 passed, 0 failed');
});

it('the long tests of the simulation run beside the other long ones, and their output stands whole behind', async () => {
  // Each waits for the other to have begun.
  vitest(
    { numPassedTests: 12, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] },
    `const { setTimeout } = await import('node:timers/promises');
    const own = process.argv.find((each) => each.startsWith('--project=')).split('=')[1];
    const other = own === '!worlds' ? 'worlds' : '!worlds';
    fs.writeFileSync(own, '');
    while (!fs.existsSync(other)) await setTimeout(5);
    console.log(own, 'ended');`,
  );
  const outcome = await npmTest('--long');
  expect(outcome.stdout).toMatch(
    /^\n== long tests\nvitest run *\n!worlds ended\n\n== long tests of the simulation\nvitest run *\nworlds ended\n24 passed, 0 failed\n$/m,
  );
});

it('with --all a failure of any suite fails the command, and all are counted', async () => {
  vitest(
    { numPassedTests: 3, numFailedTests: 1, numPendingTests: 1, numTodoTests: 0, testResults: [] },
    "process.exitCode = process.argv.some((each) => each.endsWith('vitest.long.config.ts')) ? 1 : 0;",
  );
  const outcome = await npmTest('--all');
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toContain('Failed: tests, long tests, long tests of the simulation\n');
  expect(lastLine(outcome)).toBe('9 passed, 3 failed, 3 skipped');
});

it('with --long only the long tests run', async () => {
  const outcome = await npmTest('--long');
  expect(outcome.stdout).toContain('== long tests\nvitest run');
  expect(outcome.stdout).not.toContain('== tests\n');
  expect(outcome.stdout).not.toContain('types run');
  expect(lastLine(outcome)).toBe('24 passed, 0 failed');
});

it('with --long and arguments only those of the long tests run, all in one', async () => {
  const outcome = await npmTest('--long', 'test/chaos', '-t', 'frozen');
  expect(outcome.stdout).toContain('== long tests\nvitest run test/chaos -t frozen');
  expect(lastLine(outcome)).toBe('12 passed, 0 failed');
});

it('a failing check fails the command and lets the others speak', async () => {
  tool('typescript/bin/tsc', 'process.exitCode = 2;');
  const outcome = await npmTest();
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toContain('lint run');
  expect(outcome.stdout).toContain('Failed: types, types of the dashboard\n');
  expect(lastLine(outcome)).toBe('12 passed, 0 failed');
});

it('failed and skipped tests are counted, and a file that cannot be loaded is a failure', async () => {
  const testResults = [{ name: '/x/broken.test.ts', status: 'failed', assertionResults: [] }];
  vitest(
    { numPassedTests: 5, numFailedTests: 2, numPendingTests: 1, numTodoTests: 0, testResults },
    'process.exitCode = 1;',
  );
  const outcome = await npmTest();
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toContain('Could not be loaded: /x/broken.test.ts');
  expect(lastLine(outcome)).toBe('5 passed, 3 failed, 1 skipped');
});

it('the tests that failed are named at the end, each with the first line of why', async () => {
  const passed = { status: 'passed', fullName: 'folders are made', failureMessages: [] };
  const failed = {
    status: 'failed',
    fullName: 'folders are removed',
    failureMessages: ['Error: one is left\n    at x'],
  };
  const name = join(checkout.root, 'libs/x/folders.test.ts');
  vitest(
    {
      numPassedTests: 1,
      numFailedTests: 1,
      numPendingTests: 0,
      numTodoTests: 0,
      testResults: [{ name, status: 'failed', assertionResults: [passed, failed] }],
    },
    'process.exitCode = 1;',
  );
  expect((await npmTest()).stdout).toMatch(
    /\nFailed tests:\n {2}libs\/x\/folders\.test\.ts: folders are removed\n {4}Error: one is left\n\nFailed: tests\n1 passed, 1 failed\n$/,
  );
});

it('a run that leaves no report is a failure', async () => {
  vitest(undefined);
  const outcome = await npmTest();
  expect(outcome.code).toBe(1);
  expect(lastLine(outcome)).toBe('0 passed, 1 failed');
});

it('what tests could not run on this machine stands at the end, each thing once', async () => {
  const report = { numPassedTests: 1, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  vitest(
    report,
    "for (const line of ['mongod', 'docker', 'mongod']) fs.appendFileSync(process.env.PENSTOCK_NOT_RUN_FILE, line + '\\n');",
  );
  expect((await npmTest()).stdout).toMatch(/\nNot run on this machine:\n {2}mongod\n {2}docker\n1 passed, 0 failed\n$/);
});
