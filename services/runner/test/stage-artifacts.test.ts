/** What the log says of a stage's artifacts. */
import type { Job } from '@penstock/bus';
import type { AttemptVerdict } from '@penstock/executor';
import { expect, it } from 'vitest';
import { StageArtifacts, type LeftByStage } from '../src/artifacts/stage-artifacts.ts';

it('says of what matches and is not kept why, also where that could not be brought out of where the stage ran', async () => {
  const remarks: string[] = [];
  const listing = {
    files: [],
    leftOut: [{ path: 'dist/link', why: 'it is a link to no file' }],
    leftOutCount: 1,
    folders: [],
  };
  const artifacts = new StageArtifacts({
    storage: () => Promise.reject(new Error('nothing is stored')),
    collect: async () => ({ listing, read: noBytes, lend: noBytes, close: async () => {} }),
  });
  const left = {
    job: { artifacts: { paths: ['dist/**'], when: 'always', required: false } } as unknown as Job,
    folder: '/left',
    notTaken: { leftOut: [{ path: 'dist/pipe', why: 'it is no file' }], leftOutCount: 3 },
    verdict: { status: 'success', exitCode: 0 } as AttemptVerdict,
    signal: new AbortController().signal,
    remark: (text: string) => void remarks.push(text),
    mask: (text: string) => text,
  } as unknown as LeftByStage;
  expect(await artifacts.keep(left)).toBeUndefined();
  expect(remarks).toEqual([
    '"dist/pipe" is not kept: it is no file',
    '"dist/link" is not kept: it is a link to no file',
    '2 more are not kept',
    "no file matches 'artifacts' (dist/**): nothing is kept",
  ]);
});

async function* noBytes(): AsyncGenerator<Uint8Array, void> {}
