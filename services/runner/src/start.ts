/** Starts a runner in any process that has a bus. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { killLeftovers } from '@penstock/executor';
import { NO_RECORDS } from './attempt/attempt-records.ts';
import { openRecords } from './attempt/open-records.ts';
import { executorsOf } from './executors/executor-parts.ts';
import { capacityOf } from './executors/capacity.ts';
import { executorLabels } from './executors/executor-labels.ts';
import type { Runner, RunnerOptions } from './runner-options.ts';
import { machinePorts } from './machine-ports.ts';
import { RunnerService } from './runner.ts';

/** Resolves when the first session has begun. */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const own = join(options.dataDir, 'runner');
  mkdirSync(own, { recursive: true, mode: 0o700 });
  // P14: so that `gone` is true of all earlier sessions too.
  const executors = executorsOf(options);
  const takesUp = options.takesUp === true && executors.some(({ source }) => source.outlives);
  const records = takesUp ? openRecords(own, options.log) : NO_RECORDS;
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
