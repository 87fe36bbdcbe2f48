/** Starts a runner in any process that has a bus. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { lockFolder, type FolderLock } from '@penstock/async';
import { killLeftovers } from '@penstock/executor';
import { NO_RECORDS } from './attempt/attempt-records.ts';
import { openRecords } from './attempt/open-records.ts';
import { executorsOf } from './executors/executor-parts.ts';
import { capacityOf } from './executors/capacity.ts';
import { executorLabels } from './executors/executor-labels.ts';
import type { Runner, RunnerOptions } from './runner-options.ts';
import { machinePorts } from './machine-ports.ts';
import { RunnerService } from './runner.ts';
import { RunnerFolderInUse } from './workspace/errors.ts';

/** Resolves when the first session has begun. Throws RunnerFolderInUse, NotIsolated, and what passes by itself. */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const own = join(options.dataDir, 'runner');
  mkdirSync(own, { recursive: true, mode: 0o700 });
  // Before anything is ended that an earlier start has left: who has it is alive.
  const lock = lockFolder(own, (holder, cause) => new RunnerFolderInUse(options.dataDir, holder, { cause }));
  try {
    return await startLocked(options, own, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(options: RunnerOptions, own: string, lock: FolderLock): Promise<Runner> {
  // P14: so that `gone` is true of all earlier sessions too.
  const executors = executorsOf(options);
  const takesUp = options.takesUp === true && executors.some(({ source }) => source.outlives);
  const records = takesUp ? openRecords(own, lock, options.log) : { ...NO_RECORDS, close: (): void => lock.release() };
  try {
    for (const { source, parts } of executors) {
      await killLeftovers(parts.leftoversFile);
      await source.sweep?.(
        parts,
        records.earlier.map(({ notes }) => notes),
      );
    }
  } catch (error) {
    records.close();
    throw error;
  }
  const found = executorLabels(
    executors.map(({ source }) => source),
    options.untrustedIsolation ?? 'none',
  );
  const labelled = {
    ...options,
    labels: [...new Set([...options.labels, ...found])].toSorted(),
    capacity: options.capacity ?? capacityOf(executors.map(({ source }) => source)),
  };
  const runner = new RunnerService(labelled, machinePorts(labelled, own, records));
  await runner.begin();
  return runner;
}
