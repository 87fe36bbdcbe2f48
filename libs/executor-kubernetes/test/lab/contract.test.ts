import { runExecutorSuite } from '@penstock/executor/testing';
import { afterAll } from 'vitest';
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
