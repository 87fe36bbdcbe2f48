/** Reads vitest's JSON reports into counts and the names of what failed; the end of `npm test`'s output is made of them. */
import { readFileSync } from 'node:fs';

/** Of a failure's message at the end of the output, in characters; the whole stands where the test ran. */
const WHY_MAX = 300;

/**
 * @returns `{ passed, failed, skipped, unloaded, failures }`: counts of tests, the files that could not be loaded (each counts as
 *   one failed test, for none of its tests could speak up), and of each failed test `{ file, name, why }`, `why` the first line of
 *   its message. No readable report is one failure: the run itself broke.
 */
export function readReport(file) {
  let report;
  try {
    report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return { passed: 0, failed: 1, skipped: 0, unloaded: [], failures: [] };
  }
  const unloaded = report.testResults
    .filter((each) => each.status === 'failed' && each.assertionResults.length === 0)
    .map((each) => each.name);
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded.length,
    skipped: report.numPendingTests + report.numTodoTests,
    unloaded,
    failures: report.testResults.flatMap(({ name: file, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'failed')
        .map(({ fullName, failureMessages }) => ({ file, name: fullName, why: firstLine(failureMessages[0] ?? '') })),
    ),
  };
}

function firstLine(message) {
  return message.split('\n', 1)[0].slice(0, WHY_MAX);
}

/** The counts of several runs together. */
export function sumOf(counted) {
  const sum = { passed: 0, failed: 0, skipped: 0, unloaded: [], failures: [] };
  for (const { passed, failed, skipped, unloaded, failures } of counted) {
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    sum.unloaded.push(...unloaded);
    sum.failures.push(...failures);
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
