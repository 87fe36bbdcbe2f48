/** The tests of a run, stage by stage in the order of the file, out of the objects that hold them: read as far as is asked for. */
import { testCaseOf, type TestCase, type TestStatus } from '@penstock/artifacts';
import { BadUserInput } from '@penstock/errors';
import type { RunView, StageView } from '@penstock/run';
import type { KeptFiles } from './kept-files.ts';

export interface TestCaseView extends TestCase {
  readonly stage: string;
  /** Where the list goes on behind it. */
  readonly cursor: string;
}

export interface WantedCases {
  readonly stage?: string | undefined;
  readonly status?: TestStatus | undefined;
  /** A part of the suite's, the class's or the test's name, in whichever case. */
  readonly query?: string | undefined;
  readonly first: number;
  readonly after?: string | undefined;
  /** Called between pieces of work. */
  readonly pause: () => Promise<void>;
}

/** For one answer: two of the largest reports. */
const READ_BYTES_MAX = 64 * 1024 * 1024;
/** Of one test, however its texts are written. What a machine of a stranger has written may have lines of any length. */
const LINE_BYTES_MAX = 64 * 1024;
const LINE_FEED = 0x0a;

export async function testCasesOf(run: RunView, kept: KeptFiles, wanted: WantedCases): Promise<TestCaseView[]> {
  const start = placeOf(wanted.after);
  const cases: TestCaseView[] = [];
  let bytesLeft = READ_BYTES_MAX;
  for (let index = start.stage; index < run.stages.length && cases.length < wanted.first; index += 1) {
    const stage = run.stages[index];
    if (stage === undefined || !mayHold(stage, wanted)) continue;
    const offset = index === start.stage ? start.offset : 0;
    for await (const { bytes, found } of linesOf(run, stage, index, kept, offset, wanted)) {
      bytesLeft -= bytes;
      cases.push(...found.slice(0, wanted.first - cases.length));
      await wanted.pause();
      if (cases.length >= wanted.first) break;
      if (bytesLeft < 0)
        throw new BadUserInput(
          `The reports of this run have more than ${READ_BYTES_MAX / 1024 / 1024} MiB to look through: ask for one stage at a time by 'stage'.`,
        );
    }
  }
  return cases;
}

function mayHold({ name, report }: StageView, { stage, status }: WantedCases): boolean {
  if (report === undefined || (stage !== undefined && stage !== name)) return false;
  if (status === undefined) return true;
  const { total, failed, skipped } = report;
  return { passed: total - failed - skipped, failed, skipped }[status] > 0;
}

/** What each piece of the report holds of what is wanted. */
async function* linesOf(
  run: RunView,
  stage: StageView,
  index: number,
  kept: KeptFiles,
  from: number,
  wanted: WantedCases,
): AsyncGenerator<{ readonly bytes: number; readonly found: TestCaseView[] }, void> {
  const [file] = (await kept.of(run, stage.report)) ?? [];
  if (file === undefined || from >= file.sizeBytes) return;
  const fits = fitting(wanted);
  let offset = from;
  let pending: Buffer = Buffer.alloc(0);
  /** The rest of its line is passed over. */
  let isTooLong = false;
  for await (const bytes of kept.read(run.id, file, { from, to: file.sizeBytes })) {
    const all = Buffer.concat([pending, bytes]);
    const found: TestCaseView[] = [];
    let at = 0;
    for (let end = all.indexOf(LINE_FEED); end !== -1; end = all.indexOf(LINE_FEED, at)) {
      const isTest = !isTooLong && end - at <= LINE_BYTES_MAX;
      const testCase = isTest ? testCaseOf(all.toString('utf8', at, end)) : undefined;
      isTooLong = false;
      at = end + 1;
      if (testCase === undefined || !fits(testCase)) continue;
      found.push({ ...testCase, stage: stage.name, cursor: `${index}.${offset + at}` });
    }
    isTooLong ||= all.length - at > LINE_BYTES_MAX;
    if (isTooLong) at = all.length;
    offset += at;
    pending = all.subarray(at);
    yield { bytes: bytes.length, found };
  }
}

function fitting({ status, query = '' }: WantedCases): (testCase: TestCase) => boolean {
  const part = query.toLowerCase();
  return (testCase) =>
    (status === undefined || testCase.status === status) &&
    (part === '' ||
      [testCase.name, testCase.suite, testCase.className ?? ''].some((name) => name.toLowerCase().includes(part)));
}

function placeOf(after: string | undefined): { readonly stage: number; readonly offset: number } {
  if (after === undefined) return { stage: 0, offset: 0 };
  const [, stage, offset] = /^([0-9]{1,6})\.([0-9]{1,12})$/.exec(after) ?? [];
  if (stage === undefined || offset === undefined)
    throw new BadUserInput("'after' is to be the 'cursor' of a test of this run.");
  return { stage: Number(stage), offset: Number(offset) };
}
