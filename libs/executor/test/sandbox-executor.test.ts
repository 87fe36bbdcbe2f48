import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { it } from 'vitest';
import { SandboxExecutor } from '../src/sandbox/executor.ts';
import { whySandboxLacks } from '../src/sandbox/probe.ts';
import { runExecutorSuite } from '../src/testing/executor-suite.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
const lacking = await whySandboxLacks(undefined);
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (lacking !== null && notRun !== undefined)
  appendFileSync(notRun, `the executor's contract in a sandbox: ${lacking}\n`);

if (lacking === null)
  runExecutorSuite('sandbox executor', {
    create: (keep) => new SandboxExecutor({ layout: { keep, hidden: [], paths: [] }, warn: () => {} }),
    contains: true,
    hasOwnDisk: true,
    owner: {
      command: (mark, deadlineMs) => [process.execPath, OWNER, mark, 'guarded', String(deadlineMs), '', 'sandbox'],
    },
  });
else it.skip('keeps the contract of the executors', () => {});
