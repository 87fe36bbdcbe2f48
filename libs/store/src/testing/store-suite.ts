/**
 * The contract of the port as tests: every adapter passes them. `make` gives a fresh, empty place to store; `open` may
 * be called several times, as several services do, and reaches the same documents each time.
 */
import { appendFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore, Selection } from '../port.ts';
import { anyStep, answersTo, suiteSpec } from './random-histories.ts';
import { compare, StoreModel, type ModelDocument } from './store-model.ts';

export interface StorePlace {
  open(collections: readonly CollectionSpec[]): Promise<DocumentStore>;
  remove(): Promise<void>;
}

export interface StoreSuiteOptions {
  /** False where the server is known not to decide races; those tests are then reported as skipped. */
  readonly concurrency: boolean;
  /** False where the server is known to sort strings by UTF-16 units, which differs beyond U+FFFF. Default true. */
  readonly sortsByCodePoints?: boolean;
  /** Random histories tried; each has some twenty calls. */
  readonly historiesMax?: number;
}

type Spec = typeof suiteSpec;
type Thing = DocumentOf<Spec>;

const BIG_BYTES = 5 * 1024 * 1024;
const ODD_STRINGS = [
  ' ',
  '0',
  '-1',
  'null',
  'constructor',
  '__proto__',
  "'; DROP TABLE things; --",
  '"quoted"',
  '%_*?',
  '$where',
  'a.b',
  'a\u0000b',
  '\u0000',
  'line\nfeed\r\n\t',
  'ä',
  'a\u0308',
  'ß',
  'İ',
  '\u200d',
  '\ufeffbom',
  '\uffff',
  '𝒳',
  '👩‍👩‍👧',
  'Ω'.repeat(300),
  '\ue000',
  '\u{10ffff}',
  'x'.repeat(1024),
];

