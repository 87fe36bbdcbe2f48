import { expect, it } from 'vitest';
import { TenantChanges } from '../src/partition/tenant-changes.ts';

it('of a tenant that it has forgotten it says no earlier commit than there was', () => {
  const changes = new TenantChanges();
  changes.start(5);
  expect(changes.lastOf(['anybody'])).toBe(5);
  for (let tenant = 0; tenant < 20_000; tenant++) changes.committed(`user/${tenant}`, 6 + tenant);
  expect(changes.lastOf(['user/19999'])).toBe(20_005);
  expect(changes.lastOf(['user/3'])).toBeGreaterThanOrEqual(9);
  expect(changes.lastOf(['user/3', 'user/19998'])).toBe(20_004);
  expect(changes.lastOf([])).toBe(0);
});
