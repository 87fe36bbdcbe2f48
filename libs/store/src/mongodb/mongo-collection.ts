/**
 * One collection of the port over MongoDB's commands.
 *
 * MONGO-1 Whoever inserts an id first is decided by the unique index on `_id`, on every server.
 * MONGO-2 A document is replaced only by a command whose own filter demands a lower version; between reading and writing
 *    nothing is assumed.
 * MONGO-3 An attempt that failed may have written. Before its call answers it looks for its own mark in what is stored.
 */
import type { Document } from 'mongodb';
import { checkBatch, checkedValues, cutFresh, joinFresh, possibleIds, rowOf, versionOf, type Row } from '../checks.ts';
import { StoreUsageError } from '../errors.ts';
import type {
  Collection,
  CollectionSpec,
  DocumentOf,
  FreshList,
  KnownVersion,
  PartName,
  Reading,
  Selection,
  Values,
} from '../port.ts';
import { planQuery } from '../query-plan.ts';
import { CallFailure, throwUnless, type Call, type WriteError } from './call.ts';
import { DUPLICATE_KEY } from './failures.ts';
import { conditionOf, equalTo, walksOf, type IndexWalk } from './index-walks.ts';
import {
  MARK,
  newMark,
  projectionOf,
  readDocument,
  storedDocument,
  storedScalar,
  type Mark,
  type StoredDocument,
} from './mongo-documents.ts';
import type { MongoLink } from './mongo-link.ts';

/** FerretDB hangs for ever on one command with many updates of existing documents (100 of them; 32 passed). */
const COMMAND_UPDATES_MAX = 20;
/** A message may have 48 MB. A tenth of a second on a slow network, and several are under way. */
const COMMAND_BYTES_MAX = 8 * 1024 * 1024;
/** Commands of one batch under way at once: each waits for the journals of a majority, and the server joins those waits. */
const COMMANDS_AT_ONCE = 4;

export class MongoCollection<S extends CollectionSpec> implements Collection<S> {
  readonly #link: MongoLink;
  readonly #spec: S;

  constructor(link: MongoLink, spec: S) {
    this.#link = link;
    this.#spec = spec;
  }

  async get<P extends PartName<S> = PartName<S>>(id: string, options?: Reading<P>): Promise<DocumentOf<S, P> | null> {
    const [document] = await this.getMany([id], options);
    return document ?? null;
  }

