import { expect, it } from 'vitest';
import { oneAtATime } from '../src/one-at-a-time.ts';

const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

it('a task is not started while it is under way, and again after its end, a failed one too', async () => {
  const runs: PromiseWithResolvers<void>[] = [];
  const failures: unknown[] = [];
  const start = oneAtATime(
    () => {
      const run = Promise.withResolvers<void>();
      runs.push(run);
      return run.promise;
    },
    (error) => failures.push(error),
  );
  start();
  start();
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await turn();
  start();
  start();
  expect(runs).toHaveLength(2);
  runs[1]?.reject('away');
  await turn();
  expect(failures).toEqual(['away']);
  start();
  expect(runs).toHaveLength(3);
});
