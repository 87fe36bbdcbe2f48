/**
 * How the tests of a stage went, as its files say: found and parsed in a process of its own (`report-reader.ts`), checked and masked
 * here. Nothing that the files hold makes a stage fail: what cannot be read is told in its log.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ArtifactsFailed } from '../errors.ts';
import { ReadingProcess } from '../reading/reading-process.ts';
import type { NotRead, ReportRequest } from './report-frames.ts';
import {
  MARGIN_LENGTH,
  MESSAGE_LENGTH_MAX,
  NAME_LENGTH_MAX,
  shortened,
  testCaseOf,
  type TestCase,
  type TestCounts,
} from './test-case.ts';

export interface ReadReportOptions {
  /** An absolute path; it may be a stranger's folder. */
  readonly folder: string;
  readonly patterns: readonly string[];
  /** Whose rights it is read with; absent: those of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Takes secret values out of a text. */
  readonly mask: (text: string) => string;
  /** Takes a line for the stage's log. */
  readonly remark: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface TestReport extends TestCounts {
  /** One test a line, as JSON. */
  readonly content: Buffer;
}

const READER = fileURLToPath(new URL('report-reader.ts', import.meta.url));
const REPORT_LIMITS = {
  filesMax: 10_000,
  bytesMax: 64 * 1024 * 1024,
  casesMax: 100_000,
  /** Of the content. */
  reportBytesMax: 32 * 1024 * 1024,
} as const;
/** Of the reading process: several times what its largest report takes. */
const HEAP_MB_MAX = 512;
/** Far more than a report of the largest size takes on a busy machine. */
const READ_MS_MAX = 300_000;
/** Told one by one in the stage's log. */
const TOLD_MAX = 10;
const TOLD_LENGTH_MAX = 200;
/** Tests that are checked and masked without a pause. */
const CASES_AT_ONCE = 500;

/** Undefined: there is nothing to keep. @throws the signal's reason */
export async function readReport(options: ReadReportOptions): Promise<TestReport | undefined> {
  const { remark, signal } = options;
  try {
    const { lines, notRead } = await readLines(options);
    const report = await checkedReport(lines, options.mask, signal);
    for (const line of remarksOn(report, notRead, options)) remark(line);
    return report.total === 0 ? undefined : report;
  } catch (error) {
    signal.throwIfAborted();
    const why = error instanceof ArtifactsFailed ? error.message : isTimeout(error) ? 'it took too long' : undefined;
    if (why === undefined) throw error;
    remark(`the test reports could not be read: ${why}`);
    return undefined;
  }
}

async function readLines({
  folder,
  patterns,
  user,
  signal,
}: ReadReportOptions): Promise<{ readonly lines: Buffer; readonly notRead: NotRead }> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(READ_MS_MAX)]);
  const reading = new ReadingProcess(READER, bounded, [`--max-old-space-size=${HEAP_MB_MAX}`]);
  try {
    reading.ask({ path: folder, user, patterns, ...REPORT_LIMITS } satisfies ReportRequest);
    const parts: Buffer[] = [];
    let bytes = 0;
    let notRead: NotRead | undefined;
    for (let next = await reading.next(); next !== undefined; next = await reading.next()) {
      if (next.kind === 'list') notRead = JSON.parse(next.bytes.toString('utf8')) as NotRead;
      else parts.push(Buffer.from(next.bytes));
      bytes += next.bytes.length;
      // It has the rights of a stranger, and keeps to its bounds as far as nobody has made another of it.
      if (bytes > 2 * REPORT_LIMITS.reportBytesMax) throw reading.died();
    }
    if (notRead === undefined) throw reading.died();
    return { lines: Buffer.concat(parts), notRead };
  } finally {
    await reading.close();
  }
}

interface CheckedReport extends TestReport {
  readonly failures: readonly TestCase[];
}

async function checkedReport(
  lines: Buffer,
  mask: (text: string) => string,
  signal: AbortSignal,
): Promise<CheckedReport> {
  const counts = { total: 0, failed: 0, skipped: 0 };
  const failures: TestCase[] = [];
  const kept: Buffer[] = [];
  let seconds = 0;
  for (let from = 0; from < lines.length && counts.total < REPORT_LIMITS.casesMax;) {
    const to = lines.indexOf('\n', from);
    if (to === -1) break;
    const read = testCaseOf(lines.toString('utf8', from, to), MARGIN_LENGTH);
    from = to + 1;
    if (read === undefined) continue;
    const testCase = maskedCase(read, mask);
    kept.push(Buffer.from(`${JSON.stringify(testCase)}\n`));
    counts.total += 1;
    seconds += testCase.durationSecs;
    if (testCase.status === 'skipped') counts.skipped += 1;
    if (testCase.status === 'failed') {
      counts.failed += 1;
      if (failures.length < TOLD_MAX) failures.push(testCase);
    }
    if (counts.total % CASES_AT_ONCE !== 0) continue;
    await nextTurn();
    signal.throwIfAborted();
  }
  const durationMs = Math.min(Math.round(seconds * 1000), Number.MAX_SAFE_INTEGER);
  return { ...counts, durationMs, content: Buffer.concat(kept), failures };
}

function maskedCase({ suite, className, name, message, ...rest }: TestCase, mask: (text: string) => string): TestCase {
  const whole = (text: string, lengthMax: number): string => {
    const masked = mask(text);
    return shortened(text.length > lengthMax ? `${masked.slice(0, -MARGIN_LENGTH)}…` : masked, lengthMax);
  };
  return {
    suite: whole(suite, NAME_LENGTH_MAX),
    ...(className === undefined ? {} : { className: whole(className, NAME_LENGTH_MAX) }),
    name: whole(name, NAME_LENGTH_MAX),
    ...rest,
    ...(message === undefined ? {} : { message: whole(message, MESSAGE_LENGTH_MAX) }),
  };
}

function* remarksOn(
  { total, failed, skipped, failures }: CheckedReport,
  { files, hasMoreFiles, isFull, missed, missedCount }: NotRead,
  { patterns, mask }: Pick<ReadReportOptions, 'patterns' | 'mask'>,
): Generator<string> {
  for (const { path, why } of missed.slice(0, TOLD_MAX))
    yield mask(`${JSON.stringify(shortened(path, TOLD_LENGTH_MAX))} is not in the test report: ${why}`);
  const more = missedCount - Math.min(missed.length, TOLD_MAX);
  if (more > 0) yield `${more} more are not in the test report`;
  if (hasMoreFiles) yield `more than ${REPORT_LIMITS.filesMax} files match: the others are not in the test report`;
  if (isFull) yield `the test report is full with ${total} tests: the others are not in it`;
  if (files === 0 && missedCount === 0)
    yield `no file matches 'reports' (${patterns.slice(0, 3).join(', ')}${patterns.length > 3 ? ', …' : ''})`;
  if (total === 0) return;
  yield `tests: ${countsText({ total, failed, skipped })}`;
  for (const { suite, name } of failures)
    yield `failed: ${shortened([suite, name].filter((part) => part !== '').join(' > '), TOLD_LENGTH_MAX)}`;
  if (failed > failures.length) yield `and ${failed - failures.length} more failed`;
}

/** `118 passed, 2 failed` */
function countsText({ total, failed, skipped }: Omit<TestCounts, 'durationMs'>): string {
  const counts = [
    [total - failed - skipped, 'passed'],
    [failed, 'failed'],
    [skipped, 'skipped'],
  ] as const;
  return counts
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ');
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
