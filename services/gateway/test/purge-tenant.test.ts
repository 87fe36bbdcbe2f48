/** How a purge goes where it is too much for one call, or a service is away: nothing of what was done is forgotten. */
import {
  subjects,
  type BusSubscription,
  type CancelRequest,
  type DeleteRequest,
  type SchedulesReply,
  type SchedulesRequest,
} from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { Owners, RunReads } from '@penstock/run-client';
import { answerCalls } from '@penstock/service';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { purgeTenant, type PurgeReceipt } from '../src/runs/purge-tenant.ts';
import { makeWorld, PARTITIONS, runIdFor, YAML, type World } from './harness.ts';

let world: World;
let owners: Owners;
const subscriptions: BusSubscription[] = [];
const asked: string[] = [];
let away: string | undefined;

beforeAll(async () => {
  world = await makeWorld();
  owners = new Owners(world.bus, PARTITIONS);
  for (let partition = 0; partition < PARTITIONS; partition += 1)
    subscriptions.push(
      world.ownerBus.respond<SchedulesRequest, SchedulesReply>(subjects.owner(partition, 'schedules'), () => ({
        ok: true,
        epoch: 1,
        schedules: [],
        more: false,
      })),
    );
  const answers = {
    auth: { 'tenant.forget': { secrets: 2, tokens: [], runnerTokens: 1 } },
    'webhook-ingest': { 'hooks.list': { hooks: [] }, 'deliveries.forget': { forgotten: 0, more: false } },
    registry: { 'cache.list': { caches: [] }, forgetTenant: { extensions: 0, uploads: 0 } },
  };
  for (const [service, verbs] of Object.entries(answers)) {
    const handlers = Object.entries(verbs).map(([verb, answer]) => [
      verb,
      ({ tenant }: { readonly tenant: string }): unknown => {
        asked.push(tenant);
        if (away === service) throw new Unavailable(`the ${service} is away`);
        return answer;
      },
    ]);
    subscriptions.push(
      answerCalls(
        world.ownerBus,
        service as keyof typeof answers,
        Object.fromEntries(handlers) as Parameters<typeof answerCalls>[2],
      ),
    );
  }
  await world.ownerBus.flush();
});
afterAll(async () => {
  for (const subscription of subscriptions) subscription.stop();
  owners.close();
  await world.close();
});

async function stored(tenant: string): Promise<string> {
  const id = runIdFor(`${tenant}/demo`);
  world.owner.adopt(id, YAML, tenant);
  world.owner.commit(id, [{ type: 'run_completed', at: Date.now(), status: 'SKIPPED' }]);
  await world.owner.project(id);
  return id;
}

async function purge(
  budgetMs?: number,
  deleteRun: Owners['delete'] = (request) => owners.delete(request),
): Promise<PurgeReceipt> {
  const asking = {
    partitions: PARTITIONS,
    delete: deleteRun,
    cancel: (request: CancelRequest) => owners.cancel(request),
    schedules: (partition: number, request: SchedulesRequest) => owners.schedules(partition, request),
  };
  return await purgeTenant(
    {
      bus: world.bus,
      owners: asking,
      reads: new RunReads(owners, world.runs),
      revocations: { note: () => {} },
      budgetMs,
    },
    { tenant: 'service', cancel: false, actor: 'user/root', ip: '', begins: () => {} },
  );
}

it('TENANTPURGE-2: a call that has no time left says so with what it has deleted, and the next one goes on', async () => {
  for (let count = 0; count < 3; count++) await stored('service');
  const other = await stored('user/ada');
  expect(await purge(0)).toMatchObject({
    isDone: false,
    waitsFor: expect.stringContaining('too much'),
    secrets: 2,
    runs: 0,
  });

  away = 'registry';
  expect(await purge()).toMatchObject({ isDone: false, waitsFor: 'the registry is away', secrets: 2, runs: 0 });
  away = undefined;

  // An owner goes after the first deletion.
  let deletions = 0;
  const failing = async (request: DeleteRequest): ReturnType<Owners['delete']> => {
    deletions += 1;
    if (deletions > 1) throw new Unavailable('the owner is away');
    return await owners.delete(request);
  };
  expect(await purge(undefined, failing)).toMatchObject({ isDone: false, waitsFor: 'the owner is away', runs: 1 });

  expect(await purge()).toMatchObject({ isDone: true, waitsFor: null, runs: 2 });
  expect(await purge()).toMatchObject({ isDone: true, runs: 0 });
  expect(new Set(asked)).toEqual(new Set(['service']));
  expect(await world.runs.exists([other])).toEqual(new Set([other]));
  expect(await world.runs.view(other, { tenants: ['user/ada'] })).toMatchObject({ id: other });
});
