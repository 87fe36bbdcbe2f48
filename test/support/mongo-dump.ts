/**
 * `mongodump` and `mongorestore`, as far as `deploy/backup.sh` and `deploy/restore.sh` use them, for machines that have neither: one collection after
 * the other, each as a cursor reads it while others write, and no two of the same moment. Its archives are its own. An option that it does not
 * know ends it.
 *
 *   node mongo-dump.ts dump|restore <options of theirs>
 */
import { createWriteStream, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { createGzip, gunzipSync } from 'node:zlib';
import { BSON, MongoClient, MongoServerError, type Collection, type Document } from 'mongodb';
import { parse } from 'yaml';

const INSERTED_AT_ONCE = 100;
const text = { type: 'string' } as const;
const flag = { type: 'boolean' } as const;
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...{ config: text, db: text, gzip: flag, archive: text, collection: text, excludeCollection: text },
    ...{ drop: flag, nsFrom: text, nsTo: text },
  },
});
const { config = '', archive = '', gzip } = values;
if (config === '' || archive === '' || gzip !== true) throw new Error('it wants --config, --gzip and --archive');
const { uri } = parse(readFileSync(config, 'utf8')) as { uri: string };
const client = new MongoClient(uri);
try {
  if (positionals[0] === 'dump') await dump();
  else await restore();
} finally {
  await client.close();
}

async function dump(): Promise<void> {
  const database = client.db(values.db);
  const zipped = createGzip();
  const file = zipped.pipe(createWriteStream(archive));
  const write = async (document: Document): Promise<void> => {
    if (!zipped.write(BSON.serialize(document))) await once(zipped, 'drain');
  };
  const of = `${database.databaseName}.`;
  for (const { name } of await database.listCollections({}, { nameOnly: true }).toArray()) {
    const isLeftOut = values.collection === undefined ? name === values.excludeCollection : name !== values.collection;
    if (isLeftOut) continue;
    const indexes = await database.collection(name).indexes();
    await write({ collection: of + name, indexes: indexes.map(({ v: _, ...index }) => index) });
    for await (const document of database.collection(name).find()) await write({ of: of + name, document });
  }
  zipped.end();
  await finished(file);
}

async function restore(): Promise<void> {
  const [from, to] = [values.nsFrom ?? '', values.nsTo ?? ''].map((name) => name.replace(/\.\*$/, ''));
  if (from === undefined || to === undefined || from === '' || to === '')
    throw new Error('it wants --nsFrom and --nsTo');
  const collectionOf = (name: string): Collection => {
    if (!name.startsWith(`${from}.`)) throw new Error(`${name} is not of ${from}`);
    return client.db(to).collection(name.slice(from.length + 1));
  };
  const bytes = gunzipSync(readFileSync(archive));
  let batch: Document[] = [];
  let target = '';
  const insert = async (): Promise<void> => {
    if (batch.length > 0) await collectionOf(target).insertMany(batch);
    batch = [];
  };
  for (let at = 0; at < bytes.length; at += bytes.readInt32LE(at)) {
    const entry = BSON.deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)), { promoteValues: false });
    const [made, of] = [entry['collection'], entry['of']];
    if (made !== undefined) {
      await insert();
      target = String(made);
      // What is not there needs no drop, and some servers say so.
      if (values.drop === true) await collectionOf(target).drop().catch(ifThere);
      for (const { key, name, unique } of BSON.deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)))['indexes'])
        if (name !== '_id_')
          await collectionOf(target).createIndex(key, { name, ...(unique === true ? { unique } : {}) });
      continue;
    }
    if (String(of) !== target) throw new Error('an archive names each collection before its documents');
    batch.push(entry['document'] as Document);
    if (batch.length >= INSERTED_AT_ONCE) await insert();
  }
  await insert();
}

function ifThere(error: unknown): void {
  if (!(error instanceof MongoServerError && error.message.includes('ns not found'))) throw error;
}
