/**
 * A process of its own that reads a stage's reports with the rights of its user and no others: the runner may be root, and both
 * the files and what a parser makes of them are a stranger's. It is asked once, by a line of JSON, and answers by frames: `data` is
 * one test a line, `list` says what was not read.
 *
 * It ends with its parent: at the end of its input.
 */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { enterFolder, fail, send } from '../reading/child.ts';
import { FRAME_BYTES } from '../reading/frames.ts';
import { Patterns } from '../reading/patterns.ts';
import { findFiles, openFile, WalkTooLarge, type LeftOut } from '../reading/walk.ts';
import { JUnitReader, MalformedReport } from './junit.ts';
import type { NotRead, ReportRequest } from './report-frames.ts';
import type { TestCase } from './test-case.ts';
import { textDecoding } from './text-decoding.ts';

const TOLD_MAX = 20;
const buffer = Buffer.allocUnsafe(1024 * 1024);

class CasesFull extends Error {}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
for await (const line of lines) answer(JSON.parse(line) as ReportRequest);

function answer(request: ReportRequest): void {
  const folder = enterFolder(request);
  if (folder === undefined) return fail('artifacts', 'the working folder cannot be read any more');
  try {
    const notRead = readAll(folder, request);
    send('list', Buffer.from(JSON.stringify(notRead)));
    send('end');
  } catch (error) {
    if (!(error instanceof WalkTooLarge)) throw error;
    fail('artifacts', error.message);
  }
}

function readAll(folder: number, { patterns, filesMax, bytesMax, casesMax, reportBytesMax }: ReportRequest): NotRead {
  const { found, leftOut } = findFiles(folder, new Patterns(patterns), filesMax);
  const missed: LeftOut[] = [...leftOut];
  let bytes = 0;
  let cases = 0;
  let reportBytes = 0;
  let isFull = false;
  for (const { path, at } of found.slice(0, filesMax)) {
    const kept: Buffer[] = [];
    let keptBytes = 0;
    const take = ({ message, ...testCase }: TestCase): void => {
      // Where there is much to say the tests themselves are worth more than why they failed.
      const isTold = message !== undefined && reportBytes + keptBytes < reportBytesMax / 2;
      const text = Buffer.from(`${JSON.stringify(isTold ? { ...testCase, message } : testCase)}\n`);
      if (cases + kept.length >= casesMax || reportBytes + keptBytes + text.length > reportBytesMax)
        throw new CasesFull();
      kept.push(text);
      keptBytes += text.length;
    };
    const file = openFile(folder, at);
    try {
      if (file === undefined) throw new MalformedReport('it cannot be read');
      const { size } = fstatSync(file);
      if (size > bytesMax - bytes)
        throw new MalformedReport(`it has ${size} bytes; the reports of a stage may have ${bytesMax} together`);
      bytes += readFile(file, bytesMax - bytes, take);
    } catch (error) {
      if (error instanceof CasesFull) isFull = true;
      else if (error instanceof MalformedReport) {
        missed.push({ path, why: error.message });
        continue;
      } else throw error;
    } finally {
      if (file !== undefined) closeSync(file);
    }
    sendAll(kept);
    cases += kept.length;
    reportBytes += keptBytes;
    if (isFull) break;
  }
  return {
    files: found.length,
    hasMoreFiles: found.length > filesMax,
    isFull,
    missed: missed.slice(0, TOLD_MAX),
    missedCount: missed.length,
  };
}

/** How many bytes it had. */
function readFile(file: number, bytesMax: number, take: (testCase: TestCase) => void): number {
  const reader = new JUnitReader(take);
  let decode: ReturnType<typeof textDecoding> | undefined;
  let at = 0;
  for (;;) {
    const read = readSync(file, buffer, 0, buffer.length, at);
    const bytes = buffer.subarray(0, read);
    decode ??= textDecoding(bytes);
    reader.write(decode(bytes, read === 0));
    if (read === 0) break;
    at += read;
    // A file that grows while it is read has no end.
    if (at > bytesMax) throw new MalformedReport('it grows while it is read');
  }
  reader.end();
  return at;
}

function sendAll(texts: readonly Buffer[]): void {
  let waiting: Buffer[] = [];
  let length = 0;
  const flush = (): void => {
    if (length > 0) send('data', Buffer.concat(waiting));
    waiting = [];
    length = 0;
  };
  for (const text of texts) {
    if (length + text.length > FRAME_BYTES) flush();
    waiting.push(text);
    length += text.length;
  }
  flush();
}
