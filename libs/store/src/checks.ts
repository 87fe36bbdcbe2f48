/** What every adapter refuses alike, before anything is sent: broken specs, documents and batches. */
import { StoreUsageError } from './errors.ts';
import type { CollectionSpec, KnownVersion, Part, Scalar } from './port.ts';

export const BATCH_DOCUMENTS_MAX = 500;
const BATCH_BYTES_MAX = 64 * 1024 * 1024;
export const IDS_MAX = 1000;
/**
 * A run of 2,000 stages with all of their outputs, each character escaped in JSON, has 20 MiB. Deflated (adapters keep
 * strings so, see `part-codec.ts`) that is far below the 16 MiB at which MongoDB's documents end.
 */
export const DOCUMENT_BYTES_MAX = 32 * 1024 * 1024;
const ID_LENGTH_MAX = 1024;

const COLLECTION_NAME = /^[a-z][a-z0-9_]{0,39}$/;
const FIELD_NAME = /^[a-z][a-zA-Z0-9]{0,39}$/;

/** A document as a list of values in the order of `columnsOf`: how adapters carry it. */
export type Row = (Scalar | Part)[];

export function columnsOf(spec: CollectionSpec): string[] {
  return ['id', ...Object.keys(spec.fields), ...spec.parts];
}

export function checkSpec(store: string, spec: CollectionSpec): void {
  const refuse = (problem: string): never => {
    throw new StoreUsageError(store, `collection '${spec.name}': ${problem}`);
  };
  if (!COLLECTION_NAME.test(spec.name)) refuse('its name must be lower case letters, digits and underscores');
  // SQL does not tell names apart by their case.
  const seen = new Set<string>(['id']);
  for (const name of columnsOf(spec).slice(1)) {
    if (!FIELD_NAME.test(name)) refuse(`'${name}' must be camel case letters and digits`);
    if (seen.has(name.toLowerCase())) refuse(`'${name}' is there twice`);
    seen.add(name.toLowerCase());
  }
  for (const index of spec.indexes) {
    if (index.length === 0 || new Set(index).size !== index.length) refuse('an index needs fields, each once');
    for (const field of index)
      if (!Object.hasOwn(spec.fields, field)) refuse(`an index names '${field}', which is no field`);
  }
  for (const field of spec.version ?? [])
    if (spec.fields[field] !== 'integer') refuse(`its version names '${field}', which is no integer field`);
}

/** Checks a document and turns it into a row; answers its size too. */
export function rowOf(
  store: string,
  spec: CollectionSpec,
  document: object,
): { readonly row: Row; readonly bytes: number } {
  const values = document as Readonly<Record<string, unknown>>;
  const id = values['id'];
  const refuse = (problem: string): never => {
    throw new StoreUsageError(store, `collection '${spec.name}', document '${String(id)}': ${problem}`);
  };
  if (!isId(id)) return refuse(`an id is a well-formed string of 1 to ${ID_LENGTH_MAX} characters`);
  const row: Row = [id];
  let bytes = id.length;
  for (const [field, type] of Object.entries(spec.fields)) {
    const value = values[field];
    if (!isOfType(value, type))
      return refuse(`'${field}' is to be ${type === 'integer' ? 'a safe integer' : `a ${type}`}`);
    // Minus zero is an integer that SQL gives back as another one.
    row.push(value === 0 ? 0 : value);
    bytes += typeof value === 'string' ? value.length : 8;
  }
  for (const part of spec.parts) {
    const value = values[part];
    if (typeof value === 'string' ? !value.isWellFormed() : !(value instanceof Uint8Array))
      return refuse(`'${part}' is to be a well-formed string or bytes`);
    row.push(value as Part);
    bytes += typeof value === 'string' ? utf8BytesMax(value) : (value as Uint8Array).byteLength;
  }
  if (bytes > DOCUMENT_BYTES_MAX) refuse(`it has more than ${DOCUMENT_BYTES_MAX} bytes`);
  return { row, bytes };
}

