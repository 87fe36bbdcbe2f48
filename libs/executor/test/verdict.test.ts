import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { judgeAttempt, type AttemptVerdict } from '../src/attempt/verdict.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-verdict-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function judged(text: string, code = 0): { readonly verdict: AttemptVerdict; readonly remarks: readonly string[] } {
  const outputFile = join(folder, 'output');
  writeFileSync(outputFile, text);
  const remarks: string[] = [];
  const remark = (line: string): void => void remarks.push(line);
  const attempt = { timeoutMs: 1_000, outputFile, declared: ['a'], remark };
  return { verdict: judgeAttempt({ kind: 'exit', code }, attempt), remarks };
}

describe('the outputs of an attempt', () => {
  it.each([
    ['values', `a=${'x'.repeat(64 * 1024)}\n`, /take 65537 bytes; 65536 are kept/],
    ['values in UTF-8', `a=${'ä'.repeat(32 * 1024)}\n`, /take 65537 bytes/],
    ['a file', 'x'.repeat(300_000), /holds 300000 bytes/],
  ])('that are too large (%s) fail it as a quota, which is never retried', (_, text, remark) => {
    const { verdict, remarks } = judged(text);
    expect(verdict).toEqual({ status: 'failed', reason: 'quota' });
    expect(remarks).toEqual([expect.stringMatching(remark)]);
  });

  it('that cannot be read fail it as an exit, and its log says which line', () => {
    const { verdict, remarks } = judged('a=1\nnonsense\n');
    expect(verdict).toEqual({ status: 'failed', reason: 'exit', exitCode: 0 });
    expect(remarks).toEqual([expect.stringContaining('line 2 of $SERVICE_OUTPUT')]);
  });

  it('change nothing about one that has failed by itself', () => {
    const failed = { status: 'failed', reason: 'exit', exitCode: 3 };
    expect(judged('nonsense', 3).verdict).toEqual(failed);
    expect(judged('x'.repeat(300_000), 3).verdict).toEqual(failed);
  });

  it('of 64 KiB are kept', () => {
    const value = 'x'.repeat(64 * 1024 - 1);
    expect(judged(`a=${value}\n`).verdict).toEqual({ status: 'success', exitCode: 0, outputs: { a: value } });
  });
});
