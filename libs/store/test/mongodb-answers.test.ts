import type { Document } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandName, withMongoServer, type CommandRule } from './mongodb/index.ts';
import { MongoPlace, numbered, spec, thing } from './mongodb-support.ts';

const WRITES = ['insert', 'update', 'delete'];

await withMongoServer('the answers and errors of a MongoDB server', (server) => {
  describe(`${server.name}, with answers put in its mouth`, () => {
    let place: MongoPlace;
    beforeEach(async () => {
      place = await MongoPlace.make(server);
    });
    afterEach(() => place.remove());

    const on = (name: string, rule: Partial<CommandRule> & Pick<CommandRule, 'answer'>) =>
      place.proxy.stub({ matches: (command) => commandName(command) === name, isForwarded: false, ...rule });
    const failure = (code: number, codeName = 'Stubbed', more: object = {}) => ({
      ok: 0,
      errmsg: 'stubbed',
      code,
      codeName,
      ...more,
    });
    const sent = (...names: string[]) =>
      place.proxy.takeCommands().filter((command) => names.includes(commandName(command)));

    it.each([
      ['NotWritablePrimary', 10107],
      ['ShutdownInProgress', 91],
      ['PrimarySteppedDown', 189],
      ['InterruptedAtShutdown', 11600],
      ['InterruptedDueToReplStateChange', 11602],
      ['NotPrimaryOrSecondary', 13436],
      ['HostUnreachable', 6],
      ['NetworkTimeout', 89],
      ['ExceededTimeLimit', 262],
      ['WriteConflict', 112],
      ['LinearizableReadConcernError', 187],
    ])('%s (%i) passes: the call is repeated until it does', async (codeName, code) => {
      const { things } = await place.things();
      for (const name of [...WRITES, 'find']) on(name, { times: 2, answer: failure(code, codeName) });
      expect(await things.insert(thing('a'))).toBe('inserted');
      expect(await things.replaceNewer([thing('a', { minor: 1 }), thing('b')])).toEqual({ stale: [] });
      expect(await things.get('a')).toMatchObject({ minor: 1 });
      expect(await things.delete('a')).toBe(true);
      expect(await things.list({ limit: 5 })).toEqual([thing('b')]);
    });

    it('a failure that does not pass is unavailable at the deadline, with the server’s code', async () => {
      const { things } = await place.things(1_500);
      on('insert', { answer: failure(189, 'PrimarySteppedDown') });
      await expect(things.insert(thing('a'))).rejects.toMatchObject({
        tag: 'StoreUnavailable',
        retryable: true,
        message: expect.stringMatching(/no answer within 1500 ms.*189/) as unknown,
      });
      expect(sent('insert').length).toBeGreaterThan(2);
    });

    it('an unknown failure that the server calls retryable is one', async () => {
      const { things } = await place.things();
      on('find', {
        times: 1,
        answer: failure(99_999, 'New', { errorLabels: ['RetryableError', 'SystemOverloadedError'] }),
      });
      expect(await things.get('a')).toBeNull();
    });

    it('a write that no majority has confirmed is asked for again, and known as one’s own', async () => {
      const { things } = await place.things();
      const unconfirmed = (original: Document) => ({
        ...original,
        writeConcernError: { code: 64, codeName: 'WriteConcernTimeout', errmsg: 'waiting for replication timed out' },
      });
      for (const name of WRITES) on(name, { times: 1, isForwarded: true, answer: unconfirmed });
      expect(await things.insert(thing('a'))).toBe('inserted');
      expect(await things.replaceNewer([thing('a', { minor: 1 })])).toEqual({ stale: [] });
      expect(await things.get('a')).toMatchObject({ minor: 1 });
    });

    it('a write that no majority ever confirms is unavailable', async () => {
      const { things } = await place.things(1_500);
      on('insert', {
        isForwarded: true,
        answer: (original) => ({ ...original, writeConcernError: { code: 64, errmsg: 'timed out' } }),
      });
      await expect(things.insert(thing('a'))).rejects.toMatchObject({
        tag: 'StoreUnavailable',
        message: expect.stringContaining('not confirmed by a majority') as unknown,
      });
    });

    it.each([
      [13, /may not do this/],
      [18, /user name or the password/],
      [14031, /disk of the server is full/],
      [8, /answered 8/],
    ])('code %i is for a person: unavailable at once, with a sentence', async (code, sentence) => {
      const { things } = await place.things();
      on('insert', { answer: failure(code) });
      await expect(things.insert(thing('a'))).rejects.toMatchObject({
        tag: 'StoreUnavailable',
        message: expect.stringMatching(sentence) as unknown,
      });
      expect(sent('insert')).toHaveLength(1);
    });

    it.each([
      [9, 'FailedToParse'],
      [10334, 'BSONObjectTooLarge'],
      [2, 'BadValue'],
    ])('code %i (%s) is the caller’s mistake, sent once', async (code, codeName) => {
      const { things } = await place.things();
      on('insert', { answer: failure(code, codeName) });
      on('update', { answer: { ok: 1, n: 0, writeErrors: [{ index: 0, code, errmsg: 'stubbed' }] } });
      await expect(things.insert(thing('a'))).rejects.toMatchObject({ tag: 'StoreUsageError', retryable: false });
      expect(sent('insert')).toHaveLength(1);
    });

    it('P8: a duplicate that is gone again by the time of the replacement is inserted', async () => {
      const { things } = await place.things();
      on('insert', { times: 1, answer: { ok: 1, n: 0, writeErrors: [{ index: 0, code: 11000, errmsg: 'E11000' }] } });
      expect(await things.replaceNewer([thing('a')])).toEqual({ stale: [] });
      expect(await things.get('a')).toEqual(thing('a'));
    });

    it('P8: a replacement that another has overtaken is stale, one that met a lower version in between is repeated', async () => {
      const { things } = await place.things();
      await things.replaceNewer([thing('high', { minor: 5 }), thing('low', { minor: 1 })]);
      // As if both had been written between the two commands: the first update met neither.
      on('update', { times: 1, answer: { ok: 1, n: 0, nModified: 0 } });
      expect(await things.replaceNewer([thing('high', { minor: 4 }), thing('low', { minor: 2 })])).toEqual({
        stale: ['high'],
      });
      expect((await things.list({ limit: 5 })).map(({ minor }) => minor)).toEqual([5, 2]);
    });

    it('P8: of versions written at once by several processes the highest stays, whatever comes between their commands', async () => {
      // Commands of the processes still interleave; each is decided alone, which is all that is relied on.
      place.proxy.oneWriteAtATime();
      const stores = await Promise.all(Array.from({ length: 4 }, () => place.open()));
      const ids = numbered(25).map(({ id }) => id);
      const written = await Promise.all(
        Array.from({ length: 24 }, async (_, turn) => {
          const minor = (turn * 7) % 24;
          const { stale } = await (stores[turn % 4] as (typeof stores)[number])
            .collection(spec)
            .replaceNewer(ids.map((id) => thing(id, { minor, text: String(minor) })));
          return { minor, stale };
        }),
      );
      expect(written.find(({ minor }) => minor === 23)?.stale).toEqual([]);
      for (const document of (await stores[0]?.collection(spec).list({ limit: 100 })) ?? [])
        expect(document).toMatchObject({ minor: 23, text: '23' });
      const inserts = await Promise.all(
        Array.from({ length: 40 }, (_, turn) =>
          (stores[turn % 4] as (typeof stores)[number]).collection(spec).insert(thing(`once-${turn % 5}`)),
        ),
      );
      expect(inserts.filter((outcome) => outcome === 'inserted')).toHaveLength(5);
    });

    it('sends at most twenty writes a command, each to a majority’s journal and with the time that is left', async () => {
      const { things } = await place.things(4_000);
      await things.replaceNewer(numbered(90));
      await things.replaceNewer(numbered(90, { minor: 1 }));
      await things.delete('n-000');
      const commands = sent(...WRITES);
      expect(
        commands.map((command) => ((command['updates'] ?? command['documents'] ?? []) as unknown[]).length),
      ).toSatisfy((counts: number[]) => counts.every((count) => count <= 20));
      expect(commands.length).toBeGreaterThanOrEqual(16);
      for (const command of commands) {
        expect(command['writeConcern']).toMatchObject({
          w: 'majority',
          j: true,
          wtimeout: expect.toSatisfy((ms: number) => ms > 0 && ms <= 4_000) as unknown,
        });
        expect(command['maxTimeMS']).toSatisfy((ms: number) => ms > 0 && ms <= 4_000);
      }
    });

    it.each([
      ['replica set', { setName: 'rs0' }, { level: 'linearizable' }],
      ['sharded cluster', { msg: 'isdbgrid' }, { level: 'majority' }],
      ['single server', { setName: undefined }, undefined],
    ])('reads of a %s are as strong as it takes to see every settled write', async (_, hello, readConcern) => {
      place.proxy.stub({
        matches: (command) => commandName(command) === 'hello' && command['maxTimeMS'] !== undefined,
        isForwarded: true,
        answer: ({ setName: __, ...original }) => ({ ...original, ...hello }),
      });
      const { things } = await place.things();
      await Promise.all([
        things.get('a'),
        things.getMany(['a', 'b']),
        things.list({ limit: 5 }),
        things.replaceNewer([thing('a')]),
      ]);
      await things.replaceNewer([thing('a')]);
      const finds = sent('find');
      expect(finds.length).toBeGreaterThanOrEqual(4);
      for (const find of finds) {
        expect(find['readConcern']).toEqual(readConcern);
        expect((find['$readPreference'] as Document | undefined)?.['mode'] ?? 'primary').toMatch(/^primary/);
      }
    });

    it('a reply that is full before it is whole is continued where it ended', async () => {
      const { things } = await place.things();
      const documents = numbered(17);
      await things.replaceNewer(documents);
      on('find', {
        isForwarded: true,
        answer: (original) => {
          const cursor = original['cursor'] as { readonly firstBatch: readonly Document[] };
          return cursor.firstBatch.length <= 3
            ? original
            : { ...original, cursor: { ...cursor, id: 77, firstBatch: cursor.firstBatch.slice(0, 3) } };
        },
      });
      expect(await things.list({ limit: 12 })).toEqual(documents.slice(0, 12));
      const byRank = documents.toSorted((a, b) => b.rank - a.rank || (a.id < b.id ? 1 : -1));
      expect(
        await things.list({ orderBy: { field: 'rank', direction: 'desc' }, where: { rank: { gte: 0 } }, limit: 100 }),
      ).toEqual(byRank);
      expect((await things.getMany(documents.map(({ id }) => id))).map(({ id }) => id).toSorted()).toEqual(
        documents.map(({ id }) => id),
      );
      expect(await things.deleteWhere({ limit: 10 })).toBe(10);
      expect(sent('killCursors').length).toBeGreaterThan(5);
    });

    it('an older server is refused with its release and the one that is needed', async () => {
      place.proxy.stub({
        matches: (command) => commandName(command) === 'hello' && command['maxTimeMS'] !== undefined,
        isForwarded: true,
        answer: (original) => ({ ...original, maxWireVersion: 17 }),
      });
      await expect(place.open()).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        retryable: false,
        message: expect.stringMatching(/the server is MongoDB 6\.0; Penstock needs MongoDB 7\.0 or newer/) as unknown,
      });
    });

    it('an index that cannot be made beside another one is refused with its name', async () => {
      on('createIndexes', { answer: failure(86, 'IndexKeySpecsConflict') });
      await expect(place.open()).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        message: expect.stringContaining('86') as unknown,
      });
    });
  });
});
