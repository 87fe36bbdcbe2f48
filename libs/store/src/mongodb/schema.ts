/**
 * A database made ours: the format it is kept in, the fields of each collection and their types, the indexes. Everything
 * here may be done by several processes at once and any number of times. Fields and indexes that this release does not
 * know are left alone: a newer one may be running beside it, or come back.
 */
import { MongoServerError, type Document } from 'mongodb';
import type { CollectionSpec } from '../port.ts';
import type { Call } from './call.ts';
import { codeFailure, DUPLICATE_KEY, FitProblem, NAMESPACE_NOT_FOUND } from './failures.ts';
import { indexName } from './index-walks.ts';
import { CallFailure, throwUnless } from './call.ts';
import type { MongoLink } from './mongo-link.ts';

/** Beside the collections of the specs, whose names begin with a letter. */
const SCHEMA = '_schema';
const FORMAT_ID = '_format';
/** Of the database as a whole: how parts are kept, how ids and marks are named. */
const FORMAT = 1;
/** An index over millions of documents takes minutes to build; the next start finds it begun, or there. */
const INDEX_BUILD_MS = 10 * 60_000;
const INDEX_CONFLICTS: ReadonlySet<number> = new Set([85, 86]);

/** Rejects with StoreIncompatible where the database belongs to a newer release or to another program. */
export async function ensureSchema(link: MongoLink, specs: readonly CollectionSpec[]): Promise<void> {
  await link.call((call) => ensureFormat(call, specs));
  for (const spec of specs) {
    await link.call((call) => ensureFields(call, spec));
    const wanted = [...new Map(spec.indexes.map((index) => [indexName(index), index]))];
    const present = await link.call((call) => call.retry(() => indexesOf(call, spec)));
    for (const [name, index] of wanted) {
      const key = Object.fromEntries([...index, '_id'].map((field) => [field, 1]));
      const stored = present.get(name);
      if (stored === undefined)
        await link.call((call) => call.retry(() => createIndex(call, spec, name, key)), { deadlineMs: INDEX_BUILD_MS });
      else if (JSON.stringify(stored) !== JSON.stringify(key))
        throw link.errorOf(
          new FitProblem(
            `the index '${name}' of the collection '${spec.name}' has other fields; drop it, and start again`,
          ),
        );
    }
  }
}

async function ensureFormat(call: Call, specs: readonly CollectionSpec[]): Promise<void> {
  const read = async (): Promise<number | null> => {
    const format = (await readSchema(call, FORMAT_ID))?.['format'] as unknown;
    return format === undefined ? null : Number(format);
  };
  let format = await call.retry(read);
  if (format === null) {
    const names = await call.retry(() => collectionNames(call));
    // Another process that has begun a moment ago has written the format first.
    format = await call.retry(read);
    const foreign = specs.find(({ name }) => names.has(name));
    if (format === null && foreign !== undefined)
      throw new FitProblem(
        `its collection '${foreign.name}' is another program's; name another database in the address`,
      );
    await call.retry(() => insertSchema(call, { _id: FORMAT_ID, format: FORMAT }));
    format ??= await call.retry(read);
  }
  if (format !== null && format > FORMAT)
    throw new FitProblem(
      `a newer release wrote the database (format ${format}; this one knows ${FORMAT}); start that release, or name another database`,
    );
}

/** The types of fields are written down, so that a release that means another type by a name is found out before it writes. */
async function ensureFields(call: Call, spec: CollectionSpec): Promise<void> {
  await call.retry(async () => {
    await insertSchema(call, { _id: spec.name, fields: spec.fields });
    let stored = await fieldsOf(call, spec);
    const added = Object.keys(spec.fields).filter((field) => stored[field] === undefined);
    if (added.length > 0) {
      const updates = added.map((field) => ({
        q: { _id: spec.name, [`fields.${field}`]: { $exists: false } },
        u: { $set: { [`fields.${field}`]: spec.fields[field] } },
      }));
      throwUnless(() => false, (await call.write({ update: SCHEMA, updates, ordered: false })).refused);
      stored = await fieldsOf(call, spec);
    }
    for (const [field, type] of Object.entries(spec.fields)) {
      if (stored[field] !== type)
        throw new FitProblem(
          `'${field}' of the collection '${spec.name}' is kept as ${stored[field]}, and this release wants ${type}`,
        );
    }
  });
}

async function fieldsOf(call: Call, spec: CollectionSpec): Promise<Readonly<Record<string, string>>> {
  return ((await readSchema(call, spec.name))?.['fields'] ?? {}) as Readonly<Record<string, string>>;
}

async function readSchema(call: Call, id: string): Promise<Document | undefined> {
  const reply = await call.read({ find: SCHEMA, filter: { _id: id }, limit: 1, batchSize: 1 });
  return (reply['cursor'] as { readonly firstBatch: readonly Document[] }).firstBatch[0];
}

/** Whoever comes second leaves what is there. */
async function insertSchema(call: Call, document: Document): Promise<void> {
  const { refused } = await call.write({ insert: SCHEMA, documents: [document], ordered: false });
  throwUnless(({ code }) => code === DUPLICATE_KEY, refused);
}

async function collectionNames(call: Call): Promise<Set<string>> {
  const reply = await call.manage({ listCollections: 1, nameOnly: true, cursor: { batchSize: 1_000 } });
  return new Set(
    (reply['cursor'] as { readonly firstBatch: readonly Document[] }).firstBatch.map((each) => String(each['name'])),
  );
}

async function indexesOf(call: Call, spec: CollectionSpec): Promise<Map<string, Document>> {
  try {
    const reply = await call.manage({ listIndexes: spec.name, cursor: { batchSize: 1_000 } });
    return new Map(
      (reply['cursor'] as { readonly firstBatch: readonly Document[] }).firstBatch.map((each) => [
        String(each['name']),
        each['key'] as Document,
      ]),
    );
  } catch (error) {
    if (error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND) return new Map();
    throw error;
  }
}

async function createIndex(call: Call, spec: CollectionSpec, name: string, key: Document): Promise<void> {
  try {
    await call.manage({ createIndexes: spec.name, indexes: [{ key, name }] });
  } catch (error) {
    if (!(error instanceof MongoServerError) || !INDEX_CONFLICTS.has(Number(error.code))) throw error;
    throw new CallFailure({
      ...codeFailure(Number(error.code), error.message, false, error),
      tag: 'incompatible',
      again: false,
    });
  }
}
