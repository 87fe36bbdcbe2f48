/**
 * `npm test`: what is missing is installed, then types, lint, format, unused exports, boundaries and all tests but the long
 * ones run; each goes on after a failure of the one before, so that one run tells everything. With arguments
 * (`npm test -- libs/pipeline`) only those tests run. `--long` runs the long tests instead (`npm run test:long`), `--all` both (`.ci/run`).
 * The long tests that only need a processor run beside the others, and what they write is shown behind.
 *
 * The end of the output is what was not run on this machine (tests append a line to the file PENSTOCK_NOT_RUN_FILE), the tests and
 * the checks that failed, and alone on the last line the count of all tests together. The exit code is 0 only if everything passed.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { checkBoundaries, folderLines } from './boundaries.js';
import { exitLike, runChild } from './child.js';
import { withCompileCache } from './compile-cache.js';
import { ensure, root } from './ensure.js';
import { runEntry } from './errors.js';
import { closingLine, readNotRun, readReport, sumOf } from './summary.js';
import { tools } from './tools.js';

const short = { title: 'tests', config: 'vitest.config.ts' };
const long = { title: 'long tests', config: 'vitest.long.config.ts' };
const longWorlds = { ...long, project: 'worlds', title: 'long tests of the simulation' };
const longOthers = { ...long, project: '!worlds' };

/** The suites that the arguments ask for, each with those that run beside it, and the arguments that are vitest's. */
function chosen(args) {
  const rest = args.filter((each) => each !== '--long' && each !== '--all');
  const longs = rest.length > 0 ? [long] : [longOthers, longWorlds];
  if (args.includes('--all')) return { suites: [[short], longs], args: rest };
  return { suites: [args.includes('--long') ? longs : [short]], args: rest };
}

await runEntry(async () => {
  const { suites, args } = chosen(process.argv.slice(2));
  const { node, env } = await ensure({ broker: true, dashboard: true });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-test-'));
  const failed = [];
  try {
    /** A signal ends the whole run, as it does for any program. */
    const note = (title, end) => {
      if (end.signal) {
        rmSync(folder, { recursive: true, force: true });
        exitLike(end);
      }
      if (end.code !== 0) failed.push(title);
    };
    const outputOf = ({ title }) => join(folder, `${title}.txt`);
    /** What `run` writes is shown later: `run` is given where it is to go. */
    const captured = (suite, run) => {
      const output = openSync(outputOf(suite), 'w');
      return run(['ignore', output, output]).finally(() => closeSync(output));
    };
    const show = (suite) => process.stdout.write(`\n== ${suite.title}\n${readFileSync(outputOf(suite), 'utf8')}`);
    /** Side by side, for most of them use one processor. */
    const check = async (checks) => {
      const ends = await Promise.all(
        checks.map((each) => captured(each, (stdio) => runChild(node, each.args, { env, cwd: root, stdio }))),
      );
      for (const [at, each] of checks.entries()) {
        show(each);
        note(each.title, ends[at]);
      }
    };
    if (args.length === 0 && suites[0].includes(short)) {
      await check([
        { title: 'types', args: [join(root, tools.tsc), '--noEmit', '-p', root] },
        // What runs in a browser has a browser's types, and none of Node's.
        {
          title: 'types of the dashboard',
          args: [join(root, tools.tsc), '--noEmit', '-p', join(root, 'services/dashboard')],
        },
        { title: 'lint', args: [join(root, tools.oxlint)] },
        { title: 'format', args: [join(root, tools.oxfmt), '--check'] },
        { title: 'unused', args: [join(root, tools.knip), '--no-progress', '--no-config-hints'] },
      ]);
      process.stdout.write('\n== boundaries\n');
      const findings = checkBoundaries(root);
      process.stdout.write(findings.length === 0 ? 'Every import keeps to its package.\n' : `${findings.join('\n')}\n`);
      process.stdout.write(
        folderLines(root)
          .map((line) => `  ${line}\n`)
          .join(''),
      );
      if (findings.length > 0) failed.push('boundaries');
    }
    const notRunFile = join(folder, 'not-run');
    writeFileSync(notRunFile, '');
    const counted = [];
    const reportOf = ({ title }) => join(folder, `${title}.json`);
    const suiteRun = (suite, stdio) => {
      const { config, project } = suite;
      const projects = project ? [`--project=${project}`] : [];
      const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportOf(suite)}`];
      return runChild(
        node,
        [join(root, tools.vitest), 'run', `--config=${join(root, config)}`, ...projects, ...reporters, ...args],
        // Each file's process loads the same dependencies, and many tests start further ones.
        { env: { ...withCompileCache(env, root), PENSTOCK_NOT_RUN_FILE: notRunFile }, cwd: root, stdio },
      );
    };
    for (const [first, ...others] of suites) {
      process.stdout.write(`\n== ${first.title}\n`);
      const ends = await Promise.all([
        suiteRun(first, 'inherit'),
        ...others.map((each) => captured(each, (stdio) => suiteRun(each, stdio))),
      ]);
      for (const each of others) show(each);
      for (const [at, suite] of [first, ...others].entries()) {
        note(suite.title, ends[at]);
        const counts = readReport(reportOf(suite));
        if (counts.failed > 0 && !failed.includes(suite.title)) failed.push(suite.title);
        counted.push(counts);
      }
    }
    const counts = sumOf(counted);
    const notRun = readNotRun(notRunFile);
    if (notRun.length > 0)
      process.stdout.write(`\nNot run on this machine:\n${notRun.map((line) => `  ${line}\n`).join('')}`);
    if (counts.failures.length > 0) process.stdout.write('\nFailed tests:\n');
    for (const { file, name, why } of counts.failures)
      process.stdout.write(`  ${relative(root, file)}: ${name}\n    ${why}\n`);
    for (const file of counts.unloaded) process.stdout.write(`Could not be loaded: ${file}\n`);
    if (failed.length > 0) process.stdout.write(`\nFailed: ${failed.join(', ')}\n`);
    process.stdout.write(`${closingLine(counts)}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.exitCode = failed.length > 0 ? 1 : 0;
});
