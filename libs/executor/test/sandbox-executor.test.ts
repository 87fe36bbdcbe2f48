import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { SandboxExecutor } from '../src/sandbox/executor.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import { runExecutorSuite } from '../src/testing/executor-suite.ts';
import { runRenewedSuite } from './renewed-suite.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
const lacking = await whySandboxLacks(undefined);
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (lacking !== null && notRun !== undefined)
  appendFileSync(notRun, `the executor's contract in a sandbox: ${lacking}\n`);

// Stands in the report as skipped where there is none, so that the file is never silently empty.
it.skipIf(lacking !== null)('finds what a sandbox needs', () => expect(lacking).toBeNull());
if (lacking === null) {
  const create = (keep: string) => new SandboxExecutor({ layout: { keep, hidden: [], paths: [] }, warn: () => {} });
  runRenewedSuite('sandbox executor', { create });
  runExecutorSuite('sandbox executor', {
    create,
    contains: true,
    hasOwnDisk: true,
    owner: {
      command: (mark, deadlineMs) => [process.execPath, OWNER, mark, 'guarded', String(deadlineMs), '', 'sandbox'],
    },
  });
}