  async getMany<P extends PartName<S> = PartName<S>>(
    asked: readonly string[],
    options?: Reading<P>,
  ): Promise<DocumentOf<S, P>[]> {
    const ids = possibleIds(this.#link.label, this.#spec, asked);
    const parts = this.#parts(options?.parts);
    if (ids.length === 0) return [];
    return this.#link.call((call) => this.#getMany<P>(call, ids, parts, options?.isLenient));
  }

  async list<P extends PartName<S> = PartName<S>>(selection: Selection<S, P>): Promise<DocumentOf<S, P>[]> {
    const parts = this.#parts(selection.parts);
    planQuery(this.#link.label, this.#spec, selection);
    return this.#link.call(async (call) => {
      const listed = await this.#list(call, selection, parts);
      const { isLenient } = selection;
      return listed.map((document) => readDocument(this.#spec, parts, document, isLenient) as DocumentOf<S, P>);
    });
  }

  async listFresh<P extends PartName<S> = PartName<S>>(
    selection: Selection<S, P>,
    has: { readonly known: readonly KnownVersion[]; readonly freshMax: number },
  ): Promise<FreshList<S, P>> {
    const parts = this.#parts(selection.parts);
    const [major, minor] = versionOf(this.#link.label, this.#spec);
    const { order } = planQuery(this.#link.label, this.#spec, selection);
    // The field ordered by as well: a list that does not fit one reply goes on behind it.
    const named = { _id: 1, [major]: 1, [minor]: 1, ...(order.field === 'id' ? {} : { [order.field]: 1 }) };
    return this.#link.call(async (call) => {
      const listed = (await this.#list(call, selection, [], named)).map((row): KnownVersion => [
        String(row['_id']),
        Number(row[major] ?? 0),
        Number(row[minor] ?? 0),
      ]);
      const { versions, fresh } = cutFresh(listed, has);
      const read = fresh.length === 0 ? [] : await this.#getMany<P>(call, fresh, parts);
      const isLast = versions.length === listed.length && listed.length < selection.limit;
      return { documents: joinFresh(versions, fresh, read), isLast };
    });
  }

  async insert(document: DocumentOf<S>): Promise<'inserted' | 'duplicate'> {
    const { row, bytes } = rowOf(this.#link.label, this.#spec, document);
    const mark = newMark();
    return this.#link.call(
      async (call) => {
        const stored = await storedDocument(this.#link.label, this.#spec, row, mark);
        return call.retry(async (again) => {
          const duplicates = await this.#insert(call, [stored]);
          if (duplicates.length === 0) return 'inserted';
          // An earlier attempt may have been the first (MONGO-3).
          return again && (await this.#versions(call, [stored])).get(stored.id)?.isOurs(mark) === true
            ? 'inserted'
            : 'duplicate';
        });
      },
      { bytes },
    );
  }

  async replaceNewer(documents: readonly DocumentOf<S>[]): Promise<{ readonly stale: readonly string[] }> {
    const rows = documents.map((document) => rowOf(this.#link.label, this.#spec, document));
    checkBatch(this.#link.label, this.#spec, rows);
    if (rows.length === 0) return { stale: [] };
    const mark = newMark();
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    return this.#link.call(
      async (call) => {
        const stale: string[] = [];
        const commands = this.#commandsOf(
          rows.map(({ row }) => row),
          mark,
        );
        // Documents are encoded as their command's turn comes, not all at once.
        const work = async () => {
          for await (const command of commands) stale.push(...(await this.#replace(call, command, mark)));
        };
        const outcomes = await Promise.allSettled(Array.from({ length: COMMANDS_AT_ONCE }, work));
        const failed = outcomes.find((outcome) => outcome.status === 'rejected');
        if (failed !== undefined) throw failed.reason;
        return { stale };
      },
      { bytes },
    );
  }

  async replaceStanding(document: DocumentOf<S>): Promise<boolean> {
    const checked = rowOf(this.#link.label, this.#spec, document);
    checkBatch(this.#link.label, this.#spec, [checked]);
    const mark = newMark();
    return this.#link.call(
      async (call) => {
        const stored = await storedDocument(this.#link.label, this.#spec, checked.row, mark);
        return await call.retry(async (again) => {
          // Nobody heard whether the attempt before was in.
          if (again && (await this.#versions(call, [stored])).get(stored.id)?.isOurs(mark) === true) return true;
          return (await this.#replaceLower(call, [stored])) === 1;
        });
      },
      { bytes: checked.bytes },
    );
  }

  async delete(id: string, only: Values<S> = {}): Promise<boolean> {
    const values = checkedValues(this.#link.label, this.#spec, only);
    if (possibleIds(this.#link.label, this.#spec, [id]).length === 0) return false;
    const filter = { $and: [{ _id: id }, ...values.map(([field, value]) => equalTo(this.#spec, field, [value]))] };
    return this.#link.call((call) => call.retry(async () => (await this.#delete(call, filter, 1)) === 1));
  }

  async deleteWhere(selection: Pick<Selection<S>, 'where' | 'orderBy' | 'limit'>): Promise<number> {
    const plan = planQuery(this.#link.label, this.#spec, selection);
    return this.#link.call(async (call) => {
      const ids = (await this.#list(call, selection, [], { _id: 1 })).map((document) => String(document['_id']));
      if (ids.length === 0) return 0;
      // What has been changed meanwhile and is no longer meant stays.
      const filter = { $and: [idIn(ids), conditionOf(this.#spec, plan)] };
      return call.retry(async (again) => {
        const deleted = await this.#delete(call, filter, 0);
        // Nobody heard how many the attempt before took: whatever is gone counts, so that a sweeper goes on.
        return again
          ? ids.length - (await this.#find(call, { filter: idIn(ids) }, ids.length, [], { _id: 1 })).documents.length
          : deleted;
      });
    });
  }

  async #getMany<P extends PartName<S>>(
    call: Call,
    ids: readonly string[],
    parts: readonly string[],
    isLenient = false,
  ): Promise<DocumentOf<S, P>[]> {
    const missing = new Set(ids);
    const found: DocumentOf<S, P>[] = [];
    for (let isWhole = false; !isWhole && missing.size > 0;) {
      const reply = await this.#find(call, { filter: idIn([...missing]) }, missing.size, parts);
      for (const document of reply.documents) {
        missing.delete(document['_id'] as string);
        found.push(readDocument(this.#spec, parts, document, isLenient) as DocumentOf<S, P>);
      }
      isWhole = reply.isWhole;
    }
    return found;
  }

  /** Inserts those that are new, replaces those that are lower, until each is in or found stale; answers the stale ones. */
  async #replace(call: Call, command: readonly StoredDocument[], mark: Mark): Promise<string[]> {
    const stale: string[] = [];
    let pending = command;
    await call.retry(async (again) => {
      if (again) pending = await this.#judge(call, pending, mark, stale);
      while (pending.length > 0) {
        const lower = await this.#insert(call, pending);
        if (lower.length === 0) return;
        pending = lower;
        if ((await this.#replaceLower(call, lower)) === lower.length) return;
        // Some are stale, or another has come between: look, and try what may still be written.
        pending = await this.#judge(call, lower, mark, stale);
      }
    });
    return stale;
  }

  /** Drops those that are in, by our mark, or stale; answers the others. */
  async #judge(
    call: Call,
    documents: readonly StoredDocument[],
    mark: Mark,
    stale: string[],
  ): Promise<StoredDocument[]> {
    const versions = await this.#versions(call, documents);
    return documents.filter(({ id, version }) => {
      const stored = versions.get(id);
      if (stored === undefined) return true;
      if (stored.isOurs(mark)) return false;
      if ((stored.major - version[0] || stored.minor - version[1]) < 0) return true;
      stale.push(id);
      return false;
    });
  }

  async #versions(call: Call, documents: readonly StoredDocument[]): Promise<Map<string, StoredVersion>> {
    const [major, minor] = this.#spec.version ?? [];
    const projection: Document = {
      _id: 1,
      [MARK]: 1,
      ...(major === undefined ? {} : { [major]: 1 }),
      ...(minor === undefined ? {} : { [minor]: 1 }),
    };
    const { documents: found } = await this.#find(
      call,
      { filter: idIn(documents.map(({ id }) => id)) },
      documents.length,
      [],
      projection,
    );
    return new Map(
      found.map((stored) => [
        String(stored['_id']),
        {
          major: Number(stored[major ?? ''] ?? 0),
          minor: Number(stored[minor ?? ''] ?? 0),
          isOurs: (mark: Mark) => mark.equals(stored[MARK] as Mark | undefined),
        },
      ]),
    );
  }

  /** Answers those whose id is there already. */
  async #insert(call: Call, documents: readonly StoredDocument[]): Promise<StoredDocument[]> {
    const { refused } = await call.write({
      insert: this.#spec.name,
      documents: documents.map(({ document }) => document),
      ordered: false,
    });
    throwUnless(isDuplicate, refused);
    return refused.flatMap(({ index }) => documents[index] ?? []);
  }

  /** How many were lower than what they were to be replaced with. */
  async #replaceLower(call: Call, documents: readonly StoredDocument[]): Promise<number> {
    const updates = documents.map(({ id, document, version }) => ({
      q: { _id: id, $or: lowerThan(this.#spec, version) },
      u: document,
      upsert: false,
      multi: false,
    }));
    const { count, refused } = await call.write({ update: this.#spec.name, updates, ordered: false });
    throwUnless(() => false, refused);
    return count;
  }

  async #delete(call: Call, filter: Document, limit: 0 | 1): Promise<number> {
    const { count, refused } = await call.write({
      delete: this.#spec.name,
      deletes: [{ q: filter, limit }],
      ordered: false,
    });
    throwUnless(() => false, refused);
    return count;
  }

  /** Walk after walk until the limit is reached. A walk that a reply ends too early is continued behind its last document. */
  async #list(
    call: Call,
    selection: Selection<S>,
    parts: readonly string[],
    projection?: Document,
  ): Promise<Document[]> {
    const listed: Document[] = [];
    let rest: Selection<S> = selection;
    for (;;) {
      const plan = planQuery(this.#link.label, this.#spec, rest);
      let isWhole = true;
      for (const walk of walksOf(this.#spec, plan)) {
        const wanted = selection.limit - listed.length;
        const reply = await this.#find(call, walk, wanted, parts, projection);
        listed.push(...reply.documents);
        isWhole = reply.isWhole;
        if (!isWhole || listed.length >= selection.limit) break;
      }
      const last = listed.at(-1);
      if (isWhole || last === undefined) return listed;
      const field = String(plan.order.field);
      const value =
        field === 'id'
          ? undefined
          : (readDocument(this.#spec, [], last, true) as Readonly<Record<string, string | number | boolean>>)[field];
      rest = { ...selection, limit: selection.limit - listed.length, after: { id: String(last['_id']), value } };
    }
  }

  /** `isWhole`: the reply has all that there is, up to `limit`. Documents of more than 16 MiB in all do not fit one reply. */
  async #find(
    call: Call,
    walk: Pick<IndexWalk, 'filter'> & Partial<IndexWalk>,
    limit: number,
    parts: readonly string[],
    projection = projectionOf(this.#spec, parts),
  ): Promise<{ readonly documents: readonly Document[]; readonly isWhole: boolean }> {
    return call.retry(async () => {
      const reply = await call.read({ find: this.#spec.name, ...walk, projection, limit, batchSize: limit });
      const cursor = reply['cursor'] as { readonly id: unknown; readonly firstBatch: readonly Document[] };
      const isWhole = cursor.firstBatch.length >= limit || Number(cursor.id) === 0;
      // The server would keep it for ten minutes; that it is gone matters to nobody.
      if (Number(cursor.id) !== 0)
        await call.manage({ killCursors: this.#spec.name, cursors: [cursor.id] }).catch(() => undefined);
      if (!isWhole && cursor.firstBatch.length === 0)
        throw new CallFailure({
          tag: 'unavailable',
          problem: 'the server answered an empty part of a list',
          again: true,
        });
      return { documents: cursor.firstBatch, isWhole };
    });
  }

  async *#commandsOf(rows: readonly Row[], mark: Mark): AsyncGenerator<readonly StoredDocument[]> {
    let command: StoredDocument[] = [];
    let bytes = 0;
    for (const row of rows) {
      const stored = await storedDocument(this.#link.label, this.#spec, row, mark);
      if (command.length === COMMAND_UPDATES_MAX || (command.length > 0 && bytes + stored.bytes > COMMAND_BYTES_MAX)) {
        yield command;
        command = [];
        bytes = 0;
      }
      command.push(stored);
      bytes += stored.bytes;
    }
    if (command.length > 0) yield command;
  }

  #parts(wanted: readonly string[] | undefined): string[] {
    const parts = [...(wanted ?? this.#spec.parts)];
    for (const part of parts)
      if (!this.#spec.parts.includes(part))
        throw new StoreUsageError(this.#link.label, `collection '${this.#spec.name}': '${part}' is no part`);
    return parts;
  }
}

interface StoredVersion {
  readonly major: number;
  readonly minor: number;
  isOurs(mark: Mark): boolean;
}

/** A document without these fields (an older release wrote it) has version (0, 0). */
function lowerThan(spec: CollectionSpec, [major, minor]: readonly [number, number]): Document[] {
  const [majorField = '', minorField = ''] = spec.version ?? [];
  const below = (field: string, value: number): Document[] => [
    { [field]: { $lt: storedScalar(value) } },
    ...(value > 0 ? [{ [field]: null }] : []),
  ];
  const sameMajor = { [majorField]: major === 0 ? { $in: [0, null] } : { $eq: storedScalar(major) } };
  return [
    ...below(majorField, major),
    ...below(minorField, minor).map((lower) => (majorField === minorField ? lower : { ...sameMajor, ...lower })),
  ];
}

function isDuplicate(error: WriteError): boolean {
  return error.code === DUPLICATE_KEY;
}

function idIn(ids: readonly string[]): Document {
  return ids.length === 1 ? { _id: ids[0] } : { _id: { $in: ids } };
}
