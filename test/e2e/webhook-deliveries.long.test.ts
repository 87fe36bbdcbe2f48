import { expect, it } from 'vitest';
import { deliver } from './webhook-deliveries.ts';

it('P24: 80 deliveries, 30 % of them repeated, with ingest, scheduler and broker killed in quick succession: one run each, ended, and told to the host', async () => {
  const report = await deliver({ count: 80, seed: 7, killEveryMs: 700 });
  expect(report.distinct).toBe(56);
  expect(Object.keys(report.kills).toSorted()).toEqual(['broker', 'scheduler', 'webhook-ingest']);
}, 180_000);

it('P24: 3,000 deliveries, 30 % of them repeated, with ingest, scheduler and broker killed meanwhile: one run each, ended, and told to the host', async () => {
  const report = await deliver({ count: 3_000, seed: 8, killEveryMs: 5_000 });
  expect(report.distinct).toBe(2_100);
  expect(Object.keys(report.kills).toSorted()).toEqual(['broker', 'scheduler', 'webhook-ingest']);
}, 900_000);
