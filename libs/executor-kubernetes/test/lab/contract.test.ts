import { runExecutorSuite } from '@penstock/executor/testing';
import { afterAll, expect, it, vi } from 'vitest';
import { IMAGE, labForTests } from './lab.ts';

const lab = await labForTests('the contract of the executors on Kubernetes');
if (lab !== null) {
  afterAll(() => lab.close());
  runExecutorSuite('kubernetes executor', {
    create: () => lab.executor(),
    contains: true,
    spec: { place: { image: { name: IMAGE } } },
    variables: ['SHLVL'],
    program: null,
    loudBytes: 20_000_000,
  });
}

it('where no cluster is named there is none to be tested on', async () => {
  vi.stubEnv('SERVICE_TEST_KUBECONFIG', undefined);
  vi.stubEnv('PENSTOCK_NOT_RUN_FILE', undefined);
  expect(await labForTests('this')).toBeNull();
  vi.unstubAllEnvs();
});
