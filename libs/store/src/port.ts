/**
 * The port to the document store. It offers what SQLite and every server of MongoDB's protocol do well, and nothing
 * else: reading by id and by declared indexes, inserts that a duplicate id refuses, writes over a lower version only,
 * deletes, small unordered batches. There are no transactions across documents, no triggers, no expiry by itself.
 *
 * A document is flat: `id`, declared scalar fields (the only ones that can be asked for), and declared parts, which are
 * opaque to the store and read only when wanted. Declared fields always have a value: '' or 0 or false stand for
 * "none", since servers disagree about how null sorts.
 *
 * Contract of every call:
 * - It may be made at any time, concurrently with any other; calls of one caller are not ordered unless awaited.
 * - It settles within the store's deadline: then with StoreUnavailable, and a write may or may not have taken place.
 *   Every write of this port may be repeated: the second time says `duplicate` or `stale`, or deletes nothing.
 * - A settled write is seen by every read begun later through any connection to the same store.
 * - StoreUnavailable is worth a retry, with backoff. StoreCorrupt and StoreIncompatible are not, and name the store.
 *   StoreUsageError is a mistake of the caller's.
 */

export interface CollectionSpec {
  /** Lower case letters, digits and underscores, at most 40. */
  readonly name: string;
  /** Names are camel case, and none of them `id`. A field added in a later release reads as '', 0 or false in older documents. */
  readonly fields: Readonly<Record<string, FieldType>>;
  /** Opaque strings (JSON, mostly) or bytes, up to 32 MiB a document. A part added later reads as '' in older documents. */
  readonly parts: readonly string[];
  /** Each index is a list of fields; `id` follows as the last by itself. `id` alone needs no index. */
  readonly indexes: readonly (readonly string[])[];
  /**
   * The two integer fields that make up a document's version, compared as a pair, the first one first. Without them
   * `replaceNewer` is a StoreUsageError.
   */
  readonly version?: readonly [major: string, minor: string];
}

export type FieldType = 'string' | 'integer' | 'boolean';
export type Scalar = string | number | boolean;
export type Part = string | Uint8Array;

type ScalarOf<T extends FieldType> = T extends 'string' ? string : T extends 'integer' ? number : boolean;
export type PartName<S extends CollectionSpec> = S['parts'][number];

/**
 * A document with some of its parts. Ids are 1 to 1,024 characters. Strings must be well-formed Unicode (no lone
 * surrogates; what JSON.stringify makes is) and integers safe ones: all else is a StoreUsageError.
 */
export type DocumentOf<S extends CollectionSpec, P extends PartName<S> = PartName<S>> = { readonly id: string } & {
  readonly [F in keyof S['fields']]: ScalarOf<S['fields'][F]>;
} & { readonly [Q in P]: Part };

/** A value, some of several values (1 to 100), or bounds; strings compare by their code points. */
export type Condition = Scalar | { readonly in: readonly Scalar[] } | Range;
export interface Range {
  readonly gt?: string | number | undefined;
  readonly gte?: string | number | undefined;
  readonly lt?: string | number | undefined;
  readonly lte?: string | number | undefined;
}

/** Values of fields. */
export type Values<S extends CollectionSpec> = { readonly [F in keyof S['fields']]?: ScalarOf<S['fields'][F]> };

type Where<S extends CollectionSpec> = { readonly [F in keyof S['fields'] | 'id']?: Condition };

export interface Reading<P extends string> {
  /** The parts wanted; default: all. */
  readonly parts?: readonly P[] | undefined;
  /**
   * For who goes round what is damaged: a field that is kept as something else than it is declared reads as '', 0 or false. Without it, one
   * such document fails the whole call as StoreCorrupt, as a part that cannot be decoded always does.
   */
  readonly isLenient?: boolean | undefined;
}

/** Of documents of which nothing but where they stand is wanted, damaged or not. */
export const PLACES = { parts: [], isLenient: true } as const;

