/**
 * Removes what publications left that never came to their end: bytes and texts that no version names. Run by every registry
 * now and then; sweeps of several at once do no harm.
 *
 * SWEEP-1 What may go is listed first, what is named is read afterwards: what was named when it was listed is kept.
 * SWEEP-2 Only what is older than `UPLOAD_KEPT_MS` goes, and nothing that old is named for the first time (UPLOAD-2).
 */
import type { ObjectStore } from '@penstock/object-store';
import type { Catalogue } from '../catalogue/catalogue.ts';
import { OBJECT_PREFIX, UPLOAD_KEPT_MS, type Uploads } from '../catalogue/uploads.ts';

export interface Swept {
  readonly objects: number;
  readonly texts: number;
  readonly uploads: number;
}

export async function sweep(
  parts: { readonly catalogue: Catalogue; readonly uploads: Uploads; readonly objects: ObjectStore },
  now: number,
): Promise<Swept> {
  const { catalogue, uploads, objects } = parts;
  const before = now - UPLOAD_KEPT_MS;
  const keys = await ids(objects.list(OBJECT_PREFIX), ({ key, storedAt }) => (storedAt < before ? key : null));
  const contents = await ids(catalogue.contents(), ({ id, createdAt }) => (createdAt < before ? id : null));
  for await (const { versions } of catalogue.all()) {
    for (const { objectKey, contentId } of versions) {
      keys.delete(objectKey);
      contents.delete(contentId);
    }
  }
  for (const key of keys) await objects.delete(key);
  for (const id of contents) await catalogue.removeContent(id);
  await objects.removeLeftovers(UPLOAD_KEPT_MS);
  return { objects: keys.size, texts: contents.size, uploads: await uploads.forgetBefore(before) };
}

async function ids<T>(all: AsyncIterable<T>, idOf: (each: T) => string | null): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const each of all) {
    const id = idOf(each);
    if (id !== null) found.add(id);
  }
  return found;
}
