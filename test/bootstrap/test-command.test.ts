import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serverScript } from './archives.ts';
import { Checkout } from './checkout.ts';
import type { Outcome } from './checkout.ts';

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
  checkout.script('bin/nats-server', serverScript('2.15.1'));
  tool('typescript/bin/tsc', 'console.log("types run");');
  tool('oxlint/bin/oxlint', 'console.log("lint run");');
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

it('types, lint, boundaries and tests run in this order, and the last line is the count alone', async () => {
  const outcome = await npmTest();
  expect(outcome.code, outcome.stderr).toBe(0);
  expect(outcome.stdout.replaceAll('\n', ' ')).toMatch(
    /== types types run .*== lint lint run .*== boundaries .*== tests vitest run /,
  );
  expect(lastLine(outcome)).toBe('12 passed, 0 failed');
});

it('with arguments only those tests run', async () => {
  const outcome = await npmTest('libs/pipeline');
  expect(outcome.stdout).toContain('vitest run libs/pipeline');
  expect(outcome.stdout).not.toContain('types run');
});

it('a failing check fails the command and lets the others speak', async () => {
  tool('typescript/bin/tsc', 'process.exitCode = 2;');
  const outcome = await npmTest();
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toContain('lint run');
  expect(outcome.stdout).toContain('Failed: types\n');
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

describe('boundaries', () => {
  const manifest = (name: string, dependencies: object = {}): string =>
    JSON.stringify({ name, exports: { '.': './src/index.ts' }, dependencies });
  const findings = async (): Promise<string[]> =>
    (await npmTest()).stdout.split('== boundaries\n')[1]?.split('\n\n==')[0]?.split('\n') ?? [];

  it('a package imports what it lists, by name, and its tests what the root has for development', async () => {
    checkout.write(
      'package.json',
      JSON.stringify({ name: 'sandbox', type: 'module', workspaces: ['libs/*'], devDependencies: { vitest: '1' } }),
    );
    checkout.write('libs/a/package.json', manifest('@x/a', { '@x/b': '1' }));
    checkout.write('libs/b/package.json', manifest('@x/b'));
    checkout.write(
      'libs/a/src/index.ts',
      "import { b } from '@x/b';\nimport fs from 'node:fs';\nimport './other.ts';\n// import 'not-listed';\nconst text = `import 'not-listed' ${b}` + \"import 'not-listed'\";\n",
    );
    checkout.write('libs/a/test/a.test.ts', "import { test } from 'vitest';\nimport { a } from '../src/index.ts';\n");
    checkout.write(
      'test/e2e/x.test.ts',
      "import { a } from '@x/a';\nimport { b } from '@x/b';\nimport '../support/x.ts';\n",
    );
    expect(await findings()).toEqual(['Every import keeps to its package.']);
  });

  it('an unlisted package, a path out of the package and an unexported path are refused, with their place', async () => {
    checkout.write('libs/a/package.json', manifest('@x/a', { '@x/b': '1' }));
    checkout.write('libs/b/package.json', manifest('@x/b'));
    checkout.write(
      'libs/a/src/index.ts',
      "import type {\n  T,\n} from 'left-pad';\nexport * from '../../b/src/index.ts';\nimport '@x/b/src/inner.ts';\nconst late = await import('@x/c');\nimport { test } from 'vitest';\n",
    );
    checkout.write('test/x.test.ts', "import '../libs/a/src/index.ts';\n");
    expect(await findings()).toEqual([
      'libs/a/src/index.ts:1: imports left-pad, which libs/a/package.json does not list',
      'libs/a/src/index.ts:4: imports ../../b/src/index.ts, which is outside libs/a: import the package by its name',
      'libs/a/src/index.ts:5: imports @x/b/src/inner.ts, which @x/b does not export',
      'libs/a/src/index.ts:6: imports @x/c, which libs/a/package.json does not list',
      'libs/a/src/index.ts:7: imports vitest, which libs/a/package.json does not list',
      'test/x.test.ts:1: imports ../libs/a/src/index.ts, which is outside test: import the package by its name',
    ]);
  });

  it('the pure libraries have no clock, chance, timer or I/O in their sources, and may in their tests', async () => {
    const impure =
      "import fs from 'node:fs';\nimport type { Buffer } from 'node:buffer';\nconst now = Date.now();\nconst today = new Date();\nconst then = new Date(now);\nconst chance = Math.random();\nsetTimeout(() => {}, 1);\n";
    checkout.write('libs/run/package.json', manifest('@x/run', { execa: '1' }));
    checkout.write('libs/run/src/index.ts', `${impure}import { execa } from 'execa';\n`);
    checkout.write('libs/run/test/a.test.ts', impure);
    const found = await findings();
    expect(
      found.map((line) =>
        line.replace(/^libs\/run\/src\/index.ts:(\d+): libs\/run is pure and may not (import|use) /, '$1 '),
      ),
    ).toEqual([
      '1 node:fs',
      '8 execa',
      '3 Date.now: take it as data',
      '4 new Date without an argument: take it as data',
      '6 Math.random: take it as data',
      '7 a timer: take it as data',
    ]);
  });
});
