import { ProcessExecutor } from '../src/process/executor.ts';
import type { Isolation } from '../src/process/launch.ts';
import { runExecutorSuite } from '../src/testing/executor-suite.ts';

const ways: readonly Isolation[] =
  process.getuid?.() === 0 ? ['namespace', 'user-namespace', 'group'] : ['user-namespace', 'group'];
for (const isolation of ways) {
  runExecutorSuite(`process executor, ${isolation}`, {
    create: () => new ProcessExecutor({ isolations: [isolation], warn: () => {} }),
    contains: isolation !== 'group',
  });
}
