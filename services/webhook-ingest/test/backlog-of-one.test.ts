import { openDeliveryLog } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { GitError } from '@penstock/git';
import { newRunId } from '@penstock/run';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deliveriesSpec } from '../src/model/collections.ts';
import { decodeDelivery, encodeDelivery, type Delivery } from '../src/model/delivery.ts';
import { placeOf } from '../src/model/lane-name.ts';
import { githubPush, makeRepository, pipelineText, type TestRepository } from './repository.ts';
import { makeWorld, type World } from './world.ts';

/** More than an ingest is handed at a time. */
const MANY = 4_500;
/** As many as an ingest is handed at a time and few behind them; but none of them is ever done. */
const CROWD = 4_100;

let world: World;
let repository: TestRepository;
let push: Record<string, unknown>;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  push = githubPush({ url: repository.url, commit: repository.commit({ '.pipeline.yaml': pipelineText('demo') }) });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});

describe('a backlog', () => {
  it('of thousands of pushes of one repository holds up no other, and is done in order by the next ingest', async () => {
    const answered = Promise.withResolvers<void>();
    const begun: string[] = [];
    const stuck = await world.ingest({
      mirrors: {
        ...world.mirrors,
        fetch: async (request) => {
          if (!request.url.endsWith('many')) return await world.mirrors.fetch(request);
          await answered.promise;
          throw new Unavailable('not now');
        },
      },
    });
    const log = openDeliveryLog(world.bus);
    const { body } = await stuck.send(push, { 'x-github-event': 'push' });
    const [known] = await world.store
      .collection(deliveriesSpec)
      .list({ where: { runId: String(body.run_id) }, limit: 1 });
    const one = JSON.parse(String(known?.delivery)) as Delivery;
    const many: Delivery = { ...one, repository: 'acme/many', cloneUrl: 'file:///many', key: 'service/many' };
    const place = placeOf(many);
    await Promise.all(
      Array.from({ length: MANY }, async (_, index) => {
        const id = `many-${index}`;
        const runId = newRunId({ now: Date.now(), key: many.key, random: Buffer.from(id.padEnd(32)) });
        await log.persist(id, encodeDelivery({ ...many, id, deliveryId: id, runId, commit: id }), place);
      }),
    );
    expect((await stuck.send(push, { 'x-github-event': 'push' })).body).toMatchObject({ status: 'Success' });
    answered.resolve();
    const done = Promise.withResolvers<void>();
    await world.ingest({
      mirrors: {
        ...world.mirrors,
        fetch: ({ commit: wanted }) => {
          begun.push(wanted);
          if (begun.length === 100) done.resolve();
          return begun.length <= 100
            ? Promise.reject(new GitError('not_found', 'no such commit'))
            : new Promise(() => {});
        },
      },
    });
    await done.promise;
    const stored = (await log.readLane(place.lane, 0, { deliveries: 100, bytes: 10 * 1024 * 1024 })).deliveries;
    expect(begun.slice(0, 100)).toEqual(stored.map(({ bytes }) => decodeDelivery(bytes).commit));
  }, 120_000);

  it('PROCESSING-7: of thousands of repositories whose heads come first holds up no push of another', async () => {
    const ingest = await world.ingest();
    const log = openDeliveryLog(world.bus);
    const first = await ingest.send(push, { 'x-github-event': 'push' });
    const [known] = await world.store
      .collection(deliveriesSpec)
      .list({ where: { runId: String(first.body.run_id) }, limit: 1 });
    const one = JSON.parse(String(known?.delivery)) as Delivery;
    await ingest.close();
    await Promise.all(
      Array.from({ length: CROWD }, async (_, index) => {
        const repository = `crowd/${index}`;
        const cloneUrl = `https://crowd.example/${repository}.git`;
        const key = `service/${repository}`;
        const id = `crowd-${index}`;
        const runId = newRunId({ now: Date.now(), key, random: Buffer.from(id.padEnd(32)) });
        const delivery = { ...one, id, deliveryId: id, runId, key, repository, cloneUrl };
        await log.persist(id, encodeDelivery(delivery), placeOf(delivery));
      }),
    );
    const begun = Promise.withResolvers<void>();
    const next = await world.ingest({
      mirrors: {
        ...world.mirrors,
        fetch: (request) => {
          if (!request.url.includes('crowd.example')) return world.mirrors.fetch(request);
          begun.resolve();
          return new Promise(() => {});
        },
      },
    });
    await begun.promise;
    expect((await next.send(push, { 'x-github-event': 'push' })).body).toMatchObject({ status: 'Success' });
  }, 120_000);
});
