import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandName, withMongoServer } from './mongodb/index.ts';
import { MongoPlace, numbered, thing } from './mongodb-support.ts';

await withMongoServer('outages of MongoDB', (server) => {
  describe(`${server.name}, with a network that fails`, () => {
    let place: MongoPlace;
    beforeEach(async () => {
      place = await MongoPlace.make(server);
    });
    afterEach(() => place.remove());
    const unavailable = { tag: 'StoreUnavailable', retryable: true };

    it('down for less than a call’s time: the call takes as long, and nobody notices', async () => {
      const { things } = await place.things();
      await place.proxy.down();
      const calls = [
        things.insert(thing('a')),
        things.replaceNewer(numbered(30)),
        things.get('a'),
        things.deleteWhere({ limit: 5 }),
      ] as const;
      await place.proxy.heal();
      const [inserted, replaced] = await Promise.all(calls);
      expect([inserted, replaced]).toEqual(['inserted', { stale: [] }]);
    });

    it('down for longer: every call is unavailable within its deadline and names the store; well again afterwards', async () => {
      const { store, things } = await place.things(1_500);
      await place.proxy.down();
      const calls = [
        things.insert(thing('a')),
        things.replaceNewer([thing('b')]),
        things.get('a'),
        things.list({ limit: 5 }),
        things.delete('a'),
        store.ping(),
      ];
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome).toMatchObject({
          status: 'rejected',
          reason: {
            ...unavailable,
            message: expect.stringMatching(/no answer within 1500 ms; the last attempt: /) as unknown,
          },
        });
      }
      await place.proxy.heal();
      await store.ping();
      expect(await things.insert(thing('c'))).toBe('inserted');
    });

    it('not there at all: opening is unavailable, without a word of the credentials', async () => {
      await place.proxy.down();
      const { openMongoStore } = await import('../src/index.ts');
      const url = `mongodb://ada:s3cret%2Fword@127.0.0.1:${place.proxy.port}/penstock`;
      const error: unknown = await openMongoStore({ url, collections: [], deadlineMs: 600 }).catch(
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ ...unavailable, store: `mongodb://127.0.0.1:${place.proxy.port}/penstock` });
      expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/ada|s3cret/);
    });

    it('slow: calls take longer, and past their deadline they are unavailable; well again afterwards', async () => {
      const { things } = await place.things(1_500);
      place.proxy.slow(100);
      expect(await things.insert(thing('a'))).toBe('inserted');
      expect(await things.get('a')).toMatchObject({ id: 'a' });
      place.proxy.slow(4_000);
      await expect(things.get('a')).rejects.toMatchObject({
        ...unavailable,
        message: expect.stringContaining('no answer within 1500 ms') as unknown,
      });
      await place.proxy.heal();
      expect(await things.get('a')).toMatchObject({ id: 'a' });
    });

    it('half-open: a dead connection is found out in time for the call to be repeated on another', async () => {
      const { things } = await place.things(5_000);
      await things.insert(thing('a'));
      place.proxy.halfOpen();
      expect(await things.insert(thing('b'))).toBe('inserted');
      expect(await things.list({ limit: 5, parts: [] })).toHaveLength(2);
    });

    it('frozen: every call settles at its deadline, and the store is well again when the server is', async () => {
      const { store, things } = await place.things(2_000);
      place.proxy.freeze();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 30 }, (_, index) => things.insert(thing(`x${index}`))),
      );
      expect(
        outcomes.map((outcome) =>
          outcome.status === 'rejected' ? (outcome.reason as { tag: string }).tag : 'settled',
        ),
      ).toEqual(Array.from({ length: 30 }, () => 'StoreUnavailable'));
      await place.proxy.heal();
      await store.ping();
      expect(await things.insert(thing('after'))).toBe('inserted');
    });

    it('a connection cut before the server has seen the write: it is done once', async () => {
      const { things } = await place.things();
      for (const name of ['insert', 'update', 'find', 'delete'])
        place.proxy.stub({
          matches: (command) => commandName(command) === name,
          times: 1,
          isForwarded: false,
          answer: 'cut',
        });
      expect(await things.insert(thing('a'))).toBe('inserted');
      expect(await things.replaceNewer([thing('a', { minor: 1 })])).toEqual({ stale: [] });
      expect(await things.get('a')).toMatchObject({ minor: 1 });
      expect(await things.delete('a')).toBe(true);
    });

    it('a connection cut after the server has done the write: its call knows its own', async () => {
      const { things } = await place.things();
      const cutAfter = (name: string) =>
        place.proxy.stub({
          matches: (command) => commandName(command) === name,
          times: 1,
          isForwarded: true,
          answer: 'cut',
        });
      cutAfter('insert');
      expect(await things.insert(thing('a'))).toBe('inserted');
      expect(await things.insert(thing('a'))).toBe('duplicate');
      cutAfter('update');
      expect(await things.replaceNewer([thing('a', { minor: 1 }), thing('b')])).toEqual({ stale: [] });
      cutAfter('insert');
      // Of one the same version is there, of the others each is new or lower.
      expect(await things.replaceNewer([thing('a', { minor: 1 }), thing('b', { minor: 1 }), thing('c')])).toEqual({
        stale: ['a'],
      });
      cutAfter('delete');
      expect(await things.deleteWhere({ limit: 2 })).toBe(2);
      expect((await things.list({ limit: 5 })).map(({ id }) => id)).toEqual(['c']);
    });

    it('connections cut under load: what was said to be written is there, once', async () => {
      const { things } = await place.things();
      let seen = 0;
      place.proxy.stub({
        matches: (command) => ['insert', 'update'].includes(commandName(command)) && ++seen % 7 === 0,
        isForwarded: true,
        answer: 'cut',
      });
      const inserts = Promise.all(Array.from({ length: 60 }, (_, index) => things.insert(thing(`i-${index}`))));
      const replaces = things.replaceNewer(numbered(100));
      expect(new Set(await inserts)).toEqual(new Set(['inserted']));
      expect(await replaces).toEqual({ stale: [] });
      expect(await things.list({ limit: 1000, parts: [] })).toHaveLength(160);
    });

    it('closing while the server is away ends the calls under way, and does not wait for their deadlines', async () => {
      const { store, things } = await place.things(60_000);
      await place.proxy.down();
      const call = things.insert(thing('a')).catch((error: unknown) => error);
      const closed = store.close();
      expect(await call).toMatchObject(unavailable);
      await closed;
      await expect(things.get('a')).rejects.toMatchObject(unavailable);
    });

    it('bounds the calls under way: beyond, they are refused at once', async () => {
      const { things } = await place.things(2_000);
      place.proxy.freeze();
      const outcomes = await Promise.allSettled(Array.from({ length: 4_100 }, (_, index) => things.get(`x${index}`)));
      const reasons = outcomes.map((outcome) =>
        outcome.status === 'rejected' ? String((outcome.reason as Error).message) : '',
      );
      expect(reasons.filter((reason) => reason.includes('busy with 4000 calls'))).toHaveLength(100);
      await place.proxy.heal();
      expect(await things.get('x')).toBeNull();
    });
  });
});
