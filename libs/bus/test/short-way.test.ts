import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { silentLog } from '@penstock/telemetry/log';
import { currentRequest, withRequest } from '@penstock/telemetry/request';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Bus,
  connectBus,
  ensureStreams,
  LATER,
  linkThreads,
  openDeliveryLog,
  type Responder,
} from '../src/index.ts';

let broker: TestBroker;
/** Answers itself. */
let bus: Bus;
let other: Bus;

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  [bus, other] = await Promise.all([
    connectBus({ servers: broker.url, name: 'both', answersItself: true }),
    connectBus({ servers: broker.url, name: 'other' }),
  ]);
});
afterEach(() => Promise.all([bus.close(0), other.close(0)]));

const soon = { timeoutMs: 5_000 };

/** What the broker passes on from here on, request or answer. */
async function listened(): Promise<readonly string[]> {
  const passed: string[] = [];
  other.subscribe('>', (_, { subject }) => passed.push(subject));
  await other.flush();
  return passed;
}

/** What has come by the broker until now has been seen. */
async function settled(): Promise<void> {
  await bus.flush();
  await other.flush();
}

describe('a request that a process asks of itself', () => {
  it('is answered past the broker, wildcards and long answers included', async () => {
    const passed = await listened();
    const long = 'ä'.repeat(800_000);
    bus.respond<number, number>('one.value', (n) => n * 2);
    bus.respond<string, unknown>('two.*.by', (text, { subject }) => ({ text, subject }));
    bus.respond('three.>', () => long);
    bus.respond('bytes', () => ({ ok: true, value: { data: Buffer.from([0, 1, 255]) } }));
    expect(await bus.request('one.value', 21, soon)).toBe(42);
    expect(await bus.request('two.x.by', 'a', soon)).toEqual({ text: 'a', subject: 'two.x.by' });
    expect(await bus.request('three.a.b', null, soon)).toBe(long);
    expect(await bus.request('bytes', null, soon)).toEqual({ ok: true, value: { data: Buffer.from([0, 1, 255]) } });
    await settled();
    expect(passed).toEqual([]);
  });

  it('finds nobody by a subject that is only like that of a responder', async () => {
    for (const subject of ['a.*', 'b.>', 'c.d']) bus.respond(subject, () => true);
    for (const subject of ['a', 'a.b.c', 'b', 'c', 'c.d.e'])
      await expect(bus.request(subject, null, soon)).rejects.toMatchObject({ tag: 'NoResponders' });
  });

  it('is handled in a later turn, in the order of sending, and shares nothing with its sender (SHORTWAY-1)', async () => {
    const seen: unknown[] = [];
    bus.respond<{ n: number }, null>('order', (body) => {
      seen.push(body.n, currentRequest());
      return null;
    });
    const body = { n: 1 };
    const first = withRequest({ id: 'r-1' }, () => bus.request('order', body, soon));
    body.n = 2;
    const second = bus.request('order', body, soon);
    await Promise.resolve();
    expect(seen).toEqual([]);
    await Promise.all([first, second]);
    expect(seen).toEqual([1, undefined, 2, undefined]);
  });

  it('says for which request it is sent', async () => {
    bus.respond<null, unknown>('whose', (_, { request }) => request ?? 'none');
    expect(await withRequest({ id: 'r-1' }, () => bus.request('whose', null, soon))).toEqual({ id: 'r-1' });
  });

  it('fails as by the broker: by a handler that throws, by silence, and where the responder has stopped', async () => {
    bus.respond('throws', () => {
      throw new Error('secret');
    });
    bus.respond('silent', (_, call) => {
      call.drop();
      return LATER;
    });
    const stopped = bus.respond('stopped', () => true);
    expect(await bus.request('stopped', null, soon)).toBe(true);
    const onItsWay = bus.request('stopped', null, { timeoutMs: 50 });
    stopped.stop();
    await expect(onItsWay).rejects.toMatchObject({ tag: 'RequestTimeout' });
    await expect(bus.request('stopped', null, soon)).rejects.toMatchObject({ tag: 'NoResponders' });
    await expect(bus.request('throws', null, soon)).rejects.toMatchObject({ tag: 'RemoteError', failure: 'failed' });
    await expect(bus.request('silent', null, { timeoutMs: 20 })).rejects.toMatchObject({ tag: 'RequestTimeout' });
    await expect(bus.request('throws', 'x'.repeat(2_000_000), soon)).rejects.toMatchObject({ tag: 'MessageTooLarge' });
  });

  it('fails with the connection to the broker, and an answer that comes later is nobody’s', async () => {
    const own = await startTestBroker();
    const cut = await connectBus({ servers: own.url, name: 'cut', answersItself: true });
    const calls: Responder<string>[] = [];
    let arrived = Promise.withResolvers<void>();
    cut.respond<null, string>('hangs', (_, call) => {
      calls.push(call);
      arrived.resolve();
      return LATER;
    });
    const answer = cut.request('hangs', null, { timeoutMs: 600_000 }).catch((cause: unknown) => cause);
    await arrived.promise;
    const away = once(cut.events, 'disconnected');
    await own.kill();
    await away;
    expect(await answer).toMatchObject({ tag: 'BrokerAway', sent: true });
    await expect(cut.request('hangs', null, soon)).rejects.toMatchObject({ tag: 'BrokerAway', sent: false });
    calls[0]?.answer('nobody hears it');
    arrived = Promise.withResolvers<void>();
    const back = once(cut.events, 'reconnected');
    await own.restart();
    await back;
    const again = cut.request('hangs', null, soon);
    await arrived.promise;
    calls[1]?.answer('heard');
    expect(await again).toBe('heard');
    await cut.close(0);
    await own.stop();
  });

  it('is handled in the order of sending across a loss of the connection, and never by two ways (SHORTWAY-3)', async () => {
    const own = await startTestBroker();
    const cut = await connectBus({ servers: own.url, name: 'cut', answersItself: true });
    const seen: number[] = [];
    cut.respond<number, number>('order', (n) => {
      seen.push(n);
      return n;
    });
    const send = (n: number): Promise<unknown> => cut.request('order', n, soon).catch((error: unknown) => error);
    const under = [send(1), send(2)];
    // As the connection is told to be gone, and to be there again.
    cut.events.on('disconnected', () => under.push(send(3)));
    cut.events.on('reconnected', () => under.push(send(4), send(5)));
    const [away, back] = [once(cut.events, 'disconnected'), once(cut.events, 'reconnected')];
    await own.kill();
    await away;
    await own.restart();
    await back;
    under.push(send(6));
    // The first two are handled however early it breaks, and their answers may be lost with it.
    const [first, second, ...later] = await Promise.all(under);
    const lost = expect.objectContaining({ sent: true });
    expect([
      [1, 2],
      [1, lost],
      [lost, lost],
    ]).toContainEqual([first, second]);
    expect(later).toEqual([expect.objectContaining({ sent: false }), 4, 5, 6]);
    await cut.flush();
    expect(seen).toEqual([1, 2, 4, 5, 6]);
    await cut.close(0);
    await own.stop();
  });

  it('goes by the broker where responders share their work (SHORTWAY-2), and where another process answers', async () => {
    bus.respond('shared', () => 'own', { queue: 'all' });
    other.respond('elsewhere', () => 'other');
    const passed = await listened();
    await settled();
    expect(await bus.request('shared', null, soon)).toBe('own');
    expect(await bus.request('elsewhere', null, soon)).toBe('other');
    await settled();
    expect(passed).toContain('shared');
  });

  it('to what is stored goes to the broker, whoever here would answer it', async () => {
    await ensureStreams(other, { partitions: 1, journalBytesMax: 16 * 2 ** 20, logsBytesMax: 16 * 2 ** 20 });
    bus.respond('delivery.>', () => LATER);
    await bus.flush();
    const log = openDeliveryLog(bus);
    expect(await log.persist('id', Buffer.from('"text"'), { lane: 'lane', host: 'host' })).toMatchObject({
      stored: true,
    });
    expect(Buffer.from((await log.find('id', 'lane')) ?? []).toString()).toBe('"text"');
  });

  it('of another process is answered by the broker as ever', async () => {
    bus.respond<number, number>('double', (n) => n * 2);
    await settled();
    expect(await other.request('double', 21, soon)).toBe(42);
  });
});

