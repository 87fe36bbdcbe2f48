import { expect, it } from 'vitest';
import { deliver } from './webhook-deliveries.ts';

it('P24: 80 deliveries, 30 % of them repeated, with ingest, scheduler and broker killed meanwhile: one run each, ended, and told to the host', async () => {
  const report = await deliver({ count: 80, seed: 7, killEveryMs: 700 });
  expect(report.distinct).toBe(56);
  expect(Object.keys(report.kills).toSorted()).toEqual(['broker', 'scheduler', 'webhook-ingest']);
}, 180_000);