/**
 * What an index can answer without reading more than it returns: the fields of an index from its first one on, each
 * bound to a value or to several (`in`), and then the field by which the list is ordered, which alone may have a range.
 * Anything else is refused as StoreUsageError, so that no query scans a collection once it is large.
 */
export interface Selection<S extends CollectionSpec, P extends PartName<S> = PartName<S>> extends Reading<P> {
  readonly where?: Where<S> | undefined;
  /** Default: by `id`, ascending. Equal values are ordered by `id` in the same direction. */
  readonly orderBy?: { readonly field: keyof S['fields'] | 'id'; readonly direction: 'asc' | 'desc' } | undefined;
  /** At most 1,000. */
  readonly limit: number;
  /** Continues behind a document of the same list: its id, and its value of the field ordered by if that is not `id`. */
  readonly after?: { readonly id: string; readonly value?: Scalar | undefined } | undefined;
}

/** A document that a caller has, as this version of it. */
export type KnownVersion = readonly [id: string, major: number, minor: number];

export interface FreshList<S extends CollectionSpec, P extends PartName<S>> {
  /** What the caller has comes as what it is known by. */
  readonly documents: readonly (DocumentOf<S, P> | KnownVersion)[];
  /** Nothing is behind them in the list, whatever its limit. */
  readonly isLast: boolean;
}

export interface Collection<S extends CollectionSpec> {
  get<P extends PartName<S> = PartName<S>>(id: string, options?: Reading<P>): Promise<DocumentOf<S, P> | null>;

  /** Those that exist, in no particular order, each once; at most 1,000 ids. What cannot be an id is that of nothing; so also in `get` and `delete`. */
  getMany<P extends PartName<S> = PartName<S>>(
    ids: readonly string[],
    options?: Reading<P>,
  ): Promise<DocumentOf<S, P>[]>;

  list<P extends PartName<S> = PartName<S>>(selection: Selection<S, P>): Promise<DocumentOf<S, P>[]>;

  /**
   * As `list`, for who has some of it: those of a known version are only named, the others come whole, and the list ends
   * before there are more than `freshMax` of these. What is changed while it is listed comes as it is then, or not at all where
   * it was deleted. A collection without versions is a StoreUsageError.
   */
  listFresh<P extends PartName<S> = PartName<S>>(
    selection: Selection<S, P>,
    has: { readonly known: readonly KnownVersion[]; readonly freshMax: number },
  ): Promise<FreshList<S, P>>;

  /** Of several inserts of one id, also from several processes, exactly one is `inserted`. */
  insert(document: DocumentOf<S>): Promise<'inserted' | 'duplicate'>;

  /**
   * Writes each document if none of its id is there, or one of a lower version; answers the ids of the others (the same
   * or a higher version is there). At most 500 documents and 64 MiB; several of one id are a StoreUsageError. Documents
   * are written whole or not at all; the batch is not: after an error any of them may have been written.
   */
  replaceNewer(documents: readonly DocumentOf<S>[]): Promise<{ readonly stale: readonly string[] }>;

  /** As `replaceNewer`, of one that is there: what has been deleted since it was read does not come back. Whether it was written. */
  replaceStanding(document: DocumentOf<S>): Promise<boolean>;

  /** Whether there was one. With `only`: one that has these values at that moment; any other stays. */
  delete(id: string, only?: Values<S>): Promise<boolean>;

  /** For sweepers: deletes at most `limit` (up to 1,000) of those selected, in their order; answers how many. */
  deleteWhere(selection: Pick<Selection<S>, 'where' | 'orderBy' | 'limit'>): Promise<number>;
}

export interface DocumentStore {
  /** Declared when the store was opened; any other name is a StoreUsageError. */
  collection<S extends CollectionSpec>(spec: S): Collection<S>;
  /** Settles when the store can answer now; for readiness probes. */
  ping(): Promise<void>;
  /** Ends the calls under way, then the connections. Later calls are StoreUnavailable. Idempotent. */
  close(): Promise<void>;
}
