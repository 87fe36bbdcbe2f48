/** What a client of `GET /runs/events` is told where looking for what it has missed fails, or takes long. */
import type { Bus, CommittedEvents } from '@penstock/bus';
import type { RunId, RunView } from '@penstock/run';
import type { Owners } from '@penstock/run-client';
import { silentLog } from '@penstock/telemetry/log';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StreamSink } from '../src/sse/client.ts';
import { RunChanges } from '../src/sse/run-changes.ts';

const NOW = 1_800_000_000_000;

/** A gateway whose lists a test answers one by one. */
class Gateway {
  readonly lists: PromiseWithResolvers<readonly RunView[]>[] = [];
  /** Whose they are. */
  readonly asked: string[] = [];
  readonly changes: RunChanges;
  now = NOW;
  #heard: (committed: CommittedEvents) => void = () => {};
  #opened: () => void = () => {};

  constructor() {
    this.changes = new RunChanges({
      bus: {
        subscribe: (_subject: string, heard: (committed: CommittedEvents) => void) => {
          this.#heard = heard;
          return { stop: () => {} };
        },
      } as unknown as Bus,
      owners: {
        partitions: 1,
        partitionOf: () => 0,
        accepts: () => true,
        onAskAgain: (_partition: number, opened: () => void) => {
          this.#opened = opened;
          return () => {};
        },
      } as unknown as Owners,
      reads: {
        newest: (tenants) => {
          this.asked.push(tenants.join());
          const list = Promise.withResolvers<readonly RunView[]>();
          this.lists.push(list);
          return list.promise as Promise<RunView[]>;
        },
      },
      log: silentLog,
      now: () => this.now,
    });
  }

  commits(id: string, version: number): void {
    const run = { tenant: 'ada', pipelineName: 'p', status: 'RUNNING' as const };
    this.#heard({ runId: id as RunId, epoch: 1, version, events: [], run } as unknown as CommittedEvents);
  }

  /** A new owner may have committed what nobody has told. */
  opensPartition(): void {
    this.#opened();
  }

  /** The list that is read for it, if any is. */
  async looks(): Promise<PromiseWithResolvers<readonly RunView[]> | undefined> {
    const before = this.lists.length;
    await vi.advanceTimersByTimeAsync(1_000);
    return this.lists[before];
  }

  /** It has read the list of the moment, if it needs one, by the time that this resolves. */
  async connects(cursor?: string, tenant = 'ada'): Promise<Listener> {
    const listener = new Listener();
    void this.changes.serve(listener.sink, [tenant], cursor);
    await turns();
    return listener;
  }
}

class Listener {
  readonly told: { readonly cursor: string; readonly id: string }[] = [];
  readonly #gone = new AbortController();
  readonly sink: StreamSink = {
    closed: this.#gone.signal,
    hasRoom: true,
    room: () => Promise.resolve(),
    onRoom: () => {},
    closeIfStalled: () => {},
    destroy: () => this.#gone.abort(),
    end: () => this.#gone.abort(),
    write: (bytes) => {
      for (const [, cursor = '', data = ''] of Buffer.from(bytes)
        .toString()
        .matchAll(/^id: (.*)\nevent: .*\ndata: (.*)$/gmu))
        this.told.push({ cursor, id: (JSON.parse(data) as { id: string }).id });
    },
  };

  get isGone(): boolean {
    return this.#gone.signal.aborted;
  }

  get ids(): string[] {
    return this.told.map(({ id }) => id);
  }

  leave(): void {
    this.#gone.abort();
  }
}

const going = (id: string): RunView =>
  ({ id, tenant: 'ada', pipelineName: 'p', status: 'RUNNING', version: 1 }) as unknown as RunView;

const ended = (id: string, at: number): RunView =>
  ({
    ...going(id),
    status: 'FAILED',
    version: 5,
    finishedAt: new Date(at).toISOString(),
  }) as unknown as RunView;