describe('a message that its receiver cannot handle (WIRE-3)', () => {
  /** A bus that cannot tell the first error that it meets: that leaves the border of handlers, and would go on to whoever brought the message. */
  async function faulty(): Promise<{ readonly bus: Bus; readonly told: () => readonly unknown[] }> {
    const told: unknown[] = [];
    let isFirst = true;
    const error = (fields: { readonly border?: string }): void => {
      if (isFirst) {
        isFirst = false;
        throw new Error('the log is full');
      }
      told.push(fields.border);
    };
    const log = { ...silentLog, error };
    const made = await connectBus({ servers: broker.url, name: 'faulty', answersItself: true, log });
    made.respond<number, number>('third', (n) => {
      if (n === 2) throw new Error('a handler’s fault');
      return n;
    });
    await made.flush();
    return { bus: made, told: () => told };
  }
  const answersOf = (asking: Bus): Promise<unknown[]> =>
    Promise.all(
      [1, 2, 3, 4].map((n) =>
        asking
          .request('third', n, { timeoutMs: n === 2 ? 200 : 5_000 })
          .catch(({ tag }: { readonly tag: string }) => tag),
      ),
    );
  const expected = [1, 'RequestTimeout', 3, 4];

  it('costs itself alone where it came by the short way, and is told', async () => {
    const { bus: made, told } = await faulty();
    expect(await answersOf(made)).toEqual(expected);
    expect(told()).toEqual(['bus.message']);
    await made.close(0);
  });

  it('costs itself alone where it came by the broker, whose connection is read on', async () => {
    const { bus: made, told } = await faulty();
    expect(await answersOf(other)).toEqual(expected);
    expect(told()).toEqual(['bus.message']);
    expect(await other.request('third', 5, soon)).toBe(5);
    await made.close(0);
  });

  it('costs itself alone where it came by the line of another thread', async () => {
    const { bus: made, told } = await faulty();
    const ports = new MessageChannel();
    const linked = new Promise<void>((resolve) => {
      ports.port2.on('message', (crossing: { answers?: string }) => {
        if (crossing.answers === 'third') resolve();
      });
    });
    linkThreads(made, ports.port1);
    linkThreads(bus, ports.port2);
    await linked;
    const passed = await listened();
    expect(await answersOf(bus)).toEqual(expected);
    expect(told()).toEqual(['bus.message']);
    await settled();
    expect(passed).toEqual([]);
    ports.port1.close();
    await made.close(0);
  });
});

