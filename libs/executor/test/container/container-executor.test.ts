import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ContainerExecutor } from '../../src/container/container-executor.ts';
import { sweepContainers } from '../../src/container/sweep.ts';
import { runExecutorSuite } from '../../src/testing/executor-suite.ts';
import { runRenewedSuite } from '../renewed-suite.ts';
import { engineForTests, IMAGE, PROGRAM } from '../../src/testing-containers/test-images.ts';

const OWNER = fileURLToPath(new URL('./owner.ts', import.meta.url));
const engine = await engineForTests('the contract of the executors on containers');
/** Nobody else's on the machine of a test. */
const user = process.getuid?.() === 0 ? { uid: 190_001, gid: 190_001 } : undefined;
// Stands in the report as skipped where there is none, so that the file is never silently empty.
it.skipIf(engine === null)('finds an engine of containers', () => expect(engine).not.toBeNull());
if (engine !== null) {
  const create = () => new ContainerExecutor({ engine, owner: 'suite', warn: () => {} });
  const spec = { user, place: { image: { name: IMAGE } } };
  runRenewedSuite(`container executor, ${engine.kind}`, { create, spec });
  runExecutorSuite(`container executor, ${engine.kind}`, {
    create,
    contains: true,
    spec,
    // Of the image, and of busybox's shell.
    variables: ['IN_IMAGE', 'SHLVL'],
    program: PROGRAM,
    hasOwnDisk: true,
    owner: {
      command: (mark, deadlineMs) => [
        ...[process.execPath, OWNER, mark, JSON.stringify(engine), 'guarded', String(deadlineMs)],
      ],
      sweep: (mark) => sweepContainers(engine, mark),
    },
  });
}
