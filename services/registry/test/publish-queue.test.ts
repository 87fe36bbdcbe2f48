import { expect, it } from 'vitest';
import { Unavailable } from '@penstock/errors';
import { PublishQueue } from '../src/operations/publish-queue.ts';

it('so many run at once, the others wait in their order, and no more than so many of them', async () => {
  const queue = new PublishQueue(2, 3);
  const begun: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const all = ends.map(({ promise }, index) =>
    queue.take(async () => {
      begun.push(index);
      await promise;
      if (index === 1) throw new Error('failed');
    }),
  );
  await expect(queue.take(async () => {})).rejects.toThrow(Unavailable);
  expect(begun).toEqual([0, 1]);
  ends[1]?.resolve();
  await expect(all[1]).rejects.toThrow('failed');
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.all(all.toSpliced(1, 1));
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  expect(await queue.take(async () => 'free again')).toBe('free again');
});
