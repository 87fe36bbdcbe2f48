/** Reads vitest's JSON reports into counts; the closing line of `npm test` is made of them. */
import { readFileSync } from 'node:fs';

/**
 * @returns `{ passed, failed, skipped, unloaded }`: counts of tests, and the files that could not be loaded (each counts as one
 *   failed test, for none of its tests could speak up). No readable report is one failure: the run itself broke.
 */
export function readReport(file) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, skipped: 0, unloaded: [] };
  }
  const unloaded = report.testResults
    .filter((each) => each.status === 'failed' && each.assertionResults.length === 0)
    .map((each) => each.name);
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests,
    unloaded,
  };
}

/** The counts of several runs together. */
export function sumOf(counted) {
  const sum = { passed: 0, failed: 0, skipped: 0, unloaded: [] };
  for (const { passed, failed, skipped, unloaded } of counted) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    sum.unloaded.push(...unloaded);
  }
  return sum;
}

export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** The lines that tests wrote about what this machine could not run, each once, in order. */
export function readNotRun(file) {
  try {
    return [
      ...new Set(
        readFileSync(file, 'utf8')
          .split('\n')
          .map((line) => line.trim())
          .filter(Boolean),
      ),
    ];
  } catch {
    return [];
  }
}
