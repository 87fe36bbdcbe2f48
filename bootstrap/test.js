/**
 * `npm test`: what is missing is installed, then types, lint, format, unused exports, boundaries and all tests run; each goes on after
 * a failure of the one before, so that one run tells everything. With arguments (`npm test -- libs/pipeline`) only those tests run.
 *
 * The end of the output is what was not run on this machine (tests append a line to the file PENSTOCK_NOT_RUN_FILE), the checks
 * that failed, and alone on the last line the count of tests. The exit code is 0 only if everything passed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkBoundaries, folderLines } from './boundaries.js';
import { exitLike, runChild } from './child.js';
import { ensure, root } from './ensure.js';
import { runEntry } from './errors.js';
import { closingLine, readNotRun, readReport } from './summary.js';
import { tools } from './tools.js';

await runEntry(async () => {
  const args = process.argv.slice(2);
  const { node, env } = await ensure({ broker: true });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-test-'));
  const failed = [];
  try {
    /** Runs a stage to its end; a signal ends the whole run, as it does for any program. */
    const stage = async (title, stageArgs, stageEnv = env) => {
      process.stdout.write(`\n== ${title}\n`);
      const end = await runChild(node, stageArgs, { env: stageEnv, cwd: root });
      if (end.signal) {
        rmSync(folder, { recursive: true, force: true });
        exitLike(end);
      }
      if (end.code !== 0) failed.push(title);
    };
    if (args.length === 0) {
      await stage('types', [join(root, tools.tsc), '--noEmit', '-p', root]);
      await stage('lint', [join(root, tools.oxlint)]);
      await stage('format', [join(root, tools.oxfmt), '--check']);
      await stage('unused', [join(root, tools.knip), '--no-progress', '--no-config-hints']);
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
    const report = join(folder, 'report.json');
    const notRunFile = join(folder, 'not-run');
    writeFileSync(notRunFile, '');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    await stage('tests', [join(root, tools.vitest), 'run', ...reporters, ...args], {
      ...env,
      PENSTOCK_NOT_RUN_FILE: notRunFile,
    });
    const counts = readReport(report);
    const notRun = readNotRun(notRunFile);
    if (notRun.length > 0)
      process.stdout.write(`\nNot run on this machine:\n${notRun.map((line) => `  ${line}\n`).join('')}`);
    for (const file of counts.unloaded) process.stdout.write(`Could not be loaded: ${file}\n`);
    if (counts.failed > 0 && !failed.includes('tests')) failed.push('tests');
    if (failed.length > 0) process.stdout.write(`\nFailed: ${failed.join(', ')}\n`);
    process.stdout.write(`${closingLine(counts)}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.exitCode = failed.length > 0 ? 1 : 0;
});
