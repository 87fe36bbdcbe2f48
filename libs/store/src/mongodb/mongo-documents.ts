/**
 * Documents as MongoDB keeps them: `id` as `_id`, fields as they are, parts through the codec, and `_w`, the mark of the
 * call that wrote this version. By its mark a call that never heard the answer to a write finds out whether it was done.
 */
import { Binary, Long, ObjectId, type Document } from 'mongodb';
import { isOfType, type Row } from '../checks.ts';
import { StoreUsageError } from '../errors.ts';
import { decodePart, encodePartAside } from '../part-codec.ts';
import type { CollectionSpec, FieldType, Part, Scalar } from '../port.ts';
import { DecodeProblem } from './failures.ts';

export const MARK = '_w';
/** MongoDB's own 16 MiB, less what the fields, the mark and the keys may take. */
const PARTS_BYTES_MAX = 16 * 1024 * 1024 - 256 * 1024;

export type Mark = ObjectId;

export function newMark(): Mark {
  return new ObjectId();
}

export interface StoredDocument {
  readonly id: string;
  readonly document: Document;
  /** (0, 0) where the collection has no versions. */
  readonly version: readonly [number, number];
  /** About; parts dominate. */
  readonly bytes: number;
}

/** `row` is in the order of `columnsOf`. */
export async function storedDocument(
  store: string,
  spec: CollectionSpec,
  row: Row,
  mark: Mark,
): Promise<StoredDocument> {
  const id = String(row[0]);
  const document: Document = { _id: id };
  const version: [number, number] = [0, 0];
  let position = 1;
  let bytes = id.length;
  for (const field of Object.keys(spec.fields)) {
    const value = row[position++] as Scalar;
    document[field] = storedScalar(value);
    if (field === spec.version?.[0]) version[0] = Number(value);
    if (field === spec.version?.[1]) version[1] = Number(value);
  }
  for (const part of spec.parts) {
    const encoded = await encodePartAside(row[position++] as Part);
    document[part] = encoded;
    bytes += typeof encoded === 'string' ? Buffer.byteLength(encoded) : encoded.byteLength;
  }
  if (bytes > PARTS_BYTES_MAX)
    throw new StoreUsageError(
      store,
      `collection '${spec.name}', document '${id}': its parts have ${bytes} bytes even when deflated; MongoDB takes ${PARTS_BYTES_MAX}`,
    );
  document[MARK] = mark;
  return { id, document, version, bytes };
}

/** Without this the driver sends integers from 2 ** 31 on as doubles; the numbers are the same, and people wonder. */
export function storedScalar(value: Scalar): Scalar | Long {
  return typeof value === 'number' && value !== (value | 0) ? Long.fromNumber(value) : value;
}

/** Which keys to answer. The mark is no one else's business. */
export function projectionOf(spec: CollectionSpec, parts: readonly string[]): Document {
  return Object.fromEntries(['_id', ...Object.keys(spec.fields), ...parts].map((key) => [key, 1]));
}

/** `isLenient`: see `Reading`. */
export function readDocument(
  spec: CollectionSpec,
  parts: readonly string[],
  stored: Document,
  isLenient = false,
): object {
  const id: unknown = stored['_id'];
  const problem = (what: string, cause?: unknown) =>
    new DecodeProblem(`document '${String(id)}' of the collection '${spec.name}': ${what}`, { cause });
  if (typeof id !== 'string') throw problem('its _id is no string');
  const document: Record<string, unknown> = { id };
  for (const [field, type] of Object.entries(spec.fields)) {
    const value: unknown = stored[field] ?? EMPTY[type];
    const isSound = isOfType(value, type);
    if (!isSound && !isLenient) throw problem(`'${field}' is kept as ${typeof value}, and not as ${type}`);
    document[field] = isSound ? value : EMPTY[type];
  }
  for (const part of parts) {
    const value: unknown = stored[part] ?? '';
    try {
      const decoded = decodePart(value instanceof Binary ? value.value() : value);
      // A copy: bytes as received keep the whole reply of the server alive.
      document[part] = typeof decoded === 'string' ? decoded : Uint8Array.from(decoded);
    } catch (error) {
      throw problem(`'${part}' cannot be decoded`, error);
    }
  }
  return document;
}

/** What a field reads as that its document does not have. */
export const EMPTY: Readonly<Record<FieldType, Scalar>> = { string: '', integer: 0, boolean: false };
