import { connectionOf, ensureStreams } from '@penstock/bus';
import { GitError } from '@penstock/git';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deliveriesSpec } from '../src/model/collections.ts';
import { githubPush } from './repository.ts';
import { makeWorld, type RunningIngest, type World } from './world.ts';

const MIB = 1024 * 1024;
const REPOSITORIES = 40;
const AT_ONCE = 500;
/** The ingest stands in the old stream further than the new one begins, and the new one grows past that while heads are behind. */
const TIMES_BEFORE = 6;
const TIMES_AFTER = 10;

let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

async function asked(subject: string): Promise<unknown> {
  return (await connectionOf(world.bus).request(subject, '', { timeout: 5_000 })).json();
}

/** The ids of the runs that were promised. */
async function pushMany(ingest: RunningIngest, times: number): Promise<string[]> {
  const promised: string[] = [];
  for (let time = 0; time < times; time++)
    await Promise.all(
      Array.from({ length: AT_ONCE }, async (_, index) => {
        const repository = `acme/${index % REPOSITORIES}`;
        const push = githubPush({ repository, url: `file:///${repository}`, commit: 'a'.repeat(40) });
        const { status, body } = await ingest.send(push, { 'x-github-event': 'push' });
        if (status < 300) promised.push(String(body.run_id));
      }),
    );
  return promised;
}

describe('a stream of deliveries that is made anew under a working ingest', () => {
  it('BACKLOG-6: loses no push that was accepted afterwards', async () => {
    const ingest = await world.ingest({
      waitSecs: 0,
      mirrors: { ...world.mirrors, fetch: () => Promise.reject(new GitError('not_found', 'no such commit')) },
    });
    await pushMany(ingest, TIMES_BEFORE);
    await asked('$JS.API.STREAM.DELETE.DELIVERIES');
    await ensureStreams(world.bus, { partitions: 2, journalBytesMax: 256 * MIB, logsBytesMax: 64 * MIB });
    const promised = await pushMany(ingest, TIMES_AFTER);
    expect(promised.length).toBeGreaterThan(AT_ONCE);
    const waits = async (): Promise<unknown> => await asked('$JS.API.CONSUMER.INFO.DELIVERIES.ingest');
    await expect.poll(waits, { timeout: 90_000 }).toMatchObject({ num_pending: 0, num_ack_pending: 0 });
    const lost: string[] = [];
    for (const runId of promised) {
      const [decided] = await world.store.collection(deliveriesSpec).list({ where: { runId }, limit: 1 });
      if (decided === undefined) lost.push(runId);
    }
    expect(lost).toEqual([]);
  }, 120_000);
});
