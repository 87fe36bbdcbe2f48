/** The schedules of tenants, asked of the owners that fire them (P28). */
import type { ScheduleView } from '@penstock/bus';
import { partitionOfKey, SERVICE_TENANT } from '@penstock/run';
import type { Owners } from '@penstock/run-client';

type ScheduleOwners = Pick<Owners, 'schedules' | 'partitions'>;

const LISTED_MAX = 10_000;

/** By repository, at most 10,000. */
export async function schedulesOf(owners: ScheduleOwners, tenants: readonly string[]): Promise<ScheduleView[]> {
  const lists = await Promise.all(
    partitionsOf(tenants, owners.partitions).map((partition) => listed(owners, partition, tenants)),
  );
  return lists.flat().toSorted(byRepository).slice(0, LISTED_MAX);
}

/** A user's runs share one key; those of the server have one for each repository. */
function partitionsOf(tenants: readonly string[], partitions: number): readonly number[] {
  if (tenants.includes(SERVICE_TENANT)) return Array.from({ length: partitions }, (_, partition) => partition);
  return [...new Set(tenants.map((tenant) => partitionOfKey(tenant, partitions)))];
}

async function listed(owners: ScheduleOwners, partition: number, tenants: readonly string[]): Promise<ScheduleView[]> {
  const found: ScheduleView[] = [];
  for (let after: string | undefined; found.length < LISTED_MAX; after = found.at(-1)?.id) {
    const { schedules, more } = await owners.schedules(partition, { tenants, after });
    found.push(...schedules);
    if (!more || schedules.length === 0) break;
  }
  return found;
}

function byRepository(a: ScheduleView, b: ScheduleView): number {
  const [left, right] = [a, b].map(({ provider, repository, cron, id }) =>
    JSON.stringify([provider, repository, cron, id]),
  );
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
