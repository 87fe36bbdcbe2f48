/** `schedules`, `pauseSchedule` and `resumeSchedule`: of which owners what is asked, and for whom. */
import {
  subjects,
  type BusSubscription,
  type PauseReply,
  type PauseRequest,
  type SchedulesReply,
  type SchedulesRequest,
  type ScheduleView,
} from '@penstock/bus';
import { tenantOfUser } from '@penstock/identity';
import { newRunId, partitionOf, partitionOfKey } from '@penstock/run';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TestUser } from './fake-auth.ts';
import { graphql, makeWorld, PARTITIONS, type World } from './harness.ts';

let world: World;
let ada: TestUser;
const subscriptions: BusSubscription[] = [];
const listed: { readonly partition: number; readonly request: SchedulesRequest }[] = [];
const paused: { readonly partition: number; readonly request: PauseRequest }[] = [];
/** By partition. */
const lines = new Map<number, ScheduleView[]>();

beforeAll(async () => {
  world = await makeWorld();
  ada = await world.auth.login('ada');
  for (let partition = 0; partition < PARTITIONS; partition += 1)
    subscriptions.push(
      world.ownerBus.respond<SchedulesRequest, SchedulesReply>(subjects.owner(partition, 'schedules'), (request) => {
        listed.push({ partition, request });
        const all = (lines.get(partition) ?? []).filter(({ id }) => id > (request.after ?? ''));
        // One at a time.
        return { ok: true, epoch: 1, schedules: all.slice(0, 1), more: all.length > 1 };
      }),
      world.ownerBus.respond<PauseRequest, PauseReply>(subjects.owner(partition, 'pause'), (request) => {
        paused.push({ partition, request });
        const found = (lines.get(partition) ?? []).find(({ id }) => id === request.id);
        return found === undefined
          ? { ok: false, epoch: 1, code: 'NOT_FOUND', message: 'there is no such schedule' }
          : { ok: true, epoch: 1, schedule: { ...found, paused: request.paused } };
      }),
    );
  await world.ownerBus.flush();
});
afterEach(async () => {
  listed.length = 0;
  paused.length = 0;
  lines.clear();
  await world.reset();
});
afterAll(async () => {
  for (const subscription of subscriptions) subscription.stop();
  await world.close();
});

const FIELDS = 'id provider repository cron inputs { key value } nextAt lastRunId paused';
const LIST = `{ schedules { ${FIELDS} } }`;
const PAUSE = `mutation ($id: String) { pauseSchedule(id: $id) { ${FIELDS} } }`;

function line(key: string, repository: string, number: number): ScheduleView {
  const id = newRunId({ now: 0, key, random: Uint8Array.of(number, 1, 2, 3, 4, 5, 6, 7) });
  const view: ScheduleView = {
    id,
    provider: 'git_host_a',
    repository,
    cron: '0 3 * * *',
    inputs: [{ key: 'target', value: 'x' }],
    nextAt: '2026-01-02T03:00:00.000Z',
    lastRunId: null,
    paused: false,
  };
  const partition = partitionOf(id, PARTITIONS);
  lines.set(
    partition,
    [...(lines.get(partition) ?? []), view].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );
  return view;
}

describe('schedules', () => {
  it("of a user are asked of the one owner of the user's key, until there are no more", async () => {
    const app = await world.gateway();
    const tenant = tenantOfUser(ada.id);
    const [first, second] = [line(tenant, 'acme/b', 1), line(tenant, 'acme/a', 2)];
    const { data, errors } = await graphql(app, LIST, { token: ada.token });
    expect(errors).toEqual([]);
    expect(data?.['schedules']).toEqual([second, first]);
    const partition = partitionOfKey(tenant, PARTITIONS);
    expect(listed.map((each) => each.partition)).toEqual([partition, partition]);
    expect(listed[0]?.request.tenants).toEqual([tenant]);
  });

  it("of the server's own repositories are asked of all owners; nobody without a credential sees any", async () => {
    const app = await world.gateway();
    line('service/git_host_a/signed/acme/a', 'acme/a', 1);
    line('service/git_host_a/signed/acme/b', 'acme/b', 1);
    const { data } = await graphql(app, LIST);
    expect(data?.['schedules']).toMatchObject([{ repository: 'acme/a' }, { repository: 'acme/b' }]);
    expect(new Set(listed.map((each) => each.partition)).size).toBe(PARTITIONS);
    const { errors } = await graphql(app, LIST, { token: null });
    expect(errors[0]?.extensions['code']).toBe('UNAUTHENTICATED');
  });

  it('are paused and resumed by the owner that the id names, for the tenants that the caller may change', async () => {
    const app = await world.gateway();
    const { id } = line(tenantOfUser(ada.id), 'acme/a', 1);
    const { data } = await graphql(app, PAUSE, { token: ada.token, variables: { id } });
    expect(data?.['pauseSchedule']).toMatchObject({ id, paused: true });
    const resumed = await graphql(app, PAUSE.replace('pauseSchedule', 'resumeSchedule'), {
      token: ada.token,
      variables: { id },
    });
    expect(resumed.data?.['resumeSchedule']).toMatchObject({ paused: false });
    expect(paused.map(({ request }) => request.paused)).toEqual([true, false]);
    expect(paused[0]).toMatchObject({
      partition: partitionOf(id, PARTITIONS),
      request: { tenants: [tenantOfUser(ada.id)] },
    });
  });

  it.each(['', 'no-id', '00000000-0000-7fff-8fff-ffffffffffff'])('%j names none', async (id) => {
    const app = await world.gateway();
    const { errors } = await graphql(app, PAUSE, { variables: { id } });
    expect(['NOT_FOUND', 'BAD_USER_INPUT']).toContain(errors[0]?.extensions['code']);
    const anonymous = await graphql(app, PAUSE, { token: null, variables: { id: 'x' } });
    expect(anonymous.errors[0]?.extensions['code']).toBe('UNAUTHENTICATED');
  });
});
