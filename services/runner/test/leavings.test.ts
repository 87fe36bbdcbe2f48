import { ArtifactsFailed } from '@penstock/artifacts';
import type { Job, ResultRequest } from '@penstock/bus';
import { failedBecause, type AttemptVerdict } from '@penstock/executor';
import { silentLogger } from '@penstock/telemetry';
import { beforeEach, describe, expect, it } from 'vitest';
import { keepLeavings } from '../src/attempt/leavings.ts';
import type { LeftByStage } from '../src/artifacts/stage-artifacts.ts';

const success = { status: 'success', exitCode: 0 } as AttemptVerdict;
const files = { manifest: 'm' } as unknown as NonNullable<ResultRequest['artifacts']>;
const report = { tests: 3 } as unknown as NonNullable<ResultRequest['report']>;
const wanted = { artifacts: {}, reports: {} } as unknown as Partial<Job>;

let remarks: string[];
beforeEach(() => (remarks = []));

interface Case {
  readonly job?: Partial<Job>;
  readonly verdict?: AttemptVerdict;
  readonly artifacts?: () => Promise<typeof files | undefined>;
  readonly reports?: () => Promise<typeof report | undefined>;
  readonly ended?: AttemptVerdict | null | undefined;
}

function keep({ job = wanted, verdict = success, artifacts, reports, ended }: Case): ReturnType<typeof keepLeavings> {
  const left = { job, ref: {}, verdict, remark: (text: string) => void remarks.push(text) } as unknown as LeftByStage;
  const keepers = {
    artifacts: { keep: artifacts ?? (() => Promise.resolve(files)) },
    reports: { keep: reports ?? (() => Promise.resolve(report)) },
    log: silentLogger(),
  };
  return keepLeavings(left, keepers, () => ended);
}

const fails = (error: Error) => () => Promise.reject(error);

describe('what a stage leaves', () => {
  it('is in its ending, as far as it asks for it and there is something', async () => {
    expect(await keep({})).toEqual({ ...success, artifacts: files, report });
    expect(await keep({ job: {} })).toEqual(success);
    expect(await keep({ artifacts: async () => undefined, reports: async () => undefined })).toEqual(success);
  });

  it('fails it where its files cannot be kept, which its log says, and a fault of the runner says no more', async () => {
    const job = { artifacts: {} } as unknown as Partial<Job>;
    expect(await keep({ job, artifacts: fails(new ArtifactsFailed('quota', 'too many files')) })).toEqual(
      failedBecause('quota'),
    );
    expect(await keep({ job, artifacts: fails(new Error('of the storage')) })).toEqual(failedBecause('artifacts'));
    expect(remarks).toEqual(['too many files', 'the files could not be kept: the runner met an error of its own']);
  });

  it('has its report kept also where its files could not be', async () => {
    const artifacts = fails(new ArtifactsFailed('artifacts', 'nothing matches'));
    expect(await keep({ artifacts })).toEqual({ ...failedBecause('artifacts'), report });
  });

  it('does not hide how a stage failed by itself', async () => {
    const verdict = failedBecause('exit', 7);
    expect(await keep({ verdict, artifacts: fails(new Error('of the storage')) })).toEqual({ ...verdict, report });
  });

  it('fails no stage for its reports', async () => {
    expect(await keep({ reports: fails(new Error('of the storage')) })).toEqual({ ...success, artifacts: files });
    expect(remarks).toEqual(['the test report could not be kept: the runner met an error of its own']);
  });

  it('is nobody’s fault where the attempt is being ended meanwhile', async () => {
    const cancelled = failedBecause('exit');
    const aborted = fails(new Error('aborted'));
    expect(await keep({ artifacts: aborted, ended: null })).toBeNull();
    expect(await keep({ reports: aborted, ended: cancelled })).toEqual(cancelled);
    expect(remarks).toEqual([]);
  });
});
