import { UnservedNotices } from '@penstock/scheduler/testing';
import { expect, it } from 'vitest';

function notices() {
  const told: unknown[] = [];
  return { told, notices: new UnservedNotices({ warn: (fields) => void told.push(fields) }) };
}

const gpu = { labels: ['gpu'], least: undefined, count: 2 };
const large = { labels: ['gpu'], least: { cpu: 64 }, count: 1 };

it('stages that no runner takes are told once for each set, and again when a runner was there meanwhile', () => {
  const { told, notices: all } = notices();
  all.tell([gpu]);
  all.tell([{ ...gpu, count: 3 }, large]);
  all.tell([gpu, large]);
  expect(told).toEqual([
    { labels: ['gpu'], least: undefined, stages: 2 },
    { labels: ['gpu'], least: { cpu: 64 }, stages: 1 },
  ]);
  all.tell([large]);
  all.tell([gpu, large]);
  expect(told).toHaveLength(3);
  expect(told.at(-1)).toMatchObject({ stages: 2 });
});

it('of more than a hundred sets the first hundred are told', () => {
  const { told, notices: all } = notices();
  const many = Array.from({ length: 150 }, (_, index) => ({ ...gpu, labels: [`set-${index}`] }));
  for (let second = 0; second < 3; second++) all.tell(many);
  expect(told).toHaveLength(100);
});
