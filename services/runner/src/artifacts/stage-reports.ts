/**
 * How a stage's tests went, kept once its processes are gone and before its result is told, as its artifacts are: the tests as one
 * object, and a list that names it. No stage fails for it: what goes wrong is told in its log.
 */
import { createHash } from 'node:crypto';
import { encodeManifest, isKeptAfter, readReport, type TestReport } from '@penstock/artifacts';
import type { ResultRequest } from '@penstock/bus';
import { ServiceError } from '@penstock/errors';
import { StorageCalls } from './storage-calls.ts';
import type { StorageLine } from './storage-line.ts';
import type { LeftByStage } from './stage-artifacts.ts';

export interface StageReportsOptions {
  readonly storage: StorageLine;
}

/** What the list calls it. */
const CONTENT_NAME = 'tests.jsonl';

export class StageReports {
  readonly #options: StageReportsOptions;

  constructor(options: StageReportsOptions) {
    this.#options = options;
  }

  /** Undefined: there is no report. @throws the signal's reason */
  async keep(left: LeftByStage): Promise<ResultRequest['report']> {
    const { job, folder, fault, user, verdict, signal, remark, mask } = left;
    if (job.reports === undefined || !isKeptAfter('always', verdict)) return undefined;
    if (fault !== undefined) {
      remark(`there is no test report: ${fault}`);
      return undefined;
    }
    const report = await readReport({ folder, patterns: job.reports.junit, user, mask, remark, signal });
    return report === undefined ? undefined : await this.#store(left, report);
  }

  async #store({ job, ref, signal, remark }: LeftByStage, report: TestReport): Promise<ResultRequest['report']> {
    const { content, total, failed, skipped, durationMs } = report;
    const calls = new StorageCalls(this.#options.storage, { ref, partition: job.partition }, signal);
    const sha256 = createHash('sha256').update(content).digest('hex');
    try {
      await calls.begin(1, content.length);
      await calls.store(sha256, content.length, () => oneByOne(content));
      const file = { path: CONTENT_NAME, sizeBytes: content.length, sha256, executable: false };
      const sealed = await calls.seal(encodeManifest([file]));
      return { manifest: sealed.sha256, files: sealed.files, bytes: sealed.bytes, total, failed, skipped, durationMs };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      remark(`the test report could not be kept: ${error.message}`);
      return undefined;
    }
  }
}

async function* oneByOne(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}