describe('a line between the buses of two threads', () => {
  let asking: Bus;
  let ports: MessageChannel;

  beforeEach(async () => {
    asking = await connectBus({ servers: broker.url, name: 'asking', answersItself: true });
    ports = new MessageChannel();
  });
  afterEach(async () => {
    ports.port1.close();
    await asking.close(0);
  });

  /** Those on `port` know that the others answer, or no more. */
  const told = (port: MessagePort, subject: string, isAnswered = true): Promise<void> =>
    new Promise((resolve) => {
      port.on('message', (crossing: { answers?: string; isAnswered?: boolean }) => {
        if (crossing.answers === subject && crossing.isAnswered === isAnswered) resolve();
      });
    });
  /** What `bus` answers by now is known to `asking`. */
  const linked = async (...subjects: string[]): Promise<void> => {
    linkThreads(bus, ports.port1);
    linkThreads(asking, ports.port2);
    await Promise.all(subjects.map((subject) => told(ports.port2, subject)));
  };

  it('is asked past the broker, and says for whom', async () => {
    bus.respond<number, unknown>('before', (n, { subject, request }) => [n, subject, request]);
    await linked('before');
    const later = [told(ports.port2, 'after.*'), told(ports.port1, 'back')];
    bus.respond<{ data: Uint8Array }, unknown>('after.*', ({ data }) => ({ ok: true, value: { data } }));
    asking.respond('back', () => 'asked back');
    await Promise.all(later);
    const passed = await listened();
    expect(await withRequest({ id: 'r-1' }, () => asking.request('before', 7, soon))).toEqual([
      ...[7, 'before'],
      { id: 'r-1' },
    ]);
    const data = Buffer.from('some bytes of a pool');
    expect(await asking.request('after.x', { data }, soon)).toEqual({ ok: true, value: { data } });
    expect(data.toString()).toBe('some bytes of a pool');
    expect(await bus.request('back', null, soon)).toBe('asked back');
    await settled();
    expect(passed).toEqual([]);
  });

  it('brings what is too long for it, and what is more than may wait, by the broker (THREADLINE-1)', async () => {
    const long = 'ä'.repeat(800_000);
    bus.respond('long', () => long);
    bus.respond<number, number>('many', (n) => n * 2);
    await linked('long', 'many');
    await settled();
    const passed = await listened();
    expect(await asking.request('long', null, soon)).toBe(long);
    const numbers = Array.from({ length: 100 }, (_, n) => n);
    expect(await Promise.all(numbers.map((n) => asking.request('many', n, soon)))).toEqual(numbers.map((n) => n * 2));
    await settled();
    const overflown = passed.filter((subject) => subject === 'many').length;
    expect(overflown).toBe(100 - 32);
  });

  it('that has ended, or whose responder has, leaves all to the broker', async () => {
    const responder = bus.respond('stopped', () => true);
    bus.respond('still', () => true);
    await linked('stopped', 'still');
    await settled();
    expect(await asking.request('stopped', null, soon)).toBe(true);
    const over = told(ports.port2, 'stopped', false);
    responder.stop();
    await Promise.all([over, settled()]);
    await expect(asking.request('stopped', null, soon)).rejects.toMatchObject({ tag: 'NoResponders' });
    const closed = once(ports.port2, 'close');
    ports.port1.close();
    await closed;
    expect(await asking.request('still', null, soon)).toBe(true);
  });

  it('is none where a bus does not answer itself', async () => {
    linkThreads(other, ports.port1);
    linkThreads(asking, ports.port2);
    other.respond('elsewhere', () => 'yes');
    await other.flush();
    expect(await asking.request('elsewhere', null, soon)).toBe('yes');
  });
});
