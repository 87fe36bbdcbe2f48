/** The tests of a run, out of lists that a machine has written which nobody here has looked at. */
import type { RunView } from '@penstock/run';
import { expect, it } from 'vitest';
import type { KeptFiles } from '../src/artifacts/kept-files.ts';
import { testCasesOf } from '../src/artifacts/test-cases.ts';
import { runIdFor } from './harness.ts';

const PIECE_BYTES = 100_000;

function reported(text: string) {
  const bytes = Buffer.from(text);
  const file = { path: 'tests', sizeBytes: bytes.length, sha256: '', executable: false };
  const kept = {
    of: async () => [file],
    async *read(_runId: string, _file: unknown, { from, to } = { from: 0, to: bytes.length }) {
      for (let at = from; at < to; at += PIECE_BYTES) yield bytes.subarray(at, Math.min(to, at + PIECE_BYTES));
    },
  } as unknown as KeptFiles;
  const report = { manifest: '', expiresAt: Infinity, total: 3, failed: 0, skipped: 0, durationMs: 1 };
  const run = { id: runIdFor(), stages: [{ name: 'test', report }] } as unknown as RunView;
  const casesOf = (after?: string) => testCasesOf(run, kept, { first: 10, after, pause: async () => {} });
  return { casesOf };
}

const line = (name: string): string => `${JSON.stringify({ suite: 's', name, status: 'passed', durationSecs: 1 })}\n`;

it('a line that is longer than any test can be is none, however long it is, and those around it are found', async () => {
  const ofLengths = (...lengths: readonly number[]): string =>
    lengths.map((length, index) => line(`${index} ${'x'.repeat(length)}`)).join('');
  const { casesOf } = reported(ofLengths(1, 5_000_000, 2, 70_000, 3, 150_000, 4));
  const cases = await casesOf();
  expect(cases.map(({ name }) => name)).toEqual(['0 x', '2 xx', '4 xxx', '6 xxxx']);
  const rest = await casesOf(cases[1]?.cursor);
  expect(rest.map(({ name }) => name)).toEqual(['4 xxx', '6 xxxx']);
});
