import { fileURLToPath } from 'node:url';
import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { runExecutorSuite } from '../src/testing/executor-suite.ts';
import { runRenewedSuite } from './renewed-suite.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
const ways: readonly Isolation[] =
  process.getuid?.() === 0 ? ['namespace', 'user-namespace', 'group'] : ['user-namespace', 'group'];
for (const [at, isolation] of ways.entries()) {
  const isBest = at === 0;
  const create = () => new ProcessExecutor({ isolations: [isolation], warn: () => {} });
  runRenewedSuite(`process executor, ${isolation}`, { create });
  runExecutorSuite(`process executor, ${isolation}`, {
    create,
    contains: isolation !== 'group',
    // Their output goes the same way.
    ...(isBest ? {} : { loudBytes: 20_000_000 }),
    hasOwnDisk: true,
    owner: isBest
      ? { command: (mark, deadlineMs) => [process.execPath, OWNER, mark, 'guarded', String(deadlineMs), '', 'process'] }
      : undefined,
  });
}

if (process.getuid?.() === 0)
  runExecutorSuite('process executor, as a user of its own', {
    create: () => new ProcessExecutor({ hasUsers: true, isolations: ['namespace'], warn: () => {} }),
    contains: true,
    spec: { user: { uid: 330_101, gid: 330_101 } },
    loudBytes: 20_000_000,
  });

if (process.platform === 'linux') {
  const create = () =>
    new ProcessExecutor({ isolations: ['user-namespace'], sharesRights: true, forksAhead: true, warn: () => {} });
  runRenewedSuite('process executor, as in a local run', { create });
  runExecutorSuite('process executor, as in a local run', {
    create,
    contains: true,
    loudBytes: 20_000_000,
    hasOwnDisk: true,
  });
}
