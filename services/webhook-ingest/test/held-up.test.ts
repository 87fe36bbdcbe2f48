import { connectionOf, ensureStreams, startDeliveryConsumer } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { GitError } from '@penstock/git';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { githubPush } from './repository.ts';
import { makeWorld, type World } from './world.ts';

const MIB = 1024 * 1024;
/** What the stream holds. */
const ROOM = 60;
const HELD_UP = 5;
const PUSHES = 300;
const PUSH = { 'x-github-event': 'push' };

let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await ensureStreams(world.bus, {
    partitions: 2,
    journalBytesMax: 256 * MIB,
    logsBytesMax: 64 * MIB,
    deliveriesMax: ROOM,
  });
});
afterAll(() => world.close());

async function stored(): Promise<number> {
  const info = await connectionOf(world.bus).request('$JS.API.STREAM.INFO.DELIVERIES', '', { timeout: 5_000 });
  return info.json<{ state: { messages: number } }>().state.messages;
}

const pushTo = (repository: string): unknown =>
  githubPush({ repository, url: `file:///${repository}`, commit: 'a'.repeat(40) });

describe('a repository whose pushes find no room for their runs', () => {
  it('P24: costs the pushes of others no place in the stream, and loses none of its own', async () => {
    const held = Promise.withResolvers<void>();
    let isHeld = true;
    const mirrors: typeof world.mirrors = {
      ...world.mirrors,
      fetch: ({ url }) => {
        if (!isHeld || !url.endsWith('held')) return Promise.reject(new GitError('not_found', 'no such commit'));
        held.resolve();
        return Promise.reject(new Unavailable('too many runs of its key are live'));
      },
    };
    const first = await world.ingest({ mirrors, waitSecs: 0 });
    const promised: string[] = [];
    for (let push = 0; push < HELD_UP; push++)
      promised.push(String((await first.send(pushTo('acme/held'), PUSH)).body.run_id));
    await held.promise;
    const ingest = await world.ingest({ mirrors });
    const refused: unknown[] = [];
    for (let push = 0; push < PUSHES; push++) {
      const { status, body } = await ingest.send(pushTo(`acme/${push % 7}`), PUSH);
      if (status >= 300) refused.push([push, body]);
    }
    expect(refused).toEqual([]);
    expect(await stored()).toBeLessThanOrEqual(ROOM);
    isHeld = false;
    for (const runId of promised)
      await expect.poll(() => world.reads.view(runId, ['service']), { timeout: 30_000 }).toMatchObject({ id: runId });
  }, 60_000);

  it('P24: loses none where an ingest that others take for alive has their head, and ends', async () => {
    let isHeld = true;
    let processed = 0;
    const mirrors: typeof world.mirrors = {
      ...world.mirrors,
      fetch: ({ url }) => {
        if (url.endsWith('shared') && isHeld && (processed += 1) !== 6)
          return Promise.reject(new Unavailable('too many runs of its key are live'));
        return Promise.reject(new GitError('not_found', 'no such commit'));
      },
    };
    const first = await world.ingest({ mirrors, waitSecs: 0 });
    const promised: string[] = [];
    for (let push = 0; push < HELD_UP; push++)
      promised.push(String((await first.send(pushTo('acme/shared'), PUSH)).body.run_id));
    await expect.poll(() => processed).toBeGreaterThan(0);
    await first.close();
    const heads: number[] = [];
    const onDelivery = ({ sequence }: { readonly sequence: number }): void => void heads.push(sequence);
    const other = startDeliveryConsumer(world.bus, { onDelivery, heldMax: 1 });
    await expect.poll(() => heads.length).toBe(1);
    processed = 5;
    const second = await world.ingest({ mirrors });
    const last = second.send(pushTo('acme/shared'), PUSH);
    await expect.poll(() => world.reads.view(promised[0] ?? '', ['service'])).not.toBeNull();
    for (let push = 0; push < 2 * ROOM; push++)
      expect((await second.send(pushTo(`acme/${push % 7}`), PUSH)).status).toBeLessThan(300);
    await second.close();
    await last;
    isHeld = false;
    await other.stop();
    await world.ingest({ mirrors });
    for (const runId of promised)
      await expect.poll(() => world.reads.view(runId, ['service']), { timeout: 30_000 }).toMatchObject({ id: runId });
  }, 60_000);

  it('P24: costs the pushes of others no place either after all that stands there was processed by an ingest that is gone', async () => {
    const isHeld = { now: true };
    const mirrors: typeof world.mirrors = {
      ...world.mirrors,
      fetch: ({ url }) =>
        Promise.reject(
          url.endsWith('stuck') && isHeld.now
            ? new Unavailable('too many runs of its key are live')
            : new GitError('not_found', 'no such commit'),
        ),
    };
    const first = await world.ingest({ mirrors, waitSecs: 0 });
    const { body } = await first.send(pushTo('acme/stuck'), PUSH);
    await first.close();
    const second = await world.ingest({ mirrors });
    for (let push = 0; (await stored()) < ROOM || push < ROOM; push++)
      expect((await second.send(pushTo(`acme/${push % 7}`), PUSH)).status).toBeLessThan(300);
    await second.close();
    const third = await world.ingest({ mirrors });
    await expect
      .poll(async () => (await third.send(pushTo('acme/one'), PUSH)).status, { timeout: 30_000 })
      .toBeLessThan(300);
    isHeld.now = false;
    await expect
      .poll(() => world.reads.view(String(body.run_id), ['service']), { timeout: 30_000 })
      .toMatchObject({ id: body.run_id });
  }, 60_000);
});