export const storeSuite = (name: string, make: () => Promise<StorePlace>, options: StoreSuiteOptions): void => {
  // Told at the end of `npm test`, where nobody overlooks it.
  const notRunFile = process.env['PENSTOCK_NOT_RUN_FILE'];
  const notRun = (what: string): void => {
    if (notRunFile !== undefined) appendFileSync(notRunFile, `${name}: ${what}\n`);
  };
  const { sortsByCodePoints = true } = options;
  if (!options.concurrency)
    notRun("the part of the store's contract about concurrency, which this server does not keep");
  if (!sortsByCodePoints)
    notRun("the order of strings beyond U+FFFF, of the store's contract: this server sorts by UTF-16 units");
  describe(`${name}: the store's contract`, () => {
    let place: StorePlace;
    let store: DocumentStore;
    let things: Collection<Spec>;

    beforeEach(async () => {
      place = await make();
      store = await place.open([suiteSpec]);
      things = store.collection(suiteSpec);
    });
    afterEach(async () => {
      await store.close();
      await place.remove();
    });

    it('gives back what was inserted, field for field, and null for what was not', async () => {
      const document = thing({ id: 'a', rank: -5, open: true, text: '{"a":1}', note: 'ünïcödé' });
      expect(await things.insert(document)).toBe('inserted');
      expect(await things.get('a')).toEqual(document);
      expect(await things.get('b')).toBeNull();
      await store.ping();
    });

    it('keeps integers to the last one, strings of every kind and ids of every kind', async () => {
      for (const [index, odd] of ODD_STRINGS.entries()) {
        const document = thing({
          id: odd,
          owner: odd,
          rank: [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0][index % 3] ?? 0,
          text: odd.repeat(3),
          note: `${odd}${'pad '.repeat(600)}`,
        });
        expect(await things.insert(document)).toBe('inserted');
        expect(await things.get(odd)).toEqual(document);
        expect(await things.list({ where: { owner: odd }, limit: 5 })).toEqual([document]);
      }
      const all = await things.getMany(ODD_STRINGS, { parts: [] });
      expect(all.map(({ id }) => id).toSorted(compare)).toEqual(ODD_STRINGS.toSorted(compare));
      for (const odd of ODD_STRINGS) expect(await things.delete(odd)).toBe(true);
    });

    it('keeps bytes as bytes, empty ones too', async () => {
      for (const [index, bytes] of [
        new Uint8Array(),
        Uint8Array.of(0, 255, 1),
        Uint8Array.of(1, 1, 1),
        new Uint8Array(70_000).fill(7),
      ].entries()) {
        await things.insert({ ...thing({ id: `bytes-${index}` }), note: bytes });
        const stored = (await things.get(`bytes-${index}`))?.note;
        expect(stored).toBeInstanceOf(Uint8Array);
        expect(Buffer.compare(stored as Uint8Array, bytes)).toBe(0);
      }
    });

    it('keeps a part of 5 MiB, also one that does not deflate, and replaces it', async () => {
      const noise = Buffer.from(
        Array.from({ length: BIG_BYTES / 4 }, (_, index) => Math.imul(index, 2654435761) >>> 24),
      )
        .toString('latin1')
        .repeat(4)
        .slice(0, BIG_BYTES);
      await things.insert(thing({ id: 'big', text: noise, note: 'ab'.repeat(BIG_BYTES / 2) }));
      expect((await things.get('big'))?.text === noise).toBe(true);
      await things.replaceNewer([thing({ id: 'big', major: 1, text: 'small', note: noise })]);
      expect((await things.get('big', { parts: ['text'] }))?.text).toBe('small');
      expect((await things.get('big', { parts: ['note'] }))?.note === noise).toBe(true);
    });

    it('reads only the parts that are wanted', async () => {
      await things.insert(thing({ id: 'a', text: 'text', note: 'note' }));
      expect(Object.keys((await things.get('a', { parts: ['note'] })) ?? {})).toEqual([
        'id',
        'owner',
        'rank',
        'open',
        'major',
        'minor',
        'note',
      ]);
      expect(Object.keys((await things.list({ limit: 1, parts: [] }))[0] ?? {})).not.toContain('text');
      expect((await things.getMany(['a'], { parts: ['text'] }))[0]).not.toHaveProperty('note');
    });

    it('refuses the second insert of an id, and leaves the first', async () => {
      await things.insert(thing({ id: 'a', text: 'first' }));
      expect(await things.insert(thing({ id: 'a', text: 'second', major: 9 }))).toBe('duplicate');
      expect((await things.get('a'))?.text).toBe('first');
    });

    it('P8: writes over a lower version only, the first number before the second', async () => {
      const at = (major: number, minor: number) => thing({ id: 'a', major, minor, text: `${major}.${minor}` });
      const stored = async () => (await things.get('a'))?.text;
      expect(await things.replaceNewer([at(1, 5)])).toEqual({ stale: [] });
      for (const [major, minor] of [
        [1, 5],
        [1, 4],
        [0, 9],
      ] as const) {
        expect(await things.replaceNewer([at(major, minor)])).toEqual({ stale: ['a'] });
        expect(await stored()).toBe('1.5');
      }
      expect(await things.replaceNewer([at(1, 6)])).toEqual({ stale: [] });
      expect(await things.replaceNewer([at(2, 0)])).toEqual({ stale: [] });
      expect(await things.replaceNewer([at(1, 99)])).toEqual({ stale: ['a'] });
      expect(await stored()).toBe('2.0');
    });

    it('P8: says which of a batch were stale and writes the others', async () => {
      await things.replaceNewer(numbered(120).map((document) => ({ ...document, minor: 10 })));
      const batch = numbered(240).map((document, index) => ({
        ...document,
        minor: index % 3 === 0 ? 11 : 9,
        text: 'again',
      }));
      const { stale } = await things.replaceNewer(batch);
      const expected = batch.filter((document, index) => index < 120 && document.minor === 9).map(({ id }) => id);
      expect(stale.toSorted()).toEqual(expected.toSorted());
      expect((await things.list({ limit: 1000 })).filter(({ text }) => text === 'again')).toHaveLength(
        240 - expected.length,
      );
    });

    it('writes over what stands there in a lower version, and brings nothing back that was deleted', async () => {
      const at = (minor: number, text: string) => thing({ id: 'a', major: 1, minor, text });
      expect(await things.replaceStanding(at(1, 'first'))).toBe(false);
      expect(await things.get('a')).toBeNull();
      await things.insert(at(1, 'first'));
      expect(await things.replaceStanding(at(1, 'the same'))).toBe(false);
      expect((await things.get('a'))?.text).toBe('first');
      expect(await things.replaceStanding(at(2, 'second'))).toBe(true);
      expect(await things.get('a')).toEqual(at(2, 'second'));
      await things.delete('a');
      expect(await things.replaceStanding(at(3, 'third'))).toBe(false);
      expect(await things.get('a')).toBeNull();
    });

    it('gets many at once: each once, those that exist', async () => {
      await things.replaceNewer(numbered(300));
      const ids = numbered(500).map(({ id }) => id);
      const found = await things.getMany([...ids, 'n-0001', 'n-0001']);
      expect(found.map(({ id }) => id).toSorted()).toEqual(ids.slice(0, 300));
      expect(await things.getMany([])).toEqual([]);
    });

    it('lists page by page, in both directions, everything once', async () => {
      const documents = numbered(57);
      await things.replaceNewer(documents);
      for (const direction of ['asc', 'desc'] as const) {
        for (const field of ['id', 'rank'] as const) {
          const seen: string[] = [];
          let after: { id: string; value: number } | undefined;
          while (seen.length <= documents.length) {
            const page = await things.list({
              where: { owner: 'me' },
              orderBy: { field, direction },
              limit: 10,
              after,
              parts: [],
            });
            seen.push(...page.map(({ id }) => id));
            const last = page.at(-1);
            if (last === undefined) break;
            after = { id: last.id, value: last.rank };
          }
          const expected = documents.toSorted(
            (a, b) => (direction === 'asc' ? 1 : -1) * (compare(a[field], b[field]) || compare(a.id, b.id)),
          );
          expect(seen).toEqual(expected.map(({ id }) => id));
        }
      }
    });

    it('merges the lists of several values of a field', async () => {
      await things.replaceNewer(
        numbered(90).map((document, index) => ({ ...document, owner: `o${index % 3}`, open: index % 2 === 0 })),
      );
      const newest = await things.list({
        where: { owner: { in: ['o0', 'o2', 'o2', 'nobody'] } },
        orderBy: { field: 'id', direction: 'desc' },
        limit: 7,
        parts: [],
      });
      expect(newest.map(({ id }) => id)).toEqual([
        'n-0089',
        'n-0087',
        'n-0086',
        'n-0084',
        'n-0083',
        'n-0081',
        'n-0080',
      ]);
      const both = await things.list({
        where: { owner: { in: ['o1', 'o2'] }, open: { in: [true, false] }, rank: { gte: 3, lt: 5 } },
        orderBy: { field: 'rank', direction: 'asc' },
        limit: 100,
      });
      expect(both.every(({ owner, rank }) => owner !== 'o0' && (rank === 3 || rank === 4))).toBe(true);
      expect(both).toHaveLength(
        numbered(90).filter(({ rank }, index) => index % 3 > 0 && (rank === 3 || rank === 4)).length,
      );
    });

    it('lists what a caller does not have, and only names the rest', async () => {
      const documents = numbered(12);
      await things.replaceNewer(documents);
      const known = documents
        .filter((_, index) => index % 3 === 0)
        .map(({ id, major, minor }, index) => [id, major, index === 1 ? minor + 1 : minor] as const);
      const wanted = { orderBy: { field: 'id', direction: 'asc' }, parts: ['text'] } as const;
      const named = ({ documents: listed }: { readonly documents: readonly object[] }): unknown[] =>
        listed.map((row) => (Array.isArray(row) ? 'known' : (row as { id: string }).id));
      const all = await things.listFresh({ ...wanted, limit: 100 }, { known, freshMax: 100 });
      expect(all.isLast).toBe(true);
      // The second of those known is another version by now.
      expect(named(all)).toEqual(documents.map(({ id }, index) => (index % 3 === 0 && index !== 3 ? 'known' : id)));
      const [, second] = all.documents;
      expect(second).toMatchObject({ text: documents[1]?.text });
      expect(second).not.toHaveProperty('note');
      const cut = await things.listFresh({ ...wanted, limit: 100 }, { known, freshMax: 4 });
      expect(cut.isLast).toBe(false);
      expect(named(cut)).toEqual(['known', 'n-0001', 'n-0002', 'n-0003', 'n-0004']);
      const full = await things.listFresh({ ...wanted, limit: 12 }, { known, freshMax: 100 });
      expect(full.isLast).toBe(false);
      expect(full.documents).toEqual(all.documents);
    });

    it('deletes one, and for sweepers the first so many of a list', async () => {
      await things.replaceNewer(numbered(30));
      expect(await things.delete('n-0000')).toBe(true);
      expect(await things.delete('n-0000')).toBe(false);
      const sweep = { where: { rank: { lt: 3 } }, orderBy: { field: 'rank', direction: 'asc' }, limit: 4 } as const;
      const doomed = numbered(30)
        .slice(1)
        .filter(({ rank }) => rank < 3).length;
      let deleted = 0;
      for (let last = 4; last === 4;) deleted += last = await things.deleteWhere(sweep);
      expect(deleted).toBe(doomed);
      expect((await things.list({ limit: 100 })).every(({ rank }) => rank >= 3)).toBe(true);
    });

    it('deletes one only as it is meant, whoever has changed it meanwhile', async () => {
      await things.replaceNewer(numbered(2));
      const [{ rank, owner, open }] = numbered(1) as [Thing];
      for (const other of [{ rank: rank + 1 }, { rank, owner: `${owner}x` }, { owner, open: !open }])
        expect(await things.delete('n-0000', other)).toBe(false);
      expect(await things.get('n-0000')).not.toBeNull();
      expect(await things.delete('n-0000', { rank, owner, open })).toBe(true);
      expect(await things.delete('n-0000', { rank, owner, open })).toBe(false);
      expect(await things.get('n-0001')).not.toBeNull();
    });

    it('finds and deletes nothing where no document can have the id, as clients may name it', async () => {
      await things.insert(thing({ id: 'there' }));
      for (const id of ['', 'x'.repeat(1025), 'lone \ud800']) {
        expect(await things.get(id)).toBeNull();
        expect(await things.getMany([id])).toEqual([]);
        expect((await things.getMany([id, 'there'])).map((found) => found.id)).toEqual(['there']);
        expect(await things.delete(id)).toBe(false);
      }
    });

    it('refuses what no index serves, and mistakes, before anything is written', async () => {
      const usage = { tag: 'StoreUsageError', retryable: false };
      const selections: Selection<Spec>[] = [
        { where: { major: 1 }, limit: 5 },
        { where: { owner: 'a', rank: 1, open: true, minor: 1 }, limit: 5 },
        { where: { owner: 'a' }, orderBy: { field: 'major', direction: 'asc' }, limit: 5 },
        { where: { owner: { gt: 'a' } }, limit: 5 },
        { where: { id: 'a' }, limit: 5 },
        { where: { owner: 7 as never }, limit: 5 },
        { where: { owner: { in: [] } }, limit: 5 },
        { where: { owner: { $ne: 1 } as never }, limit: 5 },
        { where: { nothing: 1 } as never, limit: 5 },
        { limit: 0 },
        { limit: 1001 },
        { orderBy: { field: 'rank', direction: 'asc' }, after: { id: 'a' }, limit: 5 },
        { limit: 5, parts: ['owner' as never] },
      ];
      for (const selection of selections) await expect(things.list(selection)).rejects.toMatchObject(usage);
      const documents: object[] = [
        { ...thing({ id: 'x' }), id: '' },
        { ...thing({ id: 'x' }), id: 'x'.repeat(1025) },
        { ...thing({ id: 'x' }), id: 'lone \ud800' },
        { ...thing({ id: 'x' }), rank: 1.5 },
        { ...thing({ id: 'x' }), rank: 2 ** 53 },
        { ...thing({ id: 'x' }), open: 1 },
        { ...thing({ id: 'x' }), owner: null },
        { ...thing({ id: 'x' }), owner: '\udc00' },
        { ...thing({ id: 'x' }), text: undefined },
        { ...thing({ id: 'x' }), text: {} },
      ];
      for (const document of documents) {
        await expect(things.insert(document as Thing)).rejects.toMatchObject(usage);
        await expect(things.replaceNewer([thing({ id: 'y' }), document as Thing])).rejects.toMatchObject(usage);
      }
      await expect(things.replaceNewer([thing({ id: 'x' }), thing({ id: 'x' })])).rejects.toMatchObject(usage);
      await expect(things.getMany(Array.from({ length: 1001 }, (_, index) => String(index)))).rejects.toMatchObject(
        usage,
      );
      for (const only of [{ rank: 'x' }, { text: '{}' }, { nothing: 1 }])
        await expect(things.delete('x', only as never)).rejects.toMatchObject(usage);
      expect(() => store.collection({ ...suiteSpec, name: 'others' })).toThrow('not declared');
      expect(await things.list({ limit: 10 })).toEqual([]);
    });

    it('still has everything when it is opened again', async () => {
      await things.replaceNewer(numbered(20));
      await store.close();
      store = await place.open([suiteSpec]);
      things = store.collection(suiteSpec);
      expect(await things.list({ limit: 100 })).toEqual(numbered(20));
    });

    it('opened by a release with more fields, parts and indexes, reads older documents with empty ones', async () => {
      await things.insert(thing({ id: 'old' }));
      await store.close();
      const grown = {
        ...suiteSpec,
        fields: { ...suiteSpec.fields, label: 'string', count: 'integer', hidden: 'boolean' },
        parts: [...suiteSpec.parts, 'extra'],
        indexes: [...suiteSpec.indexes, ['label']],
      } as const satisfies CollectionSpec;
      store = await place.open([grown]);
      expect(await store.collection(grown).list({ where: { label: '' }, limit: 5 })).toEqual([
        { ...thing({ id: 'old' }), label: '', count: 0, hidden: false, extra: '' },
      ]);
      // And the older release goes on beside it.
      const older = await place.open([suiteSpec]);
      await older.collection(suiteSpec).insert(thing({ id: 'older' }));
      await older.close();
      expect(await store.collection(grown).get('older')).toMatchObject({ label: '', count: 0, hidden: false });
    });

    it('refuses calls after its end, and may be closed twice', async () => {
      const pending = things.insert(thing({ id: 'last' }));
      await Promise.all([store.close(), store.close()]);
      expect(await pending).toBe('inserted');
      await expect(things.get('last')).rejects.toMatchObject({ tag: 'StoreUnavailable', retryable: true });
      await expect(store.ping()).rejects.toMatchObject({ tag: 'StoreUnavailable' });
    });

    it.skipIf(!sortsByCodePoints)('sorts strings by their code points, also beyond U+FFFF', async () => {
      const ids = ['\ue000', '\uffff', '𝒳', '\u{10ffff}'];
      for (const id of ids.toReversed()) await things.insert(thing({ id }));
      const listed = await things.list({ where: {}, orderBy: { field: 'id', direction: 'asc' }, limit: 9 });
      expect(listed.map(({ id }) => id)).toEqual(ids);
    });

    it('does what the model does, in every history', async () => {
      const step = anyStep({ beyondBmp: sortsByCodePoints });
      await fc.assert(
        fc.asyncProperty(fc.array(fc.record({ step }), { minLength: 5, maxLength: 25 }), async (history) => {
          const model = new StoreModel();
          for (;;) if ((await things.deleteWhere({ limit: 1000 })) === 0) break;
          for (const taken of history) {
            const [answer, expected] = await answersTo(things, model, taken.step);
            expect(answer).toEqual(expected);
          }
        }),
        { numRuns: options.historiesMax ?? 60 },
      );
    });

    describe.skipIf(!options.concurrency)('under concurrency', () => {
      it('of many inserts of one id through many connections exactly one is the first', async () => {
        const stores = await Promise.all(Array.from({ length: 4 }, () => place.open([suiteSpec])));
        for (const id of ['a', 'b', 'c', 'd', 'e']) {
          const outcomes = await Promise.all(
            stores.flatMap((each, writer) =>
              [0, 1, 2].map((turn) => each.collection(suiteSpec).insert(thing({ id, text: `${writer}.${turn}` }))),
            ),
          );
          expect(outcomes.filter((outcome) => outcome === 'inserted')).toHaveLength(1);
        }
        await Promise.all(stores.map((each) => each.close()));
      });

      it('P8: of many versions written at once through many connections the highest stays', async () => {
        const stores = await Promise.all(Array.from({ length: 4 }, () => place.open([suiteSpec])));
        const versions = Array.from({ length: 80 }, (_, minor) => minor);
        await Promise.all(
          versions.map((minor) =>
            stores[minor % 4]
              ?.collection(suiteSpec)
              .replaceNewer([
                thing({ id: 'a', minor: (minor * 37) % 80, text: String((minor * 37) % 80) }),
                thing({ id: `own-${minor}` }),
              ]),
          ),
        );
        expect(await things.get('a')).toMatchObject({ minor: 79, text: '79' });
        expect(await things.list({ where: { owner: 'me' }, limit: 1000, parts: [] })).toHaveLength(81);
        await Promise.all(stores.map((each) => each.close()));
      });

      it('a settled write is seen through every connection', async () => {
        const other = await place.open([suiteSpec]);
        for (let minor = 1; minor <= 20; minor++) {
          await things.replaceNewer([thing({ id: 'a', minor })]);
          expect((await other.collection(suiteSpec).get('a'))?.minor).toBe(minor);
        }
        await other.close();
      });
    });
  });
};

function thing(some: Partial<ModelDocument> & { readonly id: string }): ModelDocument {
  return { owner: 'me', rank: 0, open: false, major: 0, minor: 0, text: '', note: '', ...some };
}

/** `n-0000` and so on; several share a rank, so that ids decide. */
function numbered(count: number): ModelDocument[] {
  return Array.from({ length: count }, (_, index) =>
    thing({ id: `n-${String(index).padStart(4, '0')}`, rank: (index * 7) % 11, text: `text ${index}` }),
  );
}