/** What a turn of the loop brings about, and what that does. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await setImmediate();
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

describe('a client that comes back (CHANGES-1)', () => {
  it('keeps its cursor until it has all that it has missed, also where that cannot be read at first', async () => {
    const gateway = new Gateway();
    const cursor = `00000000.${NOW - 30_000}`;
    const first = await gateway.connects(cursor);
    gateway.commits('live', 2);
    await turns();
    expect(first.told).toEqual([]);
    gateway.lists[0]?.reject(new Error('the store is away'));
    await turns();
    expect(first.isGone).toBe(true);
    expect(first.told).toEqual([]);
    const again = await gateway.connects(cursor);
    gateway.commits('live', 3);
    gateway.lists[1]?.resolve([going('missed')]);
    await turns();
    // One whose connection breaks between the two has the cursor of the first.
    expect(again.ids).toEqual(['missed', 'live']);
    expect(again.told[0]?.cursor).toMatch(new RegExp(`\\.${NOW - 30_000}$`, 'u'));
  });
});

describe('many clients that come back (CHANGES-4)', () => {
  const cursor = `00000000.${NOW - 30_000}`;

  it('wait in turns by whose runs they are', async () => {
    const gateway = new Gateway();
    for (let count = 0; count < 6; count += 1) await gateway.connects(cursor, 'ada');
    await gateway.connects(cursor, 'bob');
    expect(gateway.asked).toEqual(['ada', 'ada']);
    for (let at = 0; at < 7; at += 1) {
      gateway.lists[at]?.resolve([]);
      await turns();
    }
    expect(gateway.asked).toEqual(['ada', 'ada', 'ada', 'bob', 'ada', 'ada', 'ada']);
  });

  it('look nothing up where they are gone by then', async () => {
    const gateway = new Gateway();
    const clients = [];
    for (let count = 0; count < 4; count += 1) clients.push(await gateway.connects(cursor));
    clients[2]?.leave();
    for (const list of gateway.lists) list.resolve([]);
    await turns();
    expect(gateway.lists).toHaveLength(3);
  });
});

describe('what may have been missed (CHANGES-2)', () => {
  it('is told to a client that was left behind, although it has heard of something newer since', async () => {
    const gateway = new Gateway();
    const client = await gateway.connects();
    gateway.opensPartition();
    const list = await gateway.looks();
    gateway.now += 5;
    gateway.commits('live', 2);
    await turns();
    expect(client.ids).toEqual(['live']);
    gateway.now += 1_000;
    list?.reject(new Error('the store is away'));
    await turns();
    expect(client.isGone).toBe(true);
    const again = await gateway.connects(client.told[0]?.cursor);
    gateway.lists[1]?.resolve([going('missed')]);
    await turns();
    expect(again.ids).toContain('missed');
  });

  it('is told to a client that was away while it was looked for', async () => {
    const gateway = new Gateway();
    const client = await gateway.connects();
    gateway.opensPartition();
    gateway.now += 5;
    gateway.commits('live', 2);
    await turns();
    client.leave();
    expect(await gateway.looks()).toBeUndefined();
    const again = await gateway.connects(client.told[0]?.cursor);
    gateway.lists.at(-1)?.resolve([going('missed')]);
    await turns();
    expect(again.ids).toContain('missed');
  });

  it('is told to those who are here, however long nobody could be heard, but for what had ended before they came', async () => {
    const gateway = new Gateway();
    const client = await gateway.connects();
    gateway.now += 60_000;
    gateway.commits('heard', 5);
    await turns();
    gateway.now += 20 * 60_000;
    gateway.opensPartition();
    const list = await gateway.looks();
    list?.resolve([ended('missed', NOW + 5 * 60_000), ended('heard', NOW + 60_000), ended('before', NOW - 5 * 60_000)]);
    await turns();
    expect(client.ids).toEqual(['heard', 'missed']);
  });

  it('is not asked of the store where all is known to be heard', async () => {
    const gateway = new Gateway();
    const client = await gateway.connects();
    gateway.opensPartition();
    const list = await gateway.looks();
    list?.resolve([]);
    await turns();
    gateway.now += 5;
    gateway.commits('live', 2);
    await turns();
    client.leave();
    const lists = gateway.lists.length;
    expect((await gateway.connects(client.told[0]?.cursor)).ids).toEqual(['live']);
    expect(gateway.lists).toHaveLength(lists);
  });

  it('is looked up by one whose cursor is older than the hour that is remembered, and by nobody else', async () => {
    const gateway = new Gateway();
    const client = await gateway.connects();
    for (const id of ['first', 'second']) {
      gateway.now += 1_000;
      gateway.commits(id, 2);
      await turns();
    }
    gateway.now += 3_600_000 - 500;
    gateway.commits('third', 2);
    await turns();
    const [first = '', second = ''] = client.told.map(({ cursor }) => cursor);
    expect((await gateway.connects(second)).ids).toEqual(['second', 'third']);
    expect(gateway.lists).toHaveLength(0);
    const back = await gateway.connects(first);
    expect(gateway.lists).toHaveLength(1);
    gateway.lists[0]?.resolve([]);
    await turns();
    expect(back.ids).toEqual([]);
  });
});
