import { Long, MongoClient, type Db } from 'mongodb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openStore, runCollections, RunsRepository, storeAddressOf, type CollectionSpec } from '../src/index.ts';
import { withMongoServer } from './mongodb/index.ts';
import { MongoPlace, spec, thing } from './mongodb-support.ts';
import { runDocument, runId } from './support.ts';

await withMongoServer('databases of MongoDB', (server) => {
  describe(`a database of ${server.name}`, () => {
    let place: MongoPlace;
    let client: MongoClient;
    let database: Db;
    beforeEach(async () => {
      place = await MongoPlace.make(server);
      client = new MongoClient(place.directUrl);
      database = client.db();
    });
    afterEach(async () => {
      await client.close();
      await place.remove();
    });
    const schema = () =>
      database.collection<{ _id: string; format?: number; fields?: Record<string, string> }>('_schema');

    it('gets its indexes when it is opened, by several processes at once, and again', async () => {
      await Promise.all(Array.from({ length: 4 }, () => place.open()));
      await place.open();
      const indexes = await database.collection(spec.name).indexes();
      expect(indexes.map(({ name, key }) => [name, key])).toEqual(
        expect.arrayContaining([
          ['owner', { owner: 1, _id: 1 }],
          ['rank', { rank: 1, _id: 1 }],
        ]),
      );
      expect(indexes).toHaveLength(3);
      expect(await schema().findOne({ _id: spec.name })).toMatchObject({ fields: spec.fields });
    });

    it('keeps what a newer release has added', async () => {
      await place.open({
        collections: [{ ...spec, fields: { ...spec.fields, label: 'string' }, indexes: [...spec.indexes, ['label']] }],
      });
      await place.open();
      expect(await schema().findOne({ _id: spec.name })).toMatchObject({ fields: { ...spec.fields, label: 'string' } });
      expect((await database.collection(spec.name).indexes()).map(({ name }) => name)).toContain('label');
    });

    it('of another program is refused, and left as it was', async () => {
      await database.collection(spec.name).insertOne({ diary: 'dear' });
      await expect(place.open()).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        retryable: false,
        message: expect.stringContaining("'things' is another program's") as unknown,
      });
      expect((await database.listCollections().toArray()).map(({ name }) => name)).toEqual([spec.name]);
    });

    it('of a newer release is refused with both numbers', async () => {
      await (await place.open()).close();
      await schema().updateOne({ _id: '_format' }, { $set: { format: 7 } });
      await expect(place.open()).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        message: expect.stringContaining('format 7; this one knows 1') as unknown,
      });
    });

    it('whose field has another type is refused with the field and both types', async () => {
      await (await place.open()).close();
      const other = { ...spec, fields: { ...spec.fields, rank: 'string' } } as const satisfies CollectionSpec;
      await expect(place.open({ collections: [other] })).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        message: expect.stringMatching(
          /'rank' of the collection 'things' is kept as integer, and this release wants string/,
        ) as unknown,
      });
    });

    it('whose index has other fields is refused with its name', async () => {
      await (await place.open()).close();
      await database.collection(spec.name).dropIndex('rank');
      await database.collection(spec.name).createIndex({ owner: 1, rank: 1 }, { name: 'rank' });
      await expect(place.open()).rejects.toMatchObject({
        tag: 'StoreIncompatible',
        message: expect.stringContaining("index 'rank'") as unknown,
      });
    });

    it('with documents that are none of ours says that they are damaged, by their id', async () => {
      const { things } = await place.things();
      const raw = database.collection<{ _id: unknown }>(spec.name);
      await raw.insertMany([
        { _id: 'field', rank: 'three' },
        { _id: 'part', text: 5 },
        { _id: 'bytes', text: Buffer.from([9, 9]) },
      ] as never);
      for (const id of ['field', 'part', 'bytes'])
        await expect(things.get(id)).rejects.toMatchObject({
          tag: 'StoreCorrupt',
          retryable: false,
          message: expect.stringContaining(`'${id}'`) as unknown,
        });
      expect(await things.get('part', { parts: [] })).toMatchObject({ id: 'part' });
    });

    it('lists documents of an older release, without the field ordered by, where its empty value stands', async () => {
      const { things } = await place.things();
      const ranks = [-2, -1, 0, 1, 2, undefined, undefined, 0, -1, 2, undefined];
      const raw = database.collection<{ _id: string }>(spec.name);
      await raw.insertMany(
        ranks.map((rank, index) => ({ _id: `d${index}`, owner: 'me', ...(rank === undefined ? {} : { rank }) })),
      );
      const documents = ranks.map((rank, index) => ({ id: `d${index}`, rank: rank ?? 0 }));
      for (const direction of ['asc', 'desc'] as const) {
        const sign = direction === 'asc' ? 1 : -1;
        const sorted = documents.toSorted((a, b) => sign * (a.rank - b.rank || (a.id < b.id ? -1 : 1)));
        for (const range of [{}, { gt: -2 }, { gte: 0 }, { lt: 2 }, { gt: 0 }, { lte: 0 }, { gte: -1, lt: 1 }]) {
          const { gt = -9, gte = -9, lt = 9, lte = 9 } = range as Record<string, number>;
          const expected = sorted
            .filter(({ rank }) => rank > gt && rank >= gte && rank < lt && rank <= lte)
            .map(({ id }) => id);
          const seen: string[] = [];
          for (let after: { id: string; value: number } | undefined; ;) {
            const page = await things.list({
              where: { rank: range },
              orderBy: { field: 'rank', direction },
              limit: 2,
              after,
              parts: [],
            });
            seen.push(...page.map(({ id }) => id));
            const last = page.at(-1);
            if (last === undefined || seen.length > expected.length) break;
            after = { id: last.id, value: last.rank };
          }
          expect(seen).toEqual(expected);
        }
      }
      expect(
        await things.deleteWhere({
          where: { rank: { lte: 0 } },
          orderBy: { field: 'rank', direction: 'asc' },
          limit: 100,
        }),
      ).toBe(documents.filter(({ rank }) => rank <= 0).length);
    });

    it('P8: a document without version fields counts as version (0, 0)', async () => {
      const { things } = await place.things();
      await database.collection<{ _id: string }>(spec.name).insertMany([{ _id: 'a' }, { _id: 'b' }, { _id: 'c' }]);
      expect(await things.replaceNewer([thing('a'), thing('b', { minor: 1 }), thing('c', { major: 1 })])).toEqual({
        stale: ['a'],
      });
      expect((await things.getMany(['b', 'c'])).map(({ major, minor }) => major + minor)).toEqual([1, 1]);
    });

    it('keeps large integers as integers', async () => {
      const { things } = await place.things();
      await things.insert(thing('a', { rank: Number.MAX_SAFE_INTEGER, minor: 2 ** 31 }));
      const stored = await database
        .collection<{ _id: string }>(spec.name)
        .findOne({ _id: 'a' }, { promoteLongs: false });
      expect(stored).toMatchObject({ rank: Long.fromNumber(Number.MAX_SAFE_INTEGER), minor: Long.fromNumber(2 ** 31) });
    });

    it('refuses a document that MongoDB’s own limit does not take, even deflated, before anything is sent', async () => {
      const { things } = await place.things();
      const noise = new Uint8Array(17 * 1024 * 1024);
      for (let from = 0; from < noise.byteLength; from += 65_536)
        crypto.getRandomValues(noise.subarray(from, from + 65_536));
      await expect(things.insert({ ...thing('a'), text: noise })).rejects.toMatchObject({
        tag: 'StoreUsageError',
        message: expect.stringContaining('MongoDB takes') as unknown,
      });
      await expect(things.replaceNewer([{ ...thing('a'), text: noise }])).rejects.toMatchObject({
        tag: 'StoreUsageError',
      });
      expect(place.proxy.takeCommands()).toEqual([]);
    });

    it('a document with a field of another type costs itself alone, and is in its lists', async () => {
      const store = await place.open({ collections: runCollections });
      const ids = Array.from({ length: 120 }, (_, index) => runId(119 - index));
      const saved = ids.map((id, index) => runDocument({ id, open: true, sequence: 1 + index }));
      await new RunsRepository(store).saveBatch(saved);
      const documents = database.collection<{ _id: string }>('runs');
      const wrong = { createdAt: '1763730000000', keepDays: 1.5, key: ['service'], ref: Long.MAX_VALUE };
      await documents.updateOne({ _id: runId(70) }, { $set: wrong });
      for (const viewCharactersMax of [0, 1_000_000]) {
        const runs = new RunsRepository(store, { viewCharactersMax });
        for (let read = 0; read < 2; read++)
          expect((await runs.page({ tenants: ['service'], limit: 120 })).map(({ id }) => id)).toEqual(ids);
        expect(await runs.exists([runId(70)])).toEqual(new Set([runId(70)]));
        await expect(runs.getAsOwner(runId(70))).rejects.toMatchObject({ tag: 'StoreCorrupt' });
        const found = await Array.fromAsync(runs.openOf(0));
        expect(found).toHaveLength(120);
        expect(found.filter((run) => 'unreadable' in run)).toMatchObject([{ id: runId(70), open: true, sequence: 50 }]);
      }
    });

    it('is opened by its address', async () => {
      const store = await openStore(storeAddressOf(place.directUrl), [spec]);
      expect(await store.collection(spec).insert(thing('a'))).toBe('inserted');
      await store.close();
      expect(await database.collection<{ _id: string }>(spec.name).findOne({ _id: 'a' })).not.toBeNull();
    });
  });
});
