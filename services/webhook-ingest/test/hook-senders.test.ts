/** Senders that die or stand still between a request and its mark, on a store alone. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootMs } from '@penstock/async';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';
import { noMeter } from '@penstock/telemetry/metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HooksRepository } from '../src/hooks/hooks-repository.ts';
import { Outbox } from '../src/hooks/outbox.ts';
import type { Posted } from '../src/hooks/post.ts';
import { HookSender, type HookSenderOptions } from '../src/hooks/sender.ts';

const TAKEN: Posted = { outcome: 'taken', status: 200, why: '', retryAfterMs: 0 };
/** A clock that goes so much faster than the machine's: another's claim is over in a second. */
const FAST = 30;

let folder: string;
let store: DocumentStore;
let hooks: HooksRepository;
let outbox: Outbox;
const senders: HookSender[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-senders-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections, synchronous: 'normal' });
  hooks = new HooksRepository(store, { keys: [randomBytes(32)], mode: 'development' });
  outbox = new Outbox(store);
});
afterEach(async () => {
  for (const sender of senders.splice(0)) await sender.stop();
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

function sender(options: Partial<HookSenderOptions> & Pick<HookSenderOptions, 'post'>): HookSender {
  const started = new HookSender({
    bus: { subscribe: () => ({ stop: () => {} }) },
    hooks,
    outbox,
    log: silentLog,
    meter: noMeter,
    now: Date.now,
    lookMs: 50,
    ...options,
  });
  senders.push(started);
  started.start();
  return started;
}

async function withDeliveries(versions: readonly number[], runs = ['run']): Promise<string> {
  const { id } = await hooks.create({ tenant: 't', url: 'http://a.example/', events: ['run.started'] }, 1_000);
  await new RunsRepository(store).addHookDeliveries(
    runs.flatMap((run) =>
      versions.map((version) => ({
        hook: id,
        run,
        version,
        event: 'run.started' as const,
        body: '{}',
        createdAt: Date.now(),
      })),
    ),
  );
  return id;
}

const ended = async (hook: string): Promise<number> =>
  (await outbox.newest(hook, 100)).filter(({ open, taken }) => !open && taken).length;

/** A request without an answer, given up when its sender stops. */
function hanging(stopped: AbortSignal): {
  readonly promise: Promise<Posted>;
  readonly answer: (posted: Posted) => void;
} {
  const { promise, resolve } = Promise.withResolvers<Posted>();
  stopped.addEventListener('abort', () => resolve({ ...TAKEN, outcome: 'failed', status: 0, why: 'stopped' }));
  return { promise, answer: resolve };
}

describe('a sender', () => {
  it('that is gone between a request and its mark is followed by another, which sends the same delivery again', async () => {
    const hook = await withDeliveries([1, 2]);
    const first: string[] = [];
    const answers: ((posted: Posted) => void)[] = [];
    const frozen = { at: bootMs() };
    let isAwake = false;
    sender({
      // Its clock stands still with it.
      bootNow: () => frozen.at,
      post: (_url, headers, _body, stopped) => {
        first.push(headers['webhook-id'] ?? '');
        if (isAwake) return Promise.resolve(TAKEN);
        const { promise, answer } = hanging(stopped);
        answers.push(answer);
        return promise;
      },
    });
    await expect.poll(() => first.length, { timeout: 20_000 }).toBe(1);
    const second: string[] = [];
    const begunAt = bootMs();
    sender({
      bootNow: () => begunAt + (bootMs() - begunAt) * FAST,
      post: async (_url, headers) => {
        second.push(headers['webhook-id'] ?? '');
        return TAKEN;
      },
    });
    await expect.poll(() => ended(hook), { timeout: 20_000 }).toBe(2);
    expect(second).toHaveLength(2);
    expect(second[0]).toBe(first[0]);
    // The first wakes up: it has lost the webhook, and sends nothing more.
    frozen.at += 60_000;
    isAwake = true;
    for (const answer of answers) answer(TAKEN);
    await withDeliveries([1]);
    await expect.poll(() => second.length + first.length, { timeout: 20_000 }).toBe(4);
    expect(await ended(hook)).toBe(2);
  }, 60_000);

  it('leaves alone what another holds, as long as its own clock has not seen that gone', async () => {
    await withDeliveries([1, 2, 3]);
    let held = 0;
    sender({
      post: (_url, _headers, _body, stopped) => {
        held += 1;
        return hanging(stopped).promise;
      },
    });
    await expect.poll(() => held, { timeout: 20_000 }).toBe(1);
    let looks = 0;
    class WatchedOutbox extends Outbox {
      override nextHook(after: string): Promise<string | undefined> {
        looks += 1;
        return super.nextHook(after);
      }
    }
    const sent: string[] = [];
    sender({
      outbox: new WatchedOutbox(store),
      bootNow: () => 1_000,
      post: async (url) => {
        sent.push(url);
        return TAKEN;
      },
    });
    await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(20);
    expect(sent).toEqual([]);
    expect(held).toBe(1);
  }, 60_000);

  it('of a tenant whose receivers hang sends for others', async () => {
    const waiting = await withDeliveries(
      [1],
      Array.from({ length: 50 }, (_, index) => `run${index}`),
    );
    const { id } = await hooks.create({ tenant: 'other', url: 'http://b.example/', events: ['run.started'] }, 1_000);
    const open: string[] = [];
    sender({
      post: (url, _headers, _body, stopped) => {
        if (url.includes('b.example')) return Promise.resolve(TAKEN);
        open.push(url);
        return hanging(stopped).promise;
      },
    });
    await expect.poll(() => open.length, { timeout: 20_000 }).toBe(4);
    const ledger = new RunsRepository(store);
    await ledger.addHookDeliveries([
      { hook: id, run: 'r', version: 1, event: 'run.started', body: '{}', createdAt: 1 },
    ]);
    await expect.poll(() => ended(id), { timeout: 20_000 }).toBe(1);
    expect(open).toHaveLength(4);
    expect(await ended(waiting)).toBe(0);
  }, 60_000);

  it('takes away what waits for a webhook that was deleted', async () => {
    const hook = await withDeliveries([1, 2]);
    await hooks.delete('t', hook);
    await new RunsRepository(store).addHookDeliveries([
      { hook, run: 'late', version: 1, event: 'run.started', body: '{}', createdAt: 1 },
    ]);
    sender({ post: async () => TAKEN });
    await expect.poll(async () => (await outbox.newest(hook, 10)).length, { timeout: 20_000 }).toBe(0);
  }, 60_000);

  it('leaves nothing of a webhook that is deleted while a delivery to it is under way', async () => {
    const hook = await withDeliveries([1]);
    const [waiting] = await outbox.waiting(hook, '', 1);
    const row = await outbox.get(waiting?.id ?? '');
    if (row === null) throw new Error('nothing waits');
    await hooks.delete('t', hook);
    expect(await outbox.change(row, { open: false, taken: true, endedAt: Date.now() })).toBe(false);
    expect(await outbox.newest(hook, 10)).toEqual([]);
  });

  it('leaves no state of it either, when that delivery fails', async () => {
    const hook = await withDeliveries([1]);
    const held = await hooks.writeState({ ...(await hooks.state(hook)), holder: 'a' });
    if (held === null) throw new Error('somebody else holds it');
    await hooks.delete('t', hook);
    await hooks.forget(hook);
    expect(await hooks.writeState({ ...held, failures: 1 })).toBe(null);
    expect(await hooks.state(hook)).toMatchObject({ revision: 0, failures: 0 });
  });
});

it('HOOK-3: what waits already behind a delivery that failed is not sent before it; other runs go on', async () => {
  const hook = await withDeliveries([1, 2, 3], ['first', 'other']);
  const sent: string[] = [];
  const failed: Posted = { outcome: 'failed', status: 500, why: 'it answered 500', retryAfterMs: 60_000 };
  sender({
    post: async (_url, headers) => {
      const [, run = '', version = ''] = (headers['webhook-id'] ?? '').split('_');
      sent.push(`${run} ${Number(version)}`);
      return run === 'first' ? failed : TAKEN;
    },
  });
  await expect.poll(() => ended(hook)).toBe(3);
  expect(sent.toSorted()).toEqual(['first 1', 'other 1', 'other 2', 'other 3']);
});
