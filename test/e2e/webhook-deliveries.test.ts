import { expect, it } from 'vitest';
import { deliver } from './webhook-deliveries.ts';

it('P24: 300 deliveries, 30 % of them repeated, with ingest, scheduler and broker killed meanwhile: one run each, ended, and told to the host', async () => {
  const report = await deliver({ count: 300, seed: 7 });
  expect(report.distinct).toBe(210);
  expect(Object.keys(report.kills).toSorted()).toEqual(['broker', 'scheduler', 'webhook-ingest']);
}, 180_000);
