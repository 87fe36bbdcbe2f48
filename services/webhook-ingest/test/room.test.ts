/** Who may have how much wait in the stream of deliveries, which all share. */
import { connectionOf, ensureStreams, type IngestCalls, type IngestVerb } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { GitError } from '@penstock/git';
import { answerCalls, callService } from '@penstock/service';
import { describe, expect, it } from 'vitest';
import { Room } from '../src/intake/room.ts';
import { Backlog } from '../src/processing/backlog.ts';
import { githubPush, githubSignature } from './repository.ts';
import { makeWorld } from './world.ts';

const MIB = 1024 * 1024;
const nothing = { read: () => Promise.resolve(null), readLane: () => Promise.resolve({ deliveries: [], behind: 0 }) };

/** A stream of so much, in which nothing is processed. */
function roomIn(most: { readonly deliveries: number; readonly bytes: number }) {
  const backlog = new Backlog({ stream: nothing, isDecided: () => Promise.resolve(false) });
  const room = new Room({ stream: { most: () => Promise.resolve(most) }, waiting: backlog });
  let sequence = 0;
  const stored = { deliveries: 0, bytes: 0 };
  return {
    stored,
    backlog,
    /** Whether it was let in. */
    async push(owner: string, lane: string, bytes = 1_000): Promise<boolean> {
      const place = { lane: `${owner} ${lane}`, host: owner === '' ? 'host' : `host.${owner}` };
      try {
        await room.check(place);
      } catch (error) {
        if (error instanceof Unavailable) return false;
        throw error;
      }
      expect(backlog.note(place, (sequence += 1), bytes)).toBe(true);
      stored.deliveries += 1;
      stored.bytes += bytes;
      return true;
    },
  };
}

/** More than any room here has. */
const FILLED_MAX = 30_000;

/** How many are let in before the first that is not. */
async function fill(push: (index: number) => Promise<boolean>): Promise<number> {
  let count = 0;
  while (count < FILLED_MAX && (await push(count))) count += 1;
  return count;
}

describe('the room for deliveries that wait', () => {
  it('STREAMROOM-2: is a fifth of all for a user alone, in however many repositories, and there is some for each of twenty', async () => {
    const most = { deliveries: 20_000, bytes: Infinity };
    const { push, stored } = roomIn(most);
    const lets: number[] = [];
    for (let user = 0; user < 20; user += 1) lets.push(await fill((index) => push(`u${user}`, `${index % 100}`)));
    expect(lets[0]).toBe(most.deliveries / 5);
    expect(Math.min(...lets)).toBe(100);
    expect(stored.deliveries).toBeLessThan(most.deliveries);
    expect(await push('last', 'one')).toBe(true);
  });

  it('STREAMROOM-2: is so in bytes too', async () => {
    const most = { deliveries: 1_000_000, bytes: 1024 * MIB };
    const { push, stored } = roomIn(most);
    const large = 256 * 1024;
    for (let user = 0; user < 10; user += 1) await fill((index) => push(`u${user}`, `${index % 100}`, large));
    expect(stored.bytes).toBeGreaterThan(most.bytes / 2);
    expect(stored.bytes).toBeLessThan(most.bytes * 0.9);
    expect(await push('last', 'one', large)).toBe(true);
  });

  it("STREAMROOM-1: is for pushes of what nobody has connected as much as each repository's bound lets in", async () => {
    const { push, stored } = roomIn({ deliveries: 10_000, bytes: Infinity });
    for (let index = 0; index < 9_000; index += 1) expect(await push('', `${index % 20}`)).toBe(true);
    expect(stored.deliveries).toBe(9_000);
    const bytes = roomIn({ deliveries: 10_000, bytes: 800_000 });
    expect(await fill(() => bytes.push('', 'one'))).toBe(100);
    expect(await bytes.push('', 'two')).toBe(true);
  });

  it('STREAMROOM-2: is had again when what waited is processed', async () => {
    const { push, backlog } = roomIn({ deliveries: 1_000, bytes: Infinity });
    const first = await fill(() => push('u', 'one'));
    expect(first).toBe(200);
    expect(await push('u', 'two')).toBe(false);
    // Nothing of the lane stands in the stream any more.
    expect(await backlog.next('u one')).toBeNull();
    expect(backlog.waitingOf('u')).toEqual({ deliveries: 0, bytes: 0 });
    expect(await push('u', 'two')).toBe(true);
  });
});

it('a user whose repositories wait for what never comes does not fill the stream for others', async () => {
  const room = 3_000;
  const world = await makeWorld();
  try {
    answerCalls(world.bus, 'auth', { user: ({ id }: { id: string }) => ({ id, tier: 'pro' }) });
    const streams = { partitions: 2, journalBytesMax: 256 * MIB, logsBytesMax: 64 * MIB };
    await ensureStreams(world.bus, { ...streams, deliveriesMax: room });
    const fetched: string[] = [];
    const ingest = await world.ingest({
      waitSecs: 0,
      mirrors: {
        ...world.mirrors,
        fetch: ({ url }) => {
          fetched.push(url);
          return Promise.reject(
            url.includes('stuck')
              ? new Unavailable('too many runs of its key are live')
              : new GitError('not_found', 'no such commit'),
          );
        },
      },
    });
    const call = <V extends IngestVerb>(verb: V, request: IngestCalls[V]['request']) =>
      callService<IngestCalls[V]['request'], IngestCalls[V]['answer']>(world.bus, 'webhook-ingest', verb, request);
    const connect = async (userId: string, repository: string) => {
      const { secret } = await call('connect', { userId, provider: 'git_host_a', repository });
      const push = { repository, url: `file:///${repository}`, commit: 'a'.repeat(40) };
      const body = JSON.stringify(githubPush(push));
      const headers = { 'x-github-event': 'push', 'x-hub-signature-256': githubSignature(body, secret) };
      return async (): Promise<number> => (await ingest.send(body, headers)).status;
    };
    const stuck = await Promise.all(Array.from({ length: 10 }, (_, index) => connect('loud', `stuck/${index}`)));
    const quiet = await connect('quiet', 'acme/quiet');
    const answers = new Set<number>();
    for (let index = 0; index < room; index += 1) answers.add((await stuck[index % stuck.length]?.()) ?? 0);
    expect(await quiet()).toBe(200);
    expect(answers).toEqual(new Set([200, 503]));
    const info = await connectionOf(world.bus).request('$JS.API.STREAM.INFO.DELIVERIES', '', { timeout: 5_000 });
    expect(info.json<{ state: { messages: number } }>().state.messages).toBeLessThan(room / 2);
    await expect.poll(() => fetched, { timeout: 30_000 }).toContain('file:///acme/quiet');
    // What waits of the user keeps nobody from ending its connections.
    const { repositories } = await call('connections', { userId: 'loud' });
    for (const { id } of repositories) await call('disconnect', { userId: 'loud', id });
  } finally {
    await world.close();
  }
}, 60_000);