export function documentOf(
  columns: readonly string[],
  types: readonly (string | undefined)[],
  row: readonly unknown[],
): object {
  const document: Record<string, unknown> = {};
  columns.forEach((column, index) => {
    document[column] = types[index] === 'boolean' ? row[index] === 1 || row[index] === true : row[index];
  });
  return document;
}

/** Those that a document can have. Clients name what they look for: what cannot be there is as little there as what is not. */
export function possibleIds(store: string, spec: CollectionSpec, ids: readonly string[]): readonly string[] {
  if (ids.length > IDS_MAX)
    throw new StoreUsageError(store, `collection '${spec.name}': ${ids.length} ids; at most ${IDS_MAX} at a time`);
  return ids.filter(isId);
}

/** By field. */
export function checkedValues(store: string, spec: CollectionSpec, values: object): [field: string, value: Scalar][] {
  return Object.entries(values).map(([field, value]: [string, unknown]) => {
    const type = spec.fields[field];
    if (type === undefined || !isOfType(value, type))
      throw new StoreUsageError(store, `collection '${spec.name}': '${field}' is no field, or has no such value`);
    return [field, value];
  });
}

export function checkBatch(
  store: string,
  spec: CollectionSpec,
  rows: readonly { readonly row: Row; readonly bytes: number }[],
): void {
  const refuse = (problem: string): never => {
    throw new StoreUsageError(store, `collection '${spec.name}': ${problem}`);
  };
  if (spec.version === undefined) refuse('its documents have no version');
  if (rows.length > BATCH_DOCUMENTS_MAX) refuse(`${rows.length} documents; at most ${BATCH_DOCUMENTS_MAX} at a time`);
  if (rows.reduce((sum, row) => sum + row.bytes, 0) > BATCH_BYTES_MAX)
    refuse(`more than ${BATCH_BYTES_MAX} bytes at a time`);
  if (new Set(rows.map(({ row }) => row[0])).size !== rows.length) refuse('one id twice in a batch');
}

/** The names of the two integers. */
export function versionOf(store: string, spec: CollectionSpec): readonly [major: string, minor: string] {
  if (spec.version !== undefined) return spec.version;
  throw new StoreUsageError(store, `collection '${spec.name}': its documents have no version`);
}

/** The list up to the one that would be too many of what is not known; answers the ids of these as well. */
export function cutFresh(
  listed: readonly KnownVersion[],
  { known, freshMax }: { readonly known: readonly KnownVersion[]; readonly freshMax: number },
): { readonly versions: readonly KnownVersion[]; readonly fresh: readonly string[] } {
  const has = new Map(known.map((version) => [version[0], version]));
  const fresh: string[] = [];
  for (const [index, [id, major, minor]] of listed.entries()) {
    const mine = has.get(id);
    if (mine?.[1] === major && mine[2] === minor) continue;
    if (fresh.length === freshMax) return { versions: listed.slice(0, index), fresh };
    fresh.push(id);
  }
  return { versions: listed, fresh };
}

/** In the order of the list; what was deleted meanwhile is left out. */
export function joinFresh<D extends { readonly id: string }>(
  versions: readonly KnownVersion[],
  fresh: readonly string[],
  read: readonly D[],
): (D | KnownVersion)[] {
  const [wanted, found] = [new Set(fresh), new Map(read.map((document) => [document.id, document]))];
  const joined: (D | KnownVersion)[] = [];
  for (const version of versions) {
    const row = wanted.has(version[0]) ? found.get(version[0]) : version;
    if (row !== undefined) joined.push(row);
  }
  return joined;
}

export function isOfType(value: unknown, type: CollectionSpec['fields'][string]): value is Scalar {
  if (type === 'string') return typeof value === 'string' && value.isWellFormed();
  return type === 'integer' ? Number.isSafeInteger(value) : typeof value === 'boolean';
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= ID_LENGTH_MAX && value.isWellFormed();
}

/** The exact count only where it matters: counting costs as much as encoding. */
function utf8BytesMax(text: string): number {
  return text.length * 3 <= DOCUMENT_BYTES_MAX / 4 ? text.length : Buffer.byteLength(text);
}
